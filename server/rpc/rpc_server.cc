#include "server/rpc/rpc_server.h"

#include <grpc/grpc.h>
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/health_check_service_interface.h>

#include <algorithm>
#include <deque>
#include <future>
#include <thread>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "server/observe/log.h"
#include "server/rpc/acceptor.h"
#include "server/rpc/connections.h"
#include "server/rpc/gentle_close.h"
#include "server/rpc/goaway.h"
#include "server/rpc/health_service.h"
#include "server/rpc/incoming_call.h"
#include "server/rpc/message_stream.h"
#include "server/rpc/peer_naming.h"
#include "server/rpc/polling_thread.h"
#include "server/rpc/read_rounds.h"
#include "server/rpc/reflection_service.h"
#include "server/rpc/refusal.h"
#include "server/rpc/region_service.h"
#include "server/rpc/request_id.h"
#include "server/rpc/rpc_status.h"
#include "server/rpc/send_watchdog.h"
#include "server/rpc/server_arguments.h"
#include "server/rpc/tensor_service.h"
#include "server/rpc/unary_call.h"
#include "server/rpc/upload_watchdog.h"
#include "warpline/v1/warpline.pb.h"

namespace warpline {
namespace {

// The number of call objects that wait for calls: bursts of up to this size find one ready.
constexpr int kReadyCalls = 64;

// How long calls are still served after clients were asked to leave, because a client may not have heard it
// yet: the minimum if there are no calls, and the maximum.
constexpr absl::Duration kIdleToHear = absl::Milliseconds(50);
constexpr absl::Duration kToHear = absl::Seconds(1);
// The time for calls to end when their connections are cut, and for jobs to notice that their callers have
// left.
constexpr absl::Duration kToCut = absl::Seconds(1);
constexpr absl::Duration kHearingStep = absl::Milliseconds(5);

// How long clients have at the end to close their side of the connections: if all were idle, and if some have
// had calls whose responses they may still be reading.
constexpr absl::Duration kIdleToClose = absl::Milliseconds(50);
constexpr absl::Duration kToClose = absl::Seconds(1);
constexpr absl::Duration kToShutDown = absl::Milliseconds(500);

// Maximum number of streams and slow uploads. Each takes some 16 KiB.
constexpr int kMaxSlowCalls = 8192;

// The maximum bytes of requests that consist of names and numbers.
constexpr std::size_t kSmallMessageBytes = 64 << 10;

// Limits a quoted path, because trailers may have at most 8 KiB.
constexpr std::size_t kMaxQuotedPath = 256;

constexpr char kKernelService[] = "warpline.v1.KernelService";
constexpr char kInfoService[] = "warpline.v1.InfoService";
constexpr char kTensorService[] = "warpline.v1.TensorService";
constexpr char kRegionService[] = "warpline.v1.RegionService";
constexpr char kEchoService[] = "warpline.v1.EchoService";

std::vector<std::string> ServiceNames(bool echo) {
  std::vector<std::string> names = {kKernelService, kTensorService, kRegionService, kInfoService};
  if (echo) names.emplace_back(kEchoService);
  return names;
}

std::vector<std::string> ReflectedNames(bool echo) {
  std::vector<std::string> names = ServiceNames(echo);
  names.emplace_back(HealthService::kName);
  names.emplace_back(ReflectionService::kName);
  return names;
}

}  // namespace

struct RpcServer::Impl {
  Impl(const Options& options, Handlers handlers, Inflater& inflater, Metrics& metrics)
      : connections({.max_connections = options.max_connections, .budgets = {}}),
        watchdog(options.send_timeout),
        unary_server{.metrics = metrics,
                     .watchdog = watchdog,
                     .counts = counts,
                     .inflater = inflater,
                     .max_message_bytes = static_cast<std::size_t>(options.max_message_bytes),
                     .crew = options.crew},
        stream_server{metrics, watchdog, counts, inflater, streams, helpers},
        health(ServiceNames(options.echo)),
        reflection(ReflectedNames(options.echo)),
        authentication{.identify = options.identify,
                       .refuse =
                           [&metrics](std::unique_ptr<IncomingCall> call, const absl::Status& status) {
                             metrics.CountRejection("unauthenticated");
                             const std::string request_id = RequestId(call->context());
                             Refuse(std::move(call), ToGrpcStatus(status, request_id), request_id);
                           }},
        log(options.log) {
    const auto compute = [this](const char* name, auto handle) {
      AddUnary({.service = kKernelService, .name = name, .handle = std::move(handle), .computes = true});
    };
    compute("Transpose", std::move(handlers.transpose));
    compute("Gemm", std::move(handlers.gemm));
    compute("Reduce", std::move(handlers.reduce));
    compute("Run", std::move(handlers.run));
    if (handlers.tensors != nullptr) AddTensorService(*handlers.tensors);
    if (handlers.regions != nullptr) {
      AddUnary({.service = kRegionService,
                .name = "Open",
                .handle = [regions = handlers.regions](UnaryCall& call) { regions->Open(call); },
                .max_message_bytes = kSmallMessageBytes});
    }
    AddUnary({.service = kInfoService,
              .name = "GetInfo",
              .handle = std::move(handlers.get_info),
              .takes_message = false,
              .while_draining = true});
    if (options.echo) AddUnary({.service = kEchoService, .name = "Echo", .handle = std::move(handlers.echo)});
    AddServicesOfGrpc();
  }

