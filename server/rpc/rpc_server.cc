#include "server/rpc/rpc_server.h"

#include <grpc/grpc.h>
#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/resource_quota.h>

#include <future>
#include <limits>
#include <thread>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "server/rpc/send_watchdog.h"
#include "server/rpc/unary_call.h"
#include "warpline/v1/warpline.grpc.pb.h"

namespace warpline {
namespace {

// Every method raw: requests are read from the slices as received.
using KernelMethods = v1::KernelService::WithRawMethod_Transpose<
    v1::KernelService::WithRawMethod_Gemm<v1::KernelService::WithRawMethod_Reduce<
        v1::KernelService::WithRawMethod_Run<v1::KernelService::Service>>>>;
using InfoMethods = v1::InfoService::WithRawMethod_GetInfo<v1::InfoService::Service>;
using EchoMethods = v1::EchoService::WithRawMethod_Echo<v1::EchoService::Service>;

// Calls that each queue has ready to be taken, by method: bursts up to this size find one waiting.
constexpr int kReadyCalls = 16;

template <typename Service, typename Request>
UnaryMethod MakeMethod(Service& service, Request request, const char* service_name, const char* name,
                       std::function<void(UnaryCall&)> handle, Metrics& metrics) {
  return {.service = service_name,
          .name = name,
          .request_next = [&service, request](
                              grpc::ServerContext* context, grpc::ByteBuffer* bytes,
                              UnaryMethod::Writer* writer, grpc::ServerCompletionQueue* queue,
                              void* tag) { (service.*request)(context, bytes, writer, queue, queue, tag); },
          .handle = std::move(handle),
          .series = metrics.Method(service_name, name)};
}

}  // namespace

struct RpcServer::Impl {
  Impl(const Options& options, Handlers handlers, Metrics& metrics)
      : echo(options.echo),
        watchdog(options.send_timeout),
        call_server{metrics, watchdog, counts, static_cast<std::size_t>(options.max_message_bytes)} {
    const char* kernels = v1::KernelService::service_full_name();
    methods.push_back(MakeMethod(kernel_methods, &KernelMethods::RequestTranspose, kernels, "Transpose",
                                 std::move(handlers.transpose), metrics));
    methods.push_back(MakeMethod(kernel_methods, &KernelMethods::RequestGemm, kernels, "Gemm",
                                 std::move(handlers.gemm), metrics));
    methods.push_back(MakeMethod(kernel_methods, &KernelMethods::RequestReduce, kernels, "Reduce",
                                 std::move(handlers.reduce), metrics));
    methods.push_back(MakeMethod(kernel_methods, &KernelMethods::RequestRun, kernels, "Run",
                                 std::move(handlers.run), metrics));
    methods.push_back(MakeMethod(info_methods, &InfoMethods::RequestGetInfo,
                                 v1::InfoService::service_full_name(), "GetInfo",
                                 std::move(handlers.get_info), metrics));
    if (options.echo) {
      methods.push_back(MakeMethod(echo_methods, &EchoMethods::RequestEcho,
                                   v1::EchoService::service_full_name(), "Echo", std::move(handlers.echo),
                                   metrics));
    }
  }

  void Serve(grpc::ServerCompletionQueue* queue) {
    void* tag = nullptr;
    bool ok = false;
    while (queue->Next(&tag, &ok)) static_cast<CompletionTag*>(tag)->Proceed(ok);
  }

