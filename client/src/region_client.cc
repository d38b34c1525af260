#include "client/src/region_client.h"

#include <grpcpp/support/byte_buffer.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client/src/arrived.h"
#include "client/src/attempts.h"
#include "client/src/message_writer.h"
#include "client/src/methods.h"
#include "client/src/region_memory.h"
#include "client/src/region_socket.h"
#include "client/src/shared_region.h"
#include "kernels/status_macros.h"
#include "proto/wire/tensor_field.h"

namespace warpline::client {
namespace {

constexpr std::size_t kPageBytes = 4096;

}  // namespace

RegionClient::RegionClient(std::string target, const ClientOptions& options)
    : target_(std::move(target)),
      socket_(options.region_socket),
      table_(std::make_shared<RegionTable>()),
      watcher_(std::make_shared<RegionWatcher>()) {}

RegionClient::~RegionClient() {
  callbacks_.Close();
  for (const std::shared_ptr<SharedRegion>& region : table_->All()) {
    region->Lose(absl::UnavailableError("its client has gone"));
  }
  watcher_->Close();
}

absl::StatusOr<Region> RegionClient::Open(Connection& connection, std::size_t bytes, absl::Duration timeout) {
  RETURN_IF_ERROR(CheckTimeout(timeout));
  const absl::Time deadline = absl::Now() + timeout;
  constexpr auto kMaxBytes = static_cast<std::size_t>(std::numeric_limits<std::int64_t>::max()) - kPageBytes;
  if (bytes == 0 || bytes > kMaxBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("a region of ", bytes, " bytes: it has at least 1 and at most ", kMaxBytes));
  }
  const std::size_t size = (bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
  ASSIGN_OR_RETURN(const std::string path, SocketPath());
  // Ask the server first: it may refuse, and allocating memory takes long.
  ASSIGN_OR_RETURN(RegionTicket ticket, Reserve(connection, size, deadline, /*retries=*/true));
  ASSIGN_OR_RETURN(std::shared_ptr<SharedRegion> shared,
                   HandOver(connection, std::move(ticket), path, deadline));
  return Region(std::move(shared));
}

absl::StatusOr<std::string> RegionClient::SocketPath() const { return RegionSocketPath(target_, socket_); }

absl::StatusOr<RegionTicket> RegionClient::Reserve(Connection& connection, std::size_t bytes,
                                                   absl::Time deadline, bool retries) {
  v1::OpenRequest request;
  request.set_size_bytes(static_cast<std::int64_t>(bytes));
  const auto encode = [&] {
    MessageWriter message;
    message.Append(request.SerializeAsString());
    return std::move(message).Finish();
  };
  absl::StatusOr<grpc::ByteBuffer> response;
  if (retries) {
    response = connection.Call(OpenRegionMethod(), encode, deadline, "");
  } else {
    ASSIGN_OR_RETURN(OutgoingMessage message, encode());
    response = connection.channel().Call(OpenRegionMethod(), std::move(message), deadline, "");
  }
  if (!response.ok()) return response.status();
  ASSIGN_OR_RETURN(Arrived<v1::OpenResponse> arrived,
                   ReadResponse<v1::OpenResponse>(*response, InlineField()));
  if (arrived.message.ticket().empty()) return BadResponse("a region without a ticket");
  return RegionTicket{std::move(*arrived.message.mutable_ticket()), bytes,
                      absl::Now() + absl::Seconds(arrived.message.ttl_seconds())};
}

absl::StatusOr<std::shared_ptr<SharedRegion>> RegionClient::HandOver(Connection& connection,
                                                                     RegionTicket ticket,
                                                                     const std::string& path,
                                                                     absl::Time deadline) {
  ASSIGN_OR_RETURN(std::unique_ptr<RegionMemory> memory, RegionMemory::Create(ticket.bytes));
  RETURN_IF_ERROR(memory->Populate());
  if (absl::Now() >= ticket.expires) {
    ASSIGN_OR_RETURN(ticket, Reserve(connection, ticket.bytes, deadline, /*retries=*/true));
  }
  ASSIGN_OR_RETURN(RegionSocket socket, RegionSocket::Connect(path, deadline));
  ASSIGN_OR_RETURN(std::string id, socket.HandOver(ticket.text, memory->fd(), deadline));
  memory->CloseFd();
  return SharedRegion::Start(std::move(memory), std::move(socket), std::move(id), table_, watcher_);
}

}  // namespace warpline::client