  // Adds health checks and reflection.
  void AddServicesOfGrpc() {
    AddUnary({.service = HealthService::kName,
              .name = "Check",
              .handle = [this](UnaryCall& call) { health.Check(call); },
              .max_message_bytes = kSmallMessageBytes,
              .open_to_all = true,
              .while_draining = true});
    AddUnary({.service = HealthService::kName,
              .name = "List",
              .handle = [this](UnaryCall& call) { health.List(call); },
              .takes_message = false,
              .open_to_all = true,
              .while_draining = true});
    AddStream({.service = HealthService::kName,
               .name = "Watch",
               .make_handler = [this](const Caller&) { return health.NewWatch(); },
               .open_to_all = true});
    AddStream({.service = ReflectionService::kName,
               .name = "ServerReflectionInfo",
               .make_handler = [this](const Caller&) { return reflection.NewStream(); }});
  }

  void AddUnary(UnaryMethod method) {
    method.series = unary_server.metrics.Method(method.service, method.name);
    unary_methods.push_back(std::move(method));
    const UnaryMethod& added = unary_methods.back();
    methods[absl::StrCat("/", added.service, "/", added.name)] = {
        .handler =
            [this, &added](std::unique_ptr<IncomingCall> call) {
              UnaryCall::Start(added, unary_server, std::move(call));
            },
        .open_to_all = added.open_to_all,
        .reads_message = &added.series,
        .while_draining = added.while_draining};
  }

  void AddStream(MessageStream::Method method) {
    if (method.is_work) {
      method.series = unary_server.metrics.Method(method.service, method.name, method.type);
    }
    stream_methods.push_back(std::move(method));
    const MessageStream::Method& added = stream_methods.back();
    methods[absl::StrCat("/", added.service, "/", added.name)] = {
        .handler =
            [this, &added](std::unique_ptr<IncomingCall> call) {
              MessageStream::Start(added, stream_server, std::move(call));
            },
        .open_to_all = added.open_to_all};
  }

  void AddTensorService(TensorService& tensors) {
    const auto unary = [&](const char* name, void (TensorService::*handle)(UnaryCall&)) {
      AddUnary({.service = kTensorService,
                .name = name,
                .handle = [&tensors, handle](UnaryCall& call) { (tensors.*handle)(call); },
                .max_message_bytes = kSmallMessageBytes});
    };
    unary("Create", &TensorService::Create);
    unary("Drop", &TensorService::Drop);
    unary("Renew", &TensorService::Renew);
    unary("List", &TensorService::List);
    AddStream({.service = kTensorService,
               .name = "Put",
               .type = "client_stream",
               .make_handler = [&tensors](const Caller& caller) { return tensors.NewPut(caller); },
               .is_work = true,
               .confirms_end = true});
    AddStream({.service = kTensorService,
               .name = "Get",
               .type = "server_stream",
               .make_handler = [&tensors](const Caller& caller) { return tensors.NewGet(caller); },
               .is_work = true});
  }

