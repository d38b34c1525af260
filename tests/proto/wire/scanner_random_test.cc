// Random messages through the wire scanner and through protobuf alone.
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "absl/strings/escaping.h"
#include "tests/testing/quiet_protobuf.h"
#include "tests/testing/random_wire.h"
#include "tests/testing/wire_agreement.h"
#include "warpline/v1/warpline.pb.h"

namespace warpline::testing {
namespace {

// WARPLINE_FUZZ_ITERATIONS sets how many messages are tried.
TEST(WireScannerRandomTest, AgreesWithProtobufOnRandomMessages) {
  const char* const wanted = std::getenv("WARPLINE_FUZZ_ITERATIONS");
  const long iterations = wanted == nullptr ? 20000 : std::atol(wanted);
  const QuietProtobuf silencer;  // of strings that are not UTF-8
  const std::array<const google::protobuf::Message*, 4> prototypes = {
      &v1::TransposeRequest::default_instance(), &v1::GemmRequest::default_instance(),
      &v1::ReduceRequest::default_instance(), &v1::RunRequest::default_instance()};
  long accepted = 0;
  for (long i = 0; i < iterations; ++i) {
    RandomWire random(static_cast<std::uint64_t>(i));
    const google::protobuf::Message& prototype = *prototypes[random.Below(prototypes.size())];
    std::string bytes = random.Message(prototype.GetDescriptor());
    if (random.OneIn(3)) random.Damage(bytes);
    const std::size_t sizes[] = {1 + random.Below(random.OneIn(2) ? 2 : 40), random.Below(3)};
    const auto agreement = CompareWithProtobuf(prototype, Slice(bytes, sizes));
    ASSERT_EQ(agreement.difference, "")
        << "seed " << i << ", " << prototype.GetTypeName() << " of bytes " << absl::BytesToHexString(bytes);
    accepted += agreement.accepted;
  }
  // Both verdicts must be common, or the test says little.
  EXPECT_GT(accepted, iterations / 4);
  EXPECT_LT(accepted, iterations - iterations / 10);
}

}  // namespace
}  // namespace warpline::testing
