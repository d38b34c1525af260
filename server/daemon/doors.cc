#include "server/daemon/doors.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kernels/status_macros.h"
#include "proto/wire/scanner.h"
#include "server/observe/log.h"
#include "server/rpc/identify.h"
#include "server/rpc/tls_credentials.h"

namespace warpline {
namespace {

RpcServer::Options RpcOptions(const ServerOptions& options, const Machine& machine, const Access& access,
                              Ports& ports, Doors& doors) {
  return {.listen = std::move(ports.grpc),
          .proxy_listen = std::move(ports.proxies),
          .credentials = access.certificates != nullptr ? NewTlsCredentials(*access.certificates) : nullptr,
          .threads = options.RpcThreads(machine.cpus),
          .helpers = options.TransferThreads(machine.cpus),
          .look = options.Look(machine.cpus),
          .crew = doors.crew->size() > 0 ? &*doors.crew : nullptr,
          .identify = IdentifyBy(access.identities.get()),
          .log = doors.call_log.has_value() ? &*doors.call_log : nullptr,
          .max_connections = options.MaxConnections(machine.descriptors),
          .max_message_bytes = options.max_inline_bytes + static_cast<std::int64_t>(kMaxHeaderBytes),
          .memory_quota_bytes = options.GrpcMemoryBytes(),
          .send_timeout = options.send_timeout,
          .max_connection_age = options.max_connection_age,
          .echo = options.echo};
}

absl::Status OpenRegions(const Machine& machine, Core& core, std::vector<Listener> listeners, Doors& doors) {
  if (listeners.empty()) return absl::OkStatus();
  const auto append_address = [](std::string* text, const Listener& listener) {
    absl::StrAppend(text, listener.address());
  };
  const std::string sockets = absl::StrJoin(listeners, ",", append_address);
  ASSIGN_OR_RETURN(doors.regions, RegionServer::Start({.listen = std::move(listeners),
                                                       .max_connections = machine.MaxRegions()},
                                                      *core.regions, *core.backend, doors.registering));
  Log("info", "shared regions", {{"sockets", sockets}, {"bytes", absl::StrCat(core.region_bytes)}});
  return absl::OkStatus();
}

absl::Status OpenHttp(const ServerOptions& options, const Machine& machine, const Access& access,
                      const DeviceFailure& failure, Metrics& metrics, std::vector<Listener> listeners,
                      Doors& doors) {
  if (listeners.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(
      doors.http,
      HttpServer::Start(std::move(listeners.front()), access.certificates.get(),
                        {.metrics = [&metrics] { return metrics.Scrape(); },
                         .alive = [&failure] { return !failure.happened(); },
                         .ready = [&doors] { return doors.ready.load(); },
                         .knows = options.tokens.empty() ? nullptr : KnowsToken(*access.identities)},
                        ServerOptions::MaxHttpConnections(machine.descriptors)));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Doors>> Doors::Open(const ServerOptions& options, const Machine& machine,
                                                   const Access& access, Ports ports, Core& core,
                                                   Services& services, const DeviceFailure& failure,
                                                   Metrics& metrics) {
  auto doors = std::make_unique<Doors>();
  if (access.log != nullptr) doors->call_log.emplace(CallLog{*access.log, access.name_of});
  doors->inflater.emplace(*core.admission, services.background);
  doors->crew.emplace(options.Crew(machine.cpus), options.Look(machine.cpus));
  ASSIGN_OR_RETURN(doors->rpc, RpcServer::Start(RpcOptions(options, machine, access, ports, *doors),
                                                services.Handlers(), *doors->inflater, metrics));
  RETURN_IF_ERROR(OpenRegions(machine, core, std::move(ports.regions), *doors));
  RETURN_IF_ERROR(OpenHttp(options, machine, access, failure, metrics, std::move(ports.metrics), *doors));
  return doors;
}

std::string Doors::ReadyLine(const Backend& backend) const {
  const std::string proxies = absl::StrJoin(rpc->proxy_addresses(), ",");
  return absl::StrCat("READY grpc=", absl::StrJoin(rpc->addresses(), ","),
                      " metrics=", http != nullptr ? http->address() : "none",
                      " backend=", std::string(backend.name()), proxies.empty() ? "" : " proxy=", proxies);
}

}  // namespace warpline