  Connections connections;
  CallCounts counts;
  FairBudget slow_calls{{.total = kMaxSlowCalls, .what = "streams and slow uploads"}};
  SendWatchdog watchdog;  // its thread may be the last to release a call
  OpenStreams streams;
  const UnaryCall::Server unary_server;
  const MessageStream::Server stream_server;
  HealthService health;
  const ReflectionService reflection;
  std::deque<UnaryMethod> unary_methods;             // deque: addresses must not change
  std::deque<MessageStream::Method> stream_methods;  // for the same reason
  absl::flat_hash_map<std::string, ServedPath> methods;
  const CallHandler unknown_method = [](std::unique_ptr<IncomingCall> call) {
    // No request id: this tells clients that the method is unknown, not that a method has refused the
    // request.
    const grpc::Status status(grpc::StatusCode::UNIMPLEMENTED,
                              absl::StrCat("there is no method ", call->path().substr(0, kMaxQuotedPath)));
    Refuse(std::move(call), status);
  };
  const Authentication authentication;
  const CallLog* const log;
  grpc::AsyncGenericService service;
  std::vector<std::unique_ptr<PollingThread>> threads;
  std::unique_ptr<PollingHelpers> helpers;
  const IncomingCall::Server incoming_server{service,
                                             methods,
                                             unknown_method,
                                             authentication.identify != nullptr ? &authentication : nullptr,
                                             unary_server.metrics,
                                             counts,
                                             connections,
                                             slow_calls,
                                             threads,
                                             log};
  std::vector<std::string> addresses, proxy_addresses;
  std::shared_ptr<grpc::ServerCredentials> credentials;  // gRPC uses them for each new connection
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> network_door, unix_door;
  std::unique_ptr<grpc::Server> server;
  std::unique_ptr<Relief> relief;
  std::unique_ptr<UploadWatchdog> uploads;
  std::unique_ptr<Acceptor> acceptor;
  bool was_busy = false;  // whether there were calls during the drain
};

absl::StatusOr<std::unique_ptr<RpcServer>> RpcServer::Start(Options options, Handlers handlers,
                                                            Inflater& inflater, Metrics& metrics) {
  // Never shut down: after a large response one of gRPC's own threads polls for up to ten seconds, and the
  // shutdown of the library would wait for it. The process ends without a shutdown.
  grpc_init();
  grpc::EnableDefaultHealthCheckService(false);
  BoundReadRounds();

  auto impl = std::make_unique<Impl>(options, std::move(handlers), inflater, metrics);
  auto acceptor = Acceptor::Listen({.listen = std::move(options.listen),
                                    .proxy_listen = std::move(options.proxy_listen),
                                    .user_timeout = options.send_timeout,
                                    .closes_gently = options.max_connection_age > absl::ZeroDuration()},
                                   impl->connections);
  if (!acceptor.ok()) return acceptor.status();
  impl->acceptor = *std::move(acceptor);
  impl->addresses = impl->acceptor->addresses();
  impl->proxy_addresses = impl->acceptor->proxy_addresses();

  grpc::ServerBuilder builder;
  using ExternalConnections = grpc::ServerBuilder::experimental_type::ExternalConnectionType;
  impl->credentials =
      options.credentials != nullptr ? options.credentials : grpc::InsecureServerCredentials();
  impl->network_door =
      builder.experimental().AddExternalConnectionAcceptor(ExternalConnections::FROM_FD, impl->credentials);
  impl->unix_door = builder.experimental().AddExternalConnectionAcceptor(ExternalConnections::FROM_FD,
                                                                         grpc::InsecureServerCredentials());
  SetArguments(options, builder);
  builder.RegisterAsyncGenericService(&impl->service);
  for (int i = 0; i < options.threads; ++i) {
    const auto kind = i == 0 ? PollingThread::Kind::kSteady : PollingThread::Kind::kOnDemand;
    impl->threads.push_back(
        std::make_unique<PollingThread>(builder.AddCompletionQueue(), options.look, kind));
  }
  impl->server = builder.BuildAndStart();
  if (impl->server == nullptr) return absl::InternalError("gRPC does not start its server");
  for (int i = 0; i < kReadyCalls; ++i) IncomingCall::Await(impl->incoming_server);
  impl->helpers = std::make_unique<PollingHelpers>(*impl->threads.front(), options.helpers);
  std::vector<PollingThread*> threads;
  for (const auto& thread : impl->threads) threads.push_back(thread.get());
  impl->relief = std::make_unique<Relief>(threads);
  impl->uploads = std::make_unique<UploadWatchdog>(std::move(threads), options.send_timeout);
  impl->health.SetServing(true);
  impl->acceptor->Start([impl = impl.get()](int fd, Acceptor::Kind kind, std::uint64_t number) {
    const NamingScope naming(number);
    grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters connection;
    connection.fd = fd;
    // Newer versions want a socket that listened, of which they only keep the number.
    connection.listener_fd = fd;
    const auto& door = kind == Acceptor::Kind::kUnix ? impl->unix_door : impl->network_door;
    door->HandleNewConnection(&connection);
  });
  return std::unique_ptr<RpcServer>(new RpcServer(std::move(impl)));
}

RpcServer::RpcServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

RpcServer::~RpcServer() { Shutdown(absl::Now()); }

const std::vector<std::string>& RpcServer::addresses() const { return impl_->addresses; }
const std::vector<std::string>& RpcServer::proxy_addresses() const { return impl_->proxy_addresses; }

void RpcServer::SetServing(bool serving) { impl_->health.SetServing(serving); }

bool RpcServer::Drain(absl::Time deadline) {
  Impl& impl = *impl_;
  impl.acceptor->StopListening();
  Log("info", "clients are told to leave",
      {{"connections", absl::StrCat(impl.connections.size())},
       {"calls", absl::StrCat(impl.counts.in_progress())}});
  CloseGently();
  const absl::Time begun = absl::Now();
  const double started = impl.unary_server.metrics.RequestsStarted();
  for (;;) {
    // Repeated, because connections are not reached while their handshake is in progress.
    SendGoaways(*impl.server);
    impl.streams.FinishIdle();
    const absl::Time now = absl::Now();
    const bool idle = impl.counts.in_progress() == 0 && now - begun >= kIdleToHear;
    impl.was_busy = impl.was_busy || impl.counts.in_progress() > 0;
    if (idle || impl.connections.size() == 0 || now - begun >= kToHear || now >= deadline) break;
    absl::SleepFor(kHearingStep);
  }
  impl.counts.Drain();
  impl.uploads->Drain();
  if (const int calls = impl.counts.in_progress(); calls > 0) {
    Log("info", "new calls are refused, open ones go on",
        {{"connections", absl::StrCat(impl.connections.size())}, {"calls", absl::StrCat(calls)}});
  }
  const absl::Duration to_cut = std::min(kToCut, (deadline - begun) / 10);
  bool ended = impl.counts.AwaitNoneInProgress(deadline - to_cut);
  if (!ended) {
    Log("warning", "calls are cut off: the grace is over",
        {{"calls", absl::StrCat(impl.counts.in_progress())}});
    CloseConnections(*impl.server);
    ended = impl.counts.AwaitNoneInProgress(deadline - to_cut / 2);
  }
  if (!ended) {
    impl.connections.EndAll(absl::ZeroDuration());  // gRPC cannot close those whose clients do not read
    ended = impl.counts.AwaitNoneInProgress(deadline);
  }
  impl.was_busy = impl.was_busy || impl.unary_server.metrics.RequestsStarted() != started;
  return ended;
}

bool RpcServer::Shutdown(absl::Time deadline) {
  if (impl_ == nullptr) return true;
  static constexpr absl::Duration kToNotice = absl::Milliseconds(500);
  auto ended = std::make_shared<std::promise<bool>>();
  std::future<bool> outcome = ended->get_future();
  std::thread ending([raw = impl_.get(), ended, deadline] {
    raw->counts.Drain();
    raw->acceptor->StopListening();
    raw->streams.FinishAll();
    raw->counts.AwaitNoneInProgress(deadline);
    // A call that arrives while gRPC shuts down is CANCELLED for its client, as if the client had cancelled
    // it. A call whose connection has ended is UNAVAILABLE, and may be sent to another server. So close all
    // connections first.
    CloseConnections(*raw->server);
    const bool closed =
        raw->connections.AwaitNone(raw->was_busy ? kToClose : kIdleToClose, deadline - absl::Now());
    raw->acceptor->Stop();
    if (!closed) raw->connections.EndAll(absl::ZeroDuration());
    raw->server->Shutdown(absl::ToChronoTime(std::min(deadline, absl::Now() + kToShutDown)));
    // gRPC aborts if a call is answered, or awaited, on a queue that was shut down.
    const bool unused = raw->counts.AwaitNoObjects(std::min(deadline, absl::Now() + kToShutDown) + kToNotice);
    if (unused) {
      raw->uploads.reset();
      raw->relief.reset();
      raw->helpers.reset();
      raw->threads.clear();
    }
    ended->set_value(unused);
  });
  // The thread is left behind if a client does not release its connection.
  const auto latest = absl::ToChronoTime(deadline + kToClose + 2 * kToNotice);
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
