// Regions against a server in the test's process: how they are opened, and what refuses to.
#include "client/src/region_client.h"

#include <gmock/gmock.h>
#include <grpc/grpc.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "tests/client/src/fake_regions.h"
#include "tests/testing/patience.h"
#include "tests/testing/status_matchers.h"
#include "warpline/client.h"

namespace warpline::client {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::warpline::testing::IsOk;
using ::warpline::testing::StatusIs;

constexpr absl::Duration kRegionTimeout = absl::Seconds(30);

class RegionClientTest : public ::testing::Test {
 protected:
  // Kept up between the tests: each full shutdown of gRPC 1.51 with a server in the process takes 10 s.
  static void SetUpTestSuite() { grpc_init(); }

  RegionClientTest() : path_("/tmp/warpline_region_client_test." + std::to_string(::getpid())) {
    server_.emplace(path_);
    client_.emplace("unix:" + path_, ClientOptions{});
  }

  Array Filled(Region& region, std::int64_t count, std::int32_t first) {
    absl::StatusOr<Array> array = region.Allocate(DType::kI32, {count});
    EXPECT_THAT(array, IsOk());
    auto* const data = static_cast<std::int32_t*>(array->data());
    std::iota(data, data + count, first);
    return *std::move(array);
  }
  static std::int32_t FirstOf(const Array& array) { return *static_cast<const std::int32_t*>(array.data()); }

  const std::string path_;
  std::optional<FakeRegions> server_;
  std::optional<Client> client_;
};

TEST_F(RegionClientTest, RoundsUpToPages) {
  const auto region = client_->OpenRegion(5000, kRegionTimeout);
  ASSERT_THAT(region, IsOk());
  EXPECT_EQ(region->bytes(), 8192u);
  EXPECT_EQ(region->free_bytes(), 8192u);
  EXPECT_THAT(region->status(), IsOk());
}

TEST_F(RegionClientTest, RefusesWhatIsNoRegion) {
  EXPECT_THAT(client_->OpenRegion(0, kRegionTimeout).status(), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(client_->OpenRegion(~std::size_t{0}, kRegionTimeout).status(),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(client_->OpenRegion(4096, absl::ZeroDuration()).status(),
              StatusIs(absl::StatusCode::kInvalidArgument));
  Client far("localhost:1", {});
  EXPECT_THAT(far.OpenRegion(4096, kRegionTimeout).status(),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("localhost:1")));
}

TEST_F(RegionClientTest, PassesTheServersRefusalsOn) {
  server_->open_status = grpc::Status(grpc::StatusCode::UNIMPLEMENTED, "it shares no memory");
  EXPECT_THAT(client_->OpenRegion(4096, kRegionTimeout).status(),
              StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("it shares no memory")));
  server_->open_status = grpc::Status::OK;
  server_->handover_error.emplace();
  server_->handover_error->set_code(grpc::StatusCode::NOT_FOUND);
  server_->handover_error->set_message("no such ticket");
  EXPECT_THAT(client_->OpenRegion(4096, kRegionTimeout).status(),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("no such ticket")));
}

TEST_F(RegionClientTest, SaysWhereTheRegionSocketIsMissing) {
  Client other("unix:" + path_, {.region_socket = "/tmp/there is no such socket"});
  EXPECT_THAT(other.OpenRegion(4096, kRegionTimeout).status(),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("/tmp/there is no such socket")));
  Client named("unix:" + path_, {.region_socket = path_ + ".regions"});
  EXPECT_THAT(named.OpenRegion(4096, kRegionTimeout).status(), IsOk());
}

TEST_F(RegionClientTest, AsksForAnotherTicketIfTheFirstHasExpired) {
  server_->ticket_ttl_seconds = 0;
  EXPECT_THAT(client_->OpenRegion(4096, kRegionTimeout).status(), IsOk());
  EXPECT_EQ(server_->opened(), 2);
}

