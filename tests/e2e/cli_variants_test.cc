// Every implementation that the server lists: those that its devices have, asked for by its name.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "tests/e2e/cli.h"
#include "warpline/client.h"
#include "warpline/v1/warpline.pb.h"

namespace warpline {
namespace {

using ::testing::HasSubstr;

class CliVariantsTest : public CliTest {
 protected:
  // A 64 x 64 matrix of zeros and ones in no order, in f32 or f16, as a file: sums of products are exact.
  static std::string Matrix(bool half) {
    std::string header = std::string("{'descr': '") + (half ? "<f2" : "<f4") +
                         "', 'fortran_order': False, 'shape': (64, 64), }";
    header.append((64 - (10 + header.size() + 1) % 64) % 64, ' ');
    header += '\n';
    std::string bytes("\x93NUMPY\1\0", 8);
    bytes += {static_cast<char>(header.size()), '\0'};
    bytes += header;
    const std::string one = half ? std::string("\0\x3c", 2) : std::string("\0\0\x80\x3f", 4);
    for (int i = 0; i < 64 * 64; ++i) bytes += i * i % 7 % 2 == 0 ? std::string(one.size(), '\0') : one;
    return bytes;
  }

  v1::GetInfoResponse Info() const {
    return *client::Client(daemon_.address(), {}).GetInfo(absl::Seconds(60));
  }
};

TEST_F(CliVariantsTest, GiveTheSameResultsByName) {
  Put("f16.npy", Matrix(true));
  Put("f32.npy", Matrix(false));
  const v1::GetInfoResponse info = Info();
  int tried = 0;
  for (const auto& operation : info.operations()) {
    std::string command;
    if (operation.name() == "transpose") command = "transpose $x";
    if (operation.name() == "gemm") command = "gemm $x $x --trans-b";
    if (operation.name() == "reduce") command = "reduce $x --op sum --axes 1";
    if (command.empty()) continue;  // steps of programs only
    for (const auto& variant : operation.variants()) {
      const auto& types = variant.data_types();
      const bool single = std::count(types.begin(), types.end(), v1::DATA_TYPE_F32) > 0;
      const std::string prefix = std::string("x=") + (single ? "f32.npy; " : "f16.npy; ");
      const Finished chosen = Run(prefix + "warpline " + command + " -o chosen.npy");
      const Finished named =
          Run(prefix + "warpline " + command + " --timings -o named.npy --variant " + variant.name());
      EXPECT_EQ(chosen.code, 0) << command << "\n" << chosen.err;
      if (named.err.find("cannot run this problem") != std::string::npos) continue;
      EXPECT_EQ(named.code, 0) << command << " by " << variant.name() << "\n" << named.err;
      EXPECT_THAT(named.out + named.err, HasSubstr(variant.name()));
      EXPECT_EQ(Get("named.npy"), Get("chosen.npy")) << command << " by " << variant.name();
      ++tried;
    }
  }
  EXPECT_GE(tried, 6);  // the CPU's
}

}  // namespace
}  // namespace warpline
