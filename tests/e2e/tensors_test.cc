// TensorService through a real daemon: tensors are made, filled in pieces, read in pieces, and end.
#include "tests/e2e/tensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/clock.h"

namespace warpline {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

void ExpectRefused(const grpc::Status& status, grpc::StatusCode code, const std::string& field,
                   const std::string& text) {
  EXPECT_EQ(status.error_code(), code) << status.error_message();
  EXPECT_THAT(status.error_message(), HasSubstr(text));
  if (!field.empty()) {
    EXPECT_EQ(DetailsOf(status).fields, std::vector<std::string>({field}));
  }
}

class TensorsTest : public ::testing::Test {
 protected:
  Daemon daemon_;
  Tensors tensors_{daemon_.Channel()};
};

TEST_F(TensorsTest, WhatIsPutIsGot) {
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{4097}, kMiB, 5 * kMiB + 3}) {
    const std::string data = Pattern(size);
    const std::string id = tensors_.Made(v1::DATA_TYPE_U8, {static_cast<std::int64_t>(size)}, data);
    const Tensors::Got got = tensors_.Get(id);
    ASSERT_TRUE(got.status.ok()) << got.status.error_message();
    EXPECT_TRUE(got.data == data) << size;
    EXPECT_TRUE(got.in_order);
    EXPECT_EQ(got.info.size_bytes(), static_cast<std::int64_t>(size));
    EXPECT_EQ(got.info.data_type(), v1::DATA_TYPE_U8);
    EXPECT_TRUE(tensors_.Drop(id).status.ok());
  }
  // A worker gives the memory of a dropped tensor back, after the answer.
  EXPECT_TRUE(daemon_.AwaitMetric("warpline_resident_tensors", "", 0));
  EXPECT_TRUE(daemon_.AwaitMetric("warpline_resident_bytes", "device=\"0\"", 0));
  EXPECT_TRUE(daemon_.AwaitMetric("warpline_admission_bytes", "state=\"used\"", 0));
  EXPECT_EQ(daemon_.Metric("warpline_pinned_bytes", "state=\"used\""), 0);
}

TEST_F(TensorsTest, MessagesOfAnySizeMakeOneRange) {
  const std::string data = Pattern(9 * kMiB + 5);
  for (const std::size_t chunk : {std::size_t{1000}, kMiB - 1, 3 * kMiB, 4 * kMiB}) {
    const std::string part = data.substr(0, chunk == 1000 ? 70000 : data.size());
    const auto created = tensors_.Create(v1::DATA_TYPE_U8, {static_cast<std::int64_t>(part.size())});
    const std::string id = created.response.tensor().resident().id();
    EXPECT_EQ(created.response.tensor().missing_bytes(), static_cast<std::int64_t>(part.size()));
    const auto put = tensors_.Put(id, 0, part, chunk);
    ASSERT_TRUE(put.status.ok()) << put.status.error_message();
    EXPECT_EQ(put.response.missing_bytes(), 0);
    EXPECT_TRUE(tensors_.Get(id).data == part) << chunk;
  }
}