  const bool echo;
  KernelMethods kernel_methods;
  InfoMethods info_methods;
  EchoMethods echo_methods;
  std::vector<UnaryMethod> methods;
  CallCounts counts;
  SendWatchdog watchdog;  // its thread may let go of a call last
  UnaryCall::Server call_server;
  std::vector<std::string> addresses;
  std::unique_ptr<grpc::Server> server;
  std::vector<std::unique_ptr<grpc::ServerCompletionQueue>> queues;
  std::vector<std::thread> threads;
};

absl::StatusOr<std::unique_ptr<RpcServer>> RpcServer::Start(const Options& options, Handlers handlers,
                                                            Metrics& metrics) {
  // Never shut down: after a large response one of gRPC's own threads polls for up to ten seconds, and the
  // shutdown of the library would wait for it. The process ends without.
  grpc_init();
  // Linked statically, neither would register itself.
  grpc::EnableDefaultHealthCheckService(true);
  grpc::reflection::InitProtoReflectionServerBuilderPlugin();

  auto impl = std::make_unique<Impl>(options, std::move(handlers), metrics);
  grpc::ServerBuilder builder;
  std::vector<int> ports(options.listen.size(), 0);
  for (std::size_t i = 0; i < options.listen.size(); ++i) {
    builder.AddListeningPort(options.listen[i], grpc::InsecureServerCredentials(), &ports[i]);
  }
  builder.SetMaxReceiveMessageSize(static_cast<int>(options.max_message_bytes));
  builder.SetMaxSendMessageSize(std::numeric_limits<int>::max());
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, options.max_streams_per_connection);
  // A client that does not even read its socket blocks a write, which no cancellation can take back. With
  // keepalive on, gRPC sets TCP_USER_TIMEOUT, which closes such a connection, and that frees what the write
  // held.
  const int send_timeout_ms = static_cast<int>(absl::ToInt64Milliseconds(options.send_timeout));
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, send_timeout_ms);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, send_timeout_ms);
  builder.AddChannelArgument(GRPC_ARG_ENABLE_PER_MESSAGE_DECOMPRESSION, 0);  // see inflate.h
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);  // two daemons on one port would share it silently
  grpc::ResourceQuota quota("warplined");
  quota.Resize(static_cast<std::size_t>(options.memory_quota_bytes));
  builder.SetResourceQuota(quota);
  builder.RegisterService(&impl->kernel_methods);
  builder.RegisterService(&impl->info_methods);
  if (options.echo) builder.RegisterService(&impl->echo_methods);
  for (int i = 0; i < options.threads; ++i) impl->queues.push_back(builder.AddCompletionQueue());
  impl->server = builder.BuildAndStart();
  for (std::size_t i = 0; i < options.listen.size(); ++i) {
    const std::string& listen = options.listen[i];
    if (impl->server == nullptr || ports[i] == 0) {
      for (auto& queue : impl->queues) queue->Shutdown();
      void* tag = nullptr;
      bool ok = false;
      for (auto& queue : impl->queues) {
        while (queue->Next(&tag, &ok)) {
        }
      }
      return absl::UnavailableError(absl::StrCat("--listen: cannot listen on ", listen, "; is it in use?"));
    }
    impl->addresses.push_back(absl::StartsWith(listen, "unix:")
                                  ? listen
                                  : absl::StrCat(listen.substr(0, listen.rfind(':')), ":", ports[i]));
  }
  for (auto& queue : impl->queues) {
    for (const UnaryMethod& method : impl->methods) {
      for (int i = 0; i < kReadyCalls; ++i) UnaryCall::Listen(method, queue.get(), impl->call_server);
    }
    impl->threads.emplace_back([raw = impl.get(), queue = queue.get()] { raw->Serve(queue); });
  }
  auto server = std::unique_ptr<RpcServer>(new RpcServer(std::move(impl)));
  server->SetServing(true);
  return server;
}

RpcServer::RpcServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

RpcServer::~RpcServer() { Shutdown(absl::Now()); }

const std::vector<std::string>& RpcServer::addresses() const { return impl_->addresses; }

void RpcServer::SetServing(bool serving) {
  grpc::HealthCheckServiceInterface* health = impl_->server->GetHealthCheckService();
  health->SetServingStatus(serving);
  health->SetServingStatus("", serving);
  health->SetServingStatus(v1::KernelService::service_full_name(), serving);
  health->SetServingStatus(v1::InfoService::service_full_name(), serving);
  if (impl_->echo) health->SetServingStatus(v1::EchoService::service_full_name(), serving);
}

bool RpcServer::AwaitCallsEnded(absl::Time deadline) { return impl_->counts.AwaitNoReceived(deadline); }

bool RpcServer::Shutdown(absl::Time deadline) {
  if (impl_ == nullptr) return true;
  constexpr absl::Duration kToNotice = absl::Milliseconds(500);
  auto ended = std::make_shared<std::promise<bool>>();
  std::future<bool> outcome = ended->get_future();
  std::thread ending([raw = impl_.get(), ended, deadline] {
    raw->server->Shutdown(absl::ToChronoTime(deadline));
    // gRPC aborts if a call is answered, or waited for, on a queue that was shut down.
    const bool unused = raw->counts.AwaitNoObjects(deadline + kToNotice);
    if (unused) {
      for (auto& queue : raw->queues) queue->Shutdown();
      for (std::thread& thread : raw->threads) thread.join();
    }
    ended->set_value(unused);
  });
  // The thread stays behind if a client does not let go of its connection.
  const auto latest = absl::ToChronoTime(deadline + 2 * kToNotice);
  if (outcome.wait_until(latest) == std::future_status::ready && outcome.get()) {
    ending.join();
    impl_.reset();
    return true;
  }
  ending.detach();
  static_cast<void>(impl_.release());
  return false;
}

}  // namespace warpline
