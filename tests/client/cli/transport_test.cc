#include "client/cli/transport.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "client/cli/args.h"
#include "tests/testing/status_matchers.h"

namespace warpline::client {
namespace {

using ::testing::HasSubstr;
using ::warpline::testing::IsOkAndHolds;

absl::StatusOr<TransportKind> Flag(const std::vector<std::string>& words) {
  CLI::App app;
  TransportKind kind = TransportKind::kAuto;
  AddTransport(app, kind);
  RETURN_IF_ERROR(Parse(app, words).status());
  return kind;
}

TEST(TransportTest, IsAutoUnlessToldOtherwise) {
  EXPECT_THAT(Flag({}), IsOkAndHolds(TransportKind::kAuto));
  EXPECT_THAT(Flag({"--transport=inline"}), IsOkAndHolds(TransportKind::kInline));
  EXPECT_THAT(Flag({"--transport", "stream"}), IsOkAndHolds(TransportKind::kStream));
  EXPECT_TRUE(IsUsageError(Flag({"--transport=tcp"}).status()));
}

TEST(TransportTest, SharesMemoryWhereTheRegionSocketIsKnown) {
  EXPECT_EQ(CheckSharing({.server = "unix:/run/w"}), absl::OkStatus());
  EXPECT_EQ(CheckSharing({.server = "host:1", .regions = "/run/r"}), absl::OkStatus());
  const absl::Status unknown = CheckSharing({.server = "host:1"});
  EXPECT_TRUE(IsUsageError(unknown));
  EXPECT_THAT(std::string(unknown.message()), HasSubstr("host:1"));
}

TEST(TransportTest, RefusesRegionSocketsThatAreNone) {
  CommonFlags common{.server = "host:1", .deadline = absl::Seconds(5)};
  EXPECT_EQ(CheckRegions(common), absl::OkStatus());
  for (const char* path : {"/tmp/there is no such socket", "unix:/tmp/there is no such socket",
                           "/proc/version", "/proc/version/x"}) {
    common.regions = path;
    const absl::Status status = CheckRegions(common);
    EXPECT_TRUE(IsUsageError(status)) << path << ": " << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(std::string("--regions=") + path + ": "));
  }
}

class TransportOfNobodyTest : public ::testing::Test {
 protected:
  Transport Of(TransportKind kind) { return Transport(client_, kind, common_); }

  CommonFlags common_{.server = "unix:/tmp/there is no such socket", .deadline = absl::Seconds(30)};
  Client client_{common_.server, {}};
};

TEST_F(TransportOfNobodyTest, AutoDoesWithoutRegions) {
  Transport transport = Of(TransportKind::kAuto);
  EXPECT_THAT(transport.Allocate(std::size_t{4} << 20), IsOkAndHolds(nullptr));
  const std::optional<ArrayType> type = ArrayType{DType::kF32, {4}, 16};
  const auto places = transport.Place({&type, 1});
  ASSERT_TRUE(places.ok()) << places.status();
  EXPECT_EQ((*places)[0].region, nullptr);
  EXPECT_FALSE((*places)[0].keep.has_value());
}

TEST_F(TransportOfNobodyTest, ShmTellsWhyThereAreNone) {
  Transport transport = Of(TransportKind::kShm);
  EXPECT_TRUE(absl::IsUnavailable(transport.Allocate(1).status()));
  EXPECT_THAT(transport.Allocate(0), IsOkAndHolds(nullptr));
}

TEST_F(TransportOfNobodyTest, InlineSharesNothing) {
  Transport transport = Of(TransportKind::kInline);
  EXPECT_THAT(transport.Allocate(std::size_t{4} << 20), IsOkAndHolds(nullptr));
}

TEST_F(TransportOfNobodyTest, TellsHowArraysHaveTravelled) {
  Transport transport = Of(TransportKind::kStream);
  const Operand array{.dtype = DType::kU8, .shape = {1}, .data = "x"};
  const Streamed streamed{.operands = {1}, .results = {0}};
  EXPECT_EQ(transport.WayOf(array, 0, streamed), "inline");
  EXPECT_EQ(transport.WayOf(array, 1, streamed), "stream");
  EXPECT_EQ(transport.WayOf({.resident = "id"}, 2, streamed), "resident");
  EXPECT_EQ(Transport::WayOf(Destination(), 0, streamed), "stream");
  EXPECT_EQ(Transport::WayOf(Destination(), 1, streamed), "inline");
  EXPECT_EQ(Transport::WayOf(Destination{.keep = absl::ZeroDuration()}, 2, streamed), "resident");
}

TEST(StreamFromBytesTest, AllOrNothingUnlessTheLibraryChooses) {
  EXPECT_EQ(StreamFromBytes(TransportKind::kStream), 1);
  EXPECT_EQ(StreamFromBytes(TransportKind::kInline), 0);
  EXPECT_EQ(StreamFromBytes(TransportKind::kAuto), ClientOptions().stream_from_bytes);
}

}  // namespace
}  // namespace warpline::client