TEST_F(TensorsTest, RangesComeOverSeveralConnectionsAtOnce) {
  constexpr std::size_t kRanges = 6, kRange = 3 * kMiB + 7;
  const std::string data = Pattern(kRanges * kRange);
  const auto created = tensors_.Create(v1::DATA_TYPE_U8, {static_cast<std::int64_t>(data.size())});
  const std::string id = created.response.tensor().resident().id();
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < kRanges; ++i) {
    threads.emplace_back([&, i] {
      Tensors own(daemon_.Channel());
      const auto put = own.Put(id, i * kRange, std::string_view(data).substr(i * kRange, kRange));
      EXPECT_TRUE(put.status.ok()) << put.status.error_message();
    });
  }
  for (std::thread& thread : threads) thread.join();
  threads.clear();
  std::vector<std::string> parts(kRanges);
  for (std::size_t i = 0; i < kRanges; ++i) {
    threads.emplace_back([&, i] {
      Tensors own(daemon_.Channel());
      const Tensors::Got got = own.Get(id, static_cast<std::int64_t>(i * kRange), kRange);
      EXPECT_TRUE(got.status.ok()) << got.status.error_message();
      EXPECT_TRUE(got.in_order);
      parts[i] = got.data;
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (std::size_t i = 0; i < kRanges; ++i) {
    EXPECT_TRUE(parts[i] == data.substr(i * kRange, kRange)) << i;
  }
}

TEST_F(TensorsTest, BytesAreCopiedOnceOnTheirWayInAndNotOnTheirWayOut) {
  constexpr std::size_t kBytes = 8 * kMiB;
  const std::string id = tensors_.Made(v1::DATA_TYPE_U8, {kBytes}, Pattern(kBytes));
  EXPECT_EQ(daemon_.Metric("warpline_host_copy_bytes_total", "site=\"put\""), kBytes);
  EXPECT_TRUE(tensors_.Get(id).status.ok());
  EXPECT_EQ(daemon_.Metric("warpline_host_copy_bytes_total"), kBytes);
}

TEST_F(TensorsTest, AnUnfinishedTensorNamesWhatIsMissing) {
  const auto created = tensors_.Create(v1::DATA_TYPE_F32, {100});
  const std::string id = created.response.tensor().resident().id();
  ASSERT_TRUE(tensors_.Put(id, 100, Pattern(50)).status.ok());
  ExpectRefused(tensors_.Get(id).status, grpc::StatusCode::INVALID_ARGUMENT, "id", "bytes 0 to 99");
  v1::TransposeRequest request;
  request.mutable_x()->mutable_resident()->set_id(id);
  grpc::ClientContext context;
  v1::TransposeResponse response;
  ExpectRefused(v1::KernelService::NewStub(daemon_.Channel())->Transpose(&context, request, &response),
                grpc::StatusCode::INVALID_ARGUMENT, "x.resident.id", "bytes 0 to 99");
}

TEST_F(TensorsTest, RangesThatMakeNoSenseAreRefused) {
  const auto created = tensors_.Create(v1::DATA_TYPE_U8, {1000});
  const std::string id = created.response.tensor().resident().id();
  constexpr auto kInvalid = grpc::StatusCode::INVALID_ARGUMENT;
  const auto message = [&](std::int64_t offset, const std::string& data) {
    v1::PutRequest request;
    request.set_id(id);
    request.set_offset(offset);
    request.set_data(data);
    return request;
  };
  ExpectRefused(tensors_.PutMessages({}).status, kInvalid, "", "without a message");
  ExpectRefused(tensors_.PutMessages({message(-1, "x")}).status, kInvalid, "offset", "-1");
  ExpectRefused(tensors_.PutMessages({message(1001, "x")}).status, kInvalid, "offset", "1000 bytes");
  ExpectRefused(tensors_.PutMessages({message(999, "xy")}).status, kInvalid, "offset", "bytes 999 to 1000");
  ExpectRefused(tensors_.PutMessages({message(std::int64_t{1} << 62, "x")}).status, kInvalid, "offset", "");
  ExpectRefused(tensors_.PutMessages({message(0, "xy"), message(3, "z")}).status, kInvalid, "offset",
                "3, but the message before ended at 2");
  ExpectRefused(tensors_.PutMessages({message(0, "xy"), message(1, "z")}).status, kInvalid, "offset",
                "1, but the message before ended at 2");
  ExpectRefused(tensors_.PutMessages({message(0, std::string(4 * kMiB + 1, 'x'))}).status, kInvalid, "data",
                "4194304");
  v1::PutRequest other = message(2, "z");
  other.set_id("another");
  ExpectRefused(tensors_.PutMessages({message(0, "xy"), other}).status, kInvalid, "id", "differs");
  v1::PutRequest nameless = message(0, "x");
  nameless.clear_id();
  ExpectRefused(tensors_.PutMessages({nameless}).status, kInvalid, "id", "missing");
  // None of the refused messages counts.
  EXPECT_EQ(tensors_.List().response.tensors(0).missing_bytes(), 1000);
  ASSERT_TRUE(tensors_.Put(id, 200, Pattern(100)).status.ok());
  ExpectRefused(tensors_.Put(id, 250, "x").status, kInvalid, "offset", "bytes 250 to 250 are there already");
  ExpectRefused(tensors_.Put(id, 100, Pattern(101)).status, kInvalid, "offset", "bytes 200 to 200");
  ASSERT_TRUE(tensors_.Put(id, 0, Pattern(200)).status.ok());
  ASSERT_TRUE(tensors_.Put(id, 300, Pattern(700)).status.ok());
  ExpectRefused(tensors_.Put(id, 0, "x").status, kInvalid, "offset", "complete");
  ExpectRefused(tensors_.Get(id, -1).status, kInvalid, "offset", "-1");
  ExpectRefused(tensors_.Get(id, 1001).status, kInvalid, "offset", "1000");
  ExpectRefused(tensors_.Get(id, 0, -1).status, kInvalid, "length", "-1");
  ExpectRefused(tensors_.Get(id, 999, 2).status, kInvalid, "length", "1000");
  EXPECT_EQ(tensors_.Get(id, 1000).data, "");
  EXPECT_EQ(tensors_.Get(id, 999, 1).data.size(), 1u);
}

TEST_F(TensorsTest, ShapesAndLeasesThatMakeNoSenseAreRefused) {
  constexpr auto kInvalid = grpc::StatusCode::INVALID_ARGUMENT;
  ExpectRefused(tensors_.Create(v1::DATA_TYPE_UNSPECIFIED, {1}).status, kInvalid, "data_type", "missing");
  ExpectRefused(tensors_.Create(v1::DATA_TYPE_F32, {-1}).status, kInvalid, "shape", "-1");
  ExpectRefused(tensors_.Create(v1::DATA_TYPE_F32, {1, 1, 1, 1, 1, 1, 1, 1, 1}).status, kInvalid, "shape",
                "rank 9");
  ExpectRefused(tensors_.Create(v1::DATA_TYPE_F64, {std::int64_t{1} << 40, std::int64_t{1} << 40}).status,
                kInvalid, "shape", "2^56");
  ExpectRefused(tensors_.Create(v1::DATA_TYPE_F32, {1}, -1).status, kInvalid, "ttl_seconds", "-1");
  ExpectRefused(tensors_.Create(v1::DATA_TYPE_F32, {1}, 1e9).status, kInvalid, "ttl_seconds", "86400");
  v1::CreateRequest request;
  request.set_data_type(v1::DATA_TYPE_F32);
  request.set_device(7);
  grpc::ClientContext context;
  v1::CreateResponse response;
  ExpectRefused(tensors_.stub().Create(&context, request, &response), kInvalid, "device", "7 is not in 0..");
  ExpectRefused(tensors_.List(-1).status, kInvalid, "page_size", "-1");
  EXPECT_EQ(tensors_.List().response.tensors_size(), 0);
}

TEST_F(TensorsTest, IdsOfNobodyAndOfOthersAreToldApart) {
  Daemon other;
  Tensors others(other.Channel());
  const std::string foreign = others.Made(v1::DATA_TYPE_U8, {1}, "x");
  const std::string dropped = tensors_.Made(v1::DATA_TYPE_U8, {1}, "x");
  ASSERT_TRUE(tensors_.Drop(dropped).status.ok());
  const auto expect = [&](const std::string& id, grpc::StatusCode code, const std::string& text) {
    ExpectRefused(tensors_.Get(id).status, code, "id", text);
    ExpectRefused(tensors_.Put(id, 0, "x").status, code, "id", text);
    ExpectRefused(tensors_.Drop(id).status, code, "id", text);
    ExpectRefused(tensors_.Renew(id, 0).status, code, "id", text);
    // Never the whole id, which is a secret.
    EXPECT_EQ(tensors_.Get(id).status.error_message().find(id), std::string::npos);
  };
  expect("nonsense", grpc::StatusCode::NOT_FOUND, "8 bytes");
  expect(dropped, grpc::StatusCode::NOT_FOUND, "..." + dropped.substr(dropped.size() - 8));
  expect(foreign, grpc::StatusCode::FAILED_PRECONDITION, "made by server " + foreign.substr(0, 8));
}

TEST_F(TensorsTest, ALeaseEndsAndRenewingPutsItOff) {
  const std::string brief = tensors_.Made(v1::DATA_TYPE_U8, {1}, "x", 0.2);
  const std::string renewed = tensors_.Made(v1::DATA_TYPE_U8, {1}, "x", 0.2);
  const auto renewal = tensors_.Renew(renewed, 600);
  ASSERT_TRUE(renewal.status.ok());
  EXPECT_GT(renewal.response.tensor().resident().ttl_seconds(), 500);
  EXPECT_TRUE(daemon_.AwaitMetric("warpline_leases_expired_total", "", 1));
  EXPECT_EQ(tensors_.Get(brief).status.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_TRUE(tensors_.Get(renewed).status.ok());
  EXPECT_EQ(daemon_.Metric("warpline_resident_tensors"), 1);
}

TEST_F(TensorsTest, AllOfThemAreListedPageByPage) {
  std::set<std::string> ids, listed;
  for (int i = 0; i < 7; ++i) ids.insert(tensors_.Made(v1::DATA_TYPE_F32, {2, 3}, Pattern(24)));
  std::string token;
  int pages = 0;
  do {
    const auto page = tensors_.List(3, token);
    ASSERT_TRUE(page.status.ok());
    EXPECT_LE(page.response.tensors_size(), 3);
    for (const v1::TensorInfo& info : page.response.tensors()) {
      listed.insert(info.resident().id());
      EXPECT_EQ(info.size_bytes(), 24);
      EXPECT_EQ(info.shape_size(), 2);
    }
    token = page.response.next_page_token();
    ++pages;
  } while (!token.empty());
  EXPECT_EQ(listed, ids);
  EXPECT_EQ(pages, 3);
  EXPECT_EQ(tensors_.List(7).response.next_page_token(), "") << "there are no more";
}

TEST_F(TensorsTest, ManyAreDroppedByOneCall) {
  v1::DropRequest request;
  for (int i = 0; i < 5; ++i) request.add_ids(tensors_.Made(v1::DATA_TYPE_U8, {1}, "x"));
  request.add_ids("no id");
  auto dropped = tensors_.Drop(request);
  ASSERT_TRUE(dropped.status.ok()) << dropped.status.error_message();
  EXPECT_EQ(dropped.response.dropped(), 5);
  dropped = tensors_.Drop(request);
  ASSERT_TRUE(dropped.status.ok()) << dropped.status.error_message();
  EXPECT_EQ(dropped.response.dropped(), 0);
  EXPECT_TRUE(daemon_.AwaitMetric("warpline_resident_tensors", "", 0));
  request.set_id("no id");
  ExpectRefused(tensors_.Drop(request).status, grpc::StatusCode::INVALID_ARGUMENT, "ids", "together");
  request.clear_id();
  while (request.ids_size() <= 1000) request.add_ids("no id");
  ExpectRefused(tensors_.Drop(request).status, grpc::StatusCode::INVALID_ARGUMENT, "ids", "1000");
}

TEST_F(TensorsTest, OneRenewIsForMany) {
  const auto renew = [&](const v1::RenewRequest& request) {
    return CallStub<v1::RenewResponse>(tensors_.stub(), &v1::TensorService::Stub::Renew, request);
  };
  v1::CreateRequest create;
  create.set_data_type(v1::DATA_TYPE_U8);
  create.add_shape(0);
  create.set_ttl_seconds(300);
  v1::RenewRequest request;
  for (int i = 0; i < 3; ++i) {
    const auto created =
        CallStub<v1::CreateResponse>(tensors_.stub(), &v1::TensorService::Stub::Create, create);
    ASSERT_TRUE(created.status.ok()) << created.status.error_message();
    request.add_ids(created.response.tensor().resident().id());
  }
  request.add_ids("no id");
  request.set_ttl_seconds(200);
  auto renewed = renew(request);
  ASSERT_TRUE(renewed.status.ok()) << renewed.status.error_message();
  EXPECT_THAT(renewed.response.ttl_seconds(), ElementsAre(200, 200, 200, 0));
  EXPECT_FALSE(renewed.response.has_tensor());
  request.set_id("no id");
  ExpectRefused(renew(request).status, grpc::StatusCode::INVALID_ARGUMENT, "ids", "together");
  request.clear_id();
  request.set_ttl_seconds(-1);
  ExpectRefused(renew(request).status, grpc::StatusCode::INVALID_ARGUMENT, "ttl_seconds", "-1");
  request.set_ttl_seconds(0);
  while (request.ids_size() <= 1000) request.add_ids("no id");
  ExpectRefused(renew(request).status, grpc::StatusCode::INVALID_ARGUMENT, "ids", "1000");
}

TEST_F(TensorsTest, RequestsFreeWhatTheyUsed) {
  const auto kernels = v1::KernelService::NewStub(daemon_.Channel());
  v1::TransposeRequest request = IotaTranspose(2, 2);
  request.mutable_options()->add_sinks()->mutable_resident();
  for (int i = 0; i < 3; ++i) {
    const auto made = CallStub<v1::TransposeResponse>(*kernels, &v1::KernelService::Stub::Transpose, request);
    ASSERT_TRUE(made.status.ok()) << made.status.error_message();
    // The next one reads this one, and frees it.
    const std::string id = made.response.y().resident().id();
    request.mutable_x()->Clear();
    request.mutable_x()->mutable_resident()->set_id(id);
    request.mutable_options()->clear_free_after();
    request.mutable_options()->add_free_after(id);
    for (int j = 0; j <= i; ++j) request.mutable_options()->add_free_after("no id");
  }
  EXPECT_TRUE(daemon_.AwaitMetric("warpline_resident_tensors", "", 1));
  // A plan does not depend on what is freed: there was one for the inline operand, and one for the others.
  EXPECT_EQ(daemon_.Metric("warpline_plan_cache_misses_total"), 2);
  // A request that fails frees nothing.
  request.add_perm(7);
  EXPECT_EQ(CallStub<v1::TransposeResponse>(*kernels, &v1::KernelService::Stub::Transpose, request)
                .status.error_code(),
            grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_TRUE(tensors_.Get(request.x().resident().id()).status.ok());
  request.clear_perm();
  while (request.options().free_after_size() <= 256) request.mutable_options()->add_free_after("id");
  ExpectRefused(
      CallStub<v1::TransposeResponse>(*kernels, &v1::KernelService::Stub::Transpose, request).status,
      grpc::StatusCode::INVALID_ARGUMENT, "options.free_after", "257 or more; the limit is 256");
}

TEST_F(TensorsTest, TenThousandComeAndGo) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  constexpr int kTimes = 500;
  constexpr double kMore = 1e9;  // a sanitizer keeps what was given back
#else
  constexpr int kTimes = 10000;
  constexpr double kMore = 16 << 20;
#endif
  const std::string megabyte(1 << 20, 'm');
  const auto come_and_go = [&](int times) {
    for (int i = 0; i < times; ++i) {
      const auto made = tensors_.Create(v1::DATA_TYPE_U8, {1 << 20});
      ASSERT_TRUE(made.status.ok()) << made.status.error_message();
      const std::string id = made.response.tensor().resident().id();
      // Most of them empty: what is written is not what a lease costs.
      if (i % 100 == 0) {
        ASSERT_TRUE(tensors_.Put(id, 0, megabyte).status.ok());
      }
      ASSERT_TRUE(tensors_.Drop(id).status.ok());
    }
  };
  come_and_go(200);  // what is taken once
  const int descriptors = daemon_.Descriptors();
  const double resident = daemon_.ResidentBytes();
  const double device = daemon_.Metric("warpline_device_memory_bytes");  // of a GPU
  come_and_go(kTimes);
  EXPECT_TRUE(daemon_.AwaitMetric("warpline_resident_tensors", "", 0));
  EXPECT_TRUE(daemon_.AwaitMetric("warpline_resident_bytes", "", 0));
  EXPECT_TRUE(daemon_.AwaitMetric("warpline_pinned_bytes", "state=\"used\"", 0));
  if (daemon_.backend() == "cuda") {
    EXPECT_EQ(daemon_.Metric("warpline_device_memory_bytes"), device);
  }
  EXPECT_TRUE(daemon_.AwaitDescriptors(descriptors));
  EXPECT_LE(daemon_.ResidentBytes(), resident + kMore);
}

TEST(TensorQuotaTest, AFullQuotaGivesTheFigures) {
  const bool on_cpu = Daemon().backend() == "cpu";
  // A GPU's memory comes in pieces of 32 MiB.
  const std::int64_t quota = on_cpu ? 1 << 20 : 32 << 20;
  Daemon daemon({"--resident-bytes=" + std::to_string(quota)});
  Tensors tensors(daemon.Channel());
  const auto most = tensors.Create(v1::DATA_TYPE_U8, {quota - 100000});
  ASSERT_TRUE(most.status.ok());
  const grpc::Status full = tensors.Create(v1::DATA_TYPE_U8, {200000}).status;
  ExpectRefused(full, grpc::StatusCode::RESOURCE_EXHAUSTED, "", std::to_string(quota));
  EXPECT_TRUE(DetailsOf(full).has_retry_info) << "others may drop theirs";
  const grpc::Status never = tensors.Create(v1::DATA_TYPE_U8, {quota + 1}).status;
  ExpectRefused(never, grpc::StatusCode::RESOURCE_EXHAUSTED, "", std::to_string(quota + 1));
  EXPECT_FALSE(DetailsOf(never).has_retry_info) << "waiting does not help";
  // A result has no room either, and nothing is left of the request.
  v1::TransposeRequest request = IotaTranspose(200, 200);
  request.mutable_options()->add_sinks()->mutable_resident();
  grpc::ClientContext context;
  v1::TransposeResponse response;
  ExpectRefused(v1::KernelService::NewStub(daemon.Channel())->Transpose(&context, request, &response),
                grpc::StatusCode::RESOURCE_EXHAUSTED, "", "160000");
  ASSERT_TRUE(tensors.Drop(most.response.tensor().resident().id()).status.ok());
  EXPECT_TRUE(tensors.Create(v1::DATA_TYPE_U8, {200000}).status.ok());
  EXPECT_TRUE(daemon.AwaitMetric("warpline_admission_bytes", "state=\"used\"", 0));
}

}  // namespace
}  // namespace warpline