TEST_F(RegionClientTest, ComputesFromRegionToRegion) {
  auto region = client_->OpenRegion(1 << 20, kRegionTimeout);
  ASSERT_THAT(region, IsOk());
  const Array x = Filled(*region, 1000, 7), y = Filled(*region, 1000, 0);
  const auto at_y =
      client_->Transpose({.x = x.View()}, kRegionTimeout, {.destination = {y.data(), y.bytes()}});
  ASSERT_THAT(at_y, IsOk());
  EXPECT_EQ(at_y->array.data(), y.data());
  EXPECT_EQ(std::memcmp(x.data(), y.data(), x.bytes()), 0);
  const std::size_t before = region->free_bytes();
  {
    const auto anew =
        client_->Transpose({.x = x.View()}, kRegionTimeout, {.destination = {.region = &*region}});
    ASSERT_THAT(anew, IsOk());
    EXPECT_EQ(FirstOf(anew->array), 7);
    EXPECT_LT(region->free_bytes(), before);
  }
  EXPECT_EQ(region->free_bytes(), before) << "the result has gone";
  EXPECT_THAT(server_->sources(), ElementsAre("region", "region"));
}

TEST_F(RegionClientTest, ReadsAPartOfAnArray) {
  auto region = client_->OpenRegion(1 << 20, kRegionTimeout);
  ASSERT_THAT(region, IsOk());
  const Array x = Filled(*region, 1000, 0);
  ConstArray part = x.View();
  part.data = static_cast<const std::int32_t*>(x.data()) + 3;
  part.shape = {10};
  const auto result = client_->Transpose({.x = part}, kRegionTimeout);
  ASSERT_THAT(result, IsOk());
  EXPECT_EQ(FirstOf(result->array), 3);
  part.shape = {1022};  // beyond the array, though within the region
  EXPECT_THAT(client_->Transpose({.x = part}, kRegionTimeout).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("x: 4088 bytes of a region")));
}

TEST_F(RegionClientTest, MixesWhatIsSharedAndWhatIsSent) {
  auto region = client_->OpenRegion(1 << 20, kRegionTimeout);
  ASSERT_THAT(region, IsOk());
  const Array x = Filled(*region, 10, 5);
  const std::vector<std::int32_t> sent = {9, 8};
  RunArgs args;
  for (const char* name : {"y", "z"}) {
    v1::Step& step = *args.program.add_steps();
    step.set_name(name);
    step.mutable_transpose();
    step.add_inputs(name == std::string("y") ? "s" : "x");
    args.program.add_outputs(name);
  }
  args.inputs = {{"s", ConstArray{DType::kI32, {2}, 0, sent.data()}}, {"x", x.View()}};
  args.destinations = {{.region = &*region}, {}};
  const auto result = client_->Run(args, kRegionTimeout);
  ASSERT_THAT(result, IsOk());
  EXPECT_EQ(FirstOf(result->outputs[0].second), 9);
  EXPECT_EQ(FirstOf(result->outputs[1].second), 5);
  EXPECT_THAT(server_->sources(), ElementsAre("inline", "region"));
  EXPECT_EQ(server_->calls().size(), 1u) << "all slices of a call have one number";
}

