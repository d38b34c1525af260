// A deliberate data race in a handler of the real server. ctest expects ThreadSanitizer to report it: under a
// suppression, or an option, that hid the races of handlers, this test fails.
#include <atomic>
#include <cstdio>
#include <memory>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "server/base/worker_pool.h"
#include "server/observe/metrics.h"
#include "server/rpc/inflater.h"
#include "server/rpc/rpc_server.h"
#include "server/rpc/unary_call.h"
#include "server/schedule/admission.h"
#include "server/schedule/fair_workers.h"
#include "tests/testing/bound.h"
#include "warpline/v1/warpline.grpc.pb.h"

namespace warpline {
namespace {

constexpr int kThreads = 4;
constexpr int kClients = 8;

std::atomic<int> inside = 0;
int racing = 0;

void InjectedRace() { ++racing; }

void Handle(UnaryCall& call) {
  // Locks that one handler leaves and another enters would order their accesses. So two at a time wait for
  // each other, with relaxed operations, which order nothing; not forever, as the first call is handled by
  // the thread that received it, before others come.
  const int number = inside.fetch_add(1, std::memory_order_relaxed);
  const absl::Time give_up = absl::Now() + absl::Milliseconds(500);
  while (inside.load(std::memory_order_relaxed) < (number | 1) + 1 && absl::Now() < give_up) {
  }
  InjectedRace();
  call.Respond(grpc::ByteBuffer());
}

int Main() {
  Metrics metrics;
  Admission admission({.max_jobs = 1, .max_bytes = 1 << 20}, metrics);
  FairWorkers workers(1);
  Inflater inflater(admission, workers);
  WorkerPool crew(kThreads);
  const auto unused = [](UnaryCall& call) { call.RespondError(absl::UnimplementedError("")); };
  auto server = RpcServer::Start(
      {.listen = Bound({"127.0.0.1:0"}),
       .crew = &crew,
       .max_message_bytes = 1 << 20,
       .memory_quota_bytes = 64 << 20,
       .max_streams_per_connection = 100},
      {.transpose = Handle, .gemm = unused, .reduce = unused, .get_info = unused, .echo = unused}, inflater,
      metrics);
  if (!server.ok()) {
    std::fprintf(stderr, "%s\n", server.status().ToString().c_str());
    return 1;
  }
  std::vector<std::thread> clients;
  for (int i = 0; i < kClients; ++i) {
    clients.emplace_back([&] {
      grpc::ChannelArguments arguments;
      arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);  // a connection of its own
      arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
      const auto stub = v1::KernelService::NewStub(grpc::CreateCustomChannel(
          (*server)->addresses()[0], grpc::InsecureChannelCredentials(), arguments));
      grpc::ClientContext context;
      context.set_deadline(absl::ToChronoTime(absl::Now() + absl::Seconds(30)));
      v1::TransposeResponse response;
      const grpc::Status status = stub->Transpose(&context, {}, &response);
      if (!status.ok()) std::fprintf(stderr, "%s\n", status.error_message().c_str());
    });
  }
  for (std::thread& client : clients) client.join();
  (*server)->Shutdown(absl::Now() + absl::Seconds(10));
  std::printf("%d calls, %d counted\n", inside.load(), racing);
  return 0;
}

}  // namespace
}  // namespace warpline

int main() { return warpline::Main(); }
