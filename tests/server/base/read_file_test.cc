#include "server/base/read_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <string>

#include "tests/testing/status_matchers.h"

namespace warpline {
namespace {

using ::testing::HasSubstr;
using ::warpline::testing::StatusIs;

class ReadFileTest : public ::testing::Test {
 protected:
  ~ReadFileTest() override { std::remove(path_.c_str()); }
  void Write(const std::string& text) const { std::ofstream(path_) << text; }
  const std::string path_ = ::testing::TempDir() + "/warpline_read_file_" + std::to_string(getpid());
};

TEST_F(ReadFileTest, ReadsAFileOfUpToTheLimit) {
  for (const std::string& text : {std::string(), std::string("x"), std::string(10, 'x')}) {
    Write(text);
    const absl::StatusOr<std::string> read = ReadFile(path_, 10);
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(*read, text);
  }
}

TEST_F(ReadFileTest, RefusesALargerOne) {
  Write("x");
  ASSERT_EQ(truncate(path_.c_str(), 1L << 40), 0);  // it would not fit into memory
  EXPECT_THAT(ReadFile(path_, 10).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("has 1099511627776 bytes, limit 10")));
}

TEST_F(ReadFileTest, RefusesWhatIsNoFileOrNotThere) {
  EXPECT_THAT(ReadFile("/dev/zero").status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("/dev/zero")));
  EXPECT_THAT(ReadFile(path_).status(), StatusIs(absl::StatusCode::kNotFound, HasSubstr(path_)));
}

}  // namespace
}  // namespace warpline
