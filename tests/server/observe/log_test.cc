#include "server/observe/log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "absl/cleanup/cleanup.h"

namespace warpline {
namespace {

using ::testing::EndsWith;
using ::testing::SizeIs;

const absl::Time kTime = absl::FromUnixMillis(1'700'000'000'123);

std::string LineWith(std::string_view key, std::string_view value) {
  LogLine line(kTime, "info", "a message");
  line.Add(key, value);
  return line.Finish();
}

class JsonLogTest : public testing::Test {
 protected:
  JsonLogTest() { SetLogFormat(LogFormat::kJson); }
  ~JsonLogTest() override { SetLogFormat(LogFormat::kLogfmt); }
};

TEST(LogTest, ALineIsLogfmt) {
  EXPECT_EQ(LineWith("key", "plain"),
            "time=2023-11-14T22:13:20.123Z level=info msg=\"a message\" key=plain\n");
  EXPECT_THAT(LineWith("key", "a=b \"c\"\n"), EndsWith("key=\"a=b \\\"c\\\"\\n\"\n"));
}

TEST_F(JsonLogTest, ALineIsAnObjectOfStrings) {
  EXPECT_EQ(LineWith("key", "a \"b\"\n"),
            "{\"time\":\"2023-11-14T22:13:20.123Z\",\"level\":\"info\",\"msg\":\"a message\","
            "\"key\":\"a \\\"b\\\"\\n\"}\n");
}

TEST_F(JsonLogTest, BytesThatAreNoUtf8AreReplaced) {
  EXPECT_EQ(nlohmann::json::parse(LineWith("key", "\xff"))["key"], "\xEF\xBF\xBD");
}

TEST(LogTest, AValueThatIsTooLongIsShortenedAndTheLineStaysWhole) {
  for (const LogFormat format : {LogFormat::kLogfmt, LogFormat::kJson}) {
    SetLogFormat(format);
    const absl::Cleanup restore = [] { SetLogFormat(LogFormat::kLogfmt); };
    LogLine line(kTime, "info", "a message");
    line.Add("first", std::string(100'000, '"'));
    line.Add("second", std::string(5000, 'x'));
    line.Add("last", "y");
    const std::string text = line.Finish();
    EXPECT_THAT(text, SizeIs(testing::Le(LogLine::kMaxBytes)));
    EXPECT_THAT(text, EndsWith(format == LogFormat::kJson ? "\"last\":\"y\"}\n" : " last=y\n"));
  }
}

}  // namespace
}  // namespace warpline