TEST_F(RegionClientTest, RefusesDestinationsThatCannotBe) {
  auto region = client_->OpenRegion(8192, kRegionTimeout);
  ASSERT_THAT(region, IsOk());
  const Array x = Filled(*region, 1024, 0);
  const auto call = [&](const Destination& destination) {
    return client_->Transpose({.x = x.View()}, kRegionTimeout, {.destination = destination}).status();
  };
  const Array small = Filled(*region, 10, 0);
  EXPECT_THAT(call({small.data(), small.bytes()}),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("the result has 4096 bytes")));
  EXPECT_THAT(call({small.data(), 4096}), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("across")));
  EXPECT_THAT(call({.region = &*region}),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("of its 8192 bytes")));
  EXPECT_THAT(call({small.data(), small.bytes(), {}, &*region}),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(call({.keep = absl::Seconds(1), .region = &*region}),
              StatusIs(absl::StatusCode::kInvalidArgument));
  Client other("unix:" + path_, {});
  EXPECT_THAT(
      other.Transpose({.x = x.View()}, kRegionTimeout, {.destination = {.region = &*region}}).status(),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("another client")));
  EXPECT_THAT(server_->sources(), ElementsAre()) << "none of them was sent";
  // Elements in another client's region are sent like any others.
  EXPECT_THAT(other.Transpose({.x = x.View()}, kRegionTimeout).status(), IsOk());
  EXPECT_THAT(server_->sources(), ElementsAre("inline"));
}

TEST_F(RegionClientTest, ArraysKeepTheRegionOpen) {
  auto region = client_->OpenRegion(8192, kRegionTimeout);
  ASSERT_THAT(region, IsOk());
  std::optional<Array> x = Filled(*region, 100, 3);
  const absl::StatusOr<Region> moved = *std::move(region);
  region = absl::UnknownError("moved");
  std::optional<Array> copy = x;
  x.reset();
  EXPECT_THAT(client_->Transpose({.x = copy->View()}, kRegionTimeout), IsOk());
  EXPECT_THAT(server_->sources(), ElementsAre("region"));
  server_->AwaitRegions(1);
}

TEST_F(RegionClientTest, ClosesTheRegionWithTheLastThatUsesIt) {
  std::optional<Array> x;
  {
    auto region = client_->OpenRegion(8192, kRegionTimeout);
    ASSERT_THAT(region, IsOk());
    x = Filled(*region, 100, 3);
  }
  server_->AwaitRegions(1);
  EXPECT_THAT(client_->Transpose({.x = x->View()}, kRegionTimeout), IsOk());
  x.reset();
  server_->AwaitRegions(0);
}

TEST_F(RegionClientTest, RegionsOutliveTheirClient) {
  auto region = client_->OpenRegion(8192, kRegionTimeout);
  ASSERT_THAT(region, IsOk());
  const Array x = Filled(*region, 100, 3);
  client_.reset();
  server_->AwaitRegions(0);
  EXPECT_EQ(FirstOf(x), 3);
  EXPECT_THAT(region->status(), StatusIs(absl::StatusCode::kUnavailable, HasSubstr("its client has gone")));
  EXPECT_THAT(region->Allocate(DType::kI32, {1}).status(), StatusIs(absl::StatusCode::kUnavailable));
}

TEST_F(RegionClientTest, LosesRegionsWithTheServerAndOpensNewOnes) {
  auto region = client_->OpenRegion(8192, kRegionTimeout);
  ASSERT_THAT(region, IsOk());
  const Array x = Filled(*region, 100, 3);
  server_->CloseRegions();
  AwaitThat("the end of the region", [&] { return !region->status().ok(); });
  const auto lost = StatusIs(absl::StatusCode::kUnavailable, HasSubstr("the server closed"));
  EXPECT_THAT(client_->Transpose({.x = x.View()}, kRegionTimeout).status(), lost);
  EXPECT_THAT(region->Allocate(DType::kI32, {1}).status(), lost);
  EXPECT_EQ(FirstOf(x), 3) << "the memory is there until the arrays have gone";
  server_.reset();
  server_.emplace(path_);
  auto other = client_->OpenRegion(8192, kRegionTimeout);
  // It may be by this call that the channel hears of the end of its connection.
  if (absl::IsUnavailable(other.status())) other = client_->OpenRegion(8192, kRegionTimeout);
  ASSERT_THAT(other, IsOk());
  const Array y = Filled(*other, 100, 4);
  EXPECT_THAT(client_->Transpose({.x = y.View()}, kRegionTimeout), IsOk());
}

}  // namespace
}  // namespace warpline::client
