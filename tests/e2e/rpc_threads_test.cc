// Several threads that receive: what their number must not change.
#include <gtest/gtest.h>
#include <signal.h>

#include <atomic>
#include <filesystem>
#include <iterator>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/time/clock.h"
#include "tests/e2e/daemon.h"
#include "tests/e2e/requests.h"

namespace warpline {
namespace {

// Right answers of `count` requests of one client, one after the other.
int TransposeInTurn(const Daemon& daemon, int count, int seed) {
  const auto stub = v1::KernelService::NewStub(daemon.Channel());
  int right = 0;
  for (int i = 0; i < count; ++i) {
    // Now and then one whose message does not come with its headers.
    const int columns = i % 16 == 15 ? 100'000 : 3 + (seed + i) % 5;
    v1::TransposeRequest request = IotaTranspose(2, columns);
    grpc::ClientContext context;
    SetTimeout(context, absl::Seconds(60));
    // The client of gRPC 1.51 asks errno about a connection after it has allocated memory, and takes what the
    // allocator leaves there for a failure: among many threads one in a thousand first attempts.
    context.set_wait_for_ready(true);
    v1::TransposeResponse response;
    if (const grpc::Status status = stub->Transpose(&context, request, &response); !status.ok()) {
      ADD_FAILURE() << "request " << i << ": " << status.error_code() << " " << status.error_message();
      break;
    }
    const std::vector<float> values = F32Values(response.y());
    bool same = values.size() == 2 * static_cast<std::size_t>(columns);
    for (int k = 0; same && k < 2 * columns; ++k) {
      same = values[static_cast<std::size_t>(k)] == static_cast<float>(k / 2 + (k % 2) * columns);
    }
    right += same;
  }
  return right;
}

TEST(RpcThreadsTest, ThereAreMoreThreadsForMoreCpus) {
  const auto threads = [](const char* cpus) {
    const Daemon daemon({cpus});
    EXPECT_EQ(TransposeInTurn(daemon, 10, 0), 10);
    const std::filesystem::directory_iterator tasks("/proc/" + std::to_string(daemon.pid()) + "/task");
    return std::distance(begin(tasks), end(tasks));
  };
  EXPECT_GT(threads("--cpus=16"), threads("--cpus=1") + 8);
}

TEST(RpcThreadsTest, ManyCallsAndThenFewAreAnsweredWhicheverThreadHasThem) {
  const Daemon daemon({"--cpus=16"});
  for (int round = 0; round < 2; ++round) {
    constexpr int kClients = 48, kEach = 40;
    std::atomic<int> right = 0;
    std::vector<std::jthread> clients;
    for (int client = 0; client < kClients; ++client) {
      clients.emplace_back([&, client] { right += TransposeInTurn(daemon, kEach, client); });
    }
    clients.clear();
    EXPECT_EQ(right, kClients * kEach);
    // The calls that were made ready under load are the next ones, and their threads sleep by now.
    absl::SleepFor(absl::Milliseconds(200));
    EXPECT_EQ(TransposeInTurn(daemon, 80, 0), 80);
  }
}

// Streams stay with the thread that had them when they came, though it sleeps when the load is gone.
TEST(RpcThreadsTest, AStreamThatBeganUnderLoadHearsOfTheDrainLater) {
  Daemon daemon({"--cpus=16"});
  std::atomic<bool> stopped = false;
  std::vector<std::jthread> clients;
  const absl::Cleanup stop = [&] { stopped = true; };
  for (int client = 0; client < 32; ++client) {
    clients.emplace_back([&, client] {
      while (!stopped) TransposeInTurn(daemon, 10, client);
    });
  }
  const absl::Time patience = absl::Now() + absl::Minutes(1);
  while (!(daemon.Metric("warpline_requests_total", "code=\"OK\"") > 1000)) {
    ASSERT_LT(absl::Now(), patience);
    absl::SleepFor(absl::Milliseconds(1));
  }
  std::vector<std::unique_ptr<StreamCall>> watches;
  for (int i = 0; i < 12; ++i) {
    watches.push_back(std::make_unique<StreamCall>(daemon.Channel(), "/grpc.health.v1.Health/Watch"));
    ASSERT_TRUE(watches.back()->Write(""));
    ASSERT_EQ(watches.back()->Read(), "\x08\x01");
  }
  stopped = true;
  clients.clear();
  absl::SleepFor(absl::Milliseconds(200));
  daemon.Signal(SIGTERM);
  for (const auto& watch : watches) EXPECT_EQ(watch->Read(), "\x08\x02");
  EXPECT_EQ(daemon.Wait(), 0);
}

TEST(RpcThreadsTest, WhoeverMeetsTheEndOfTheServerIsToldThatItIsUnavailable) {
  Daemon daemon({"--cpus=16"});
  std::atomic<int> answered = 0, unavailable = 0;
  std::atomic<bool> stopped = false;
  std::vector<std::jthread> clients;
  const absl::Cleanup stop = [&] { stopped = true; };
  for (int client = 0; client < 32; ++client) {
    clients.emplace_back([&] {
      const auto stub = v1::KernelService::NewStub(daemon.Channel());
      while (!stopped) {
        grpc::ClientContext context;
        SetTimeout(context, absl::Seconds(60));
        v1::TransposeResponse response;
        const grpc::Status status = stub->Transpose(&context, IotaTranspose(2, 3), &response);
        if (!status.ok()) {
          EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE) << status.error_message();
        }
        ++(status.ok() ? answered : unavailable);
      }
    });
  }
  const absl::Time patience = absl::Now() + absl::Minutes(1);
  while (answered < 1000) {
    ASSERT_LT(absl::Now(), patience);
    absl::SleepFor(absl::Milliseconds(1));
  }
  daemon.Signal(SIGTERM);
  EXPECT_EQ(daemon.Wait(), 0);
  stopped = true;
  clients.clear();
  EXPECT_GE(unavailable, 32);
}

}  // namespace
}  // namespace warpline
