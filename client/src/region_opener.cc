#include "client/src/region_opener.h"

#include <grpcpp/support/byte_buffer.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client/src/arrived.h"
#include "client/src/message_writer.h"
#include "client/src/methods.h"
#include "client/src/shared_region.h"
#include "kernels/status_macros.h"
#include "proto/wire/tensor_field.h"
#include "warpline/error.h"

namespace warpline::client {
namespace {

constexpr std::size_t kPageBytes = 4096;
// How often a client without a region asks while it waits for room: the first interval, which doubles, and
// the longest.
constexpr absl::Duration kFirstInterval = absl::Milliseconds(10);
constexpr absl::Duration kMaxInterval = absl::Milliseconds(100);

std::size_t RoundUp(std::size_t value, std::size_t unit) { return (value + unit - 1) / unit * unit; }

// True for errors of the region socket itself. The server's refusals have other codes.
bool IsOfSocket(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsPermissionDenied(status) || absl::IsInvalidArgument(status) ||
         absl::IsUnimplemented(status);
}

}  // namespace

RegionOpener::RegionOpener(RegionClient& regions, Connection& connection, const ClientOptions& options,
                           const PoolTuning& tuning)
    : regions_(regions),
      connection_(connection),
      tuning_(tuning),
      path_(regions.SocketPath()),
      path_was_given_(!options.region_socket.empty()),
      may_warn_(options.shared_memory == SharedMemory::kAuto) {}

absl::Status RegionOpener::Check(std::size_t bytes, absl::Time deadline) {
  if (!path_.ok()) return path_.status();
  if (!refusal_.ok() && bytes >= refused_bytes_ && absl::Now() < not_before_) {
    // The deadline that passed was that of another call.
    const bool was_late = absl::IsDeadlineExceeded(refusal_);
    return absl::Status(was_late ? absl::StatusCode::kFailedPrecondition : refusal_.code(),
                        absl::StrCat("a moment ago: ", refusal_.message()));
  }
  if (limit() != 0) return absl::OkStatus();
  const absl::StatusOr<std::size_t> limit = AskLimit(deadline);
  Remember(limit.status(), absl::ZeroDuration(), 0);
  if (limit.ok()) limit_.store(*limit, std::memory_order_relaxed);
  return limit.status();
}

absl::StatusOr<std::shared_ptr<SharedRegion>> RegionOpener::Open(std::size_t wanted, std::size_t least,
                                                                 absl::Time deadline) {
  absl::StatusOr<RegionTicket> ticket = Reserve(wanted, least, deadline);
  Remember(ticket.status(), absl::ZeroDuration(), least);
  if (!ticket.ok()) return ticket.status();
  patient_ = false;
  absl::StatusOr<std::shared_ptr<SharedRegion>> region = HandOver(*std::move(ticket), deadline);
  Remember(region.status(), tuning_.pause, 0);
  return region;
}

absl::StatusOr<RegionTicket> RegionOpener::Reserve(std::size_t wanted, std::size_t least,
                                                   absl::Time deadline) {
  absl::Time until = absl::InfinitePast();
  for (absl::Duration interval = kFirstInterval;; interval = std::min(2 * interval, kMaxInterval)) {
    absl::StatusOr<RegionTicket> ticket = ReserveLargest(wanted, least, deadline);
    if (!absl::IsResourceExhausted(ticket.status())) return ticket;
    const std::optional<absl::Duration> delay = DetailsOf(ticket.status()).retry_delay;
    if (patient_ && delay) {
      patient_ = false;
      until = std::min(absl::Now() + *delay, deadline);
    }
    if (absl::Now() + interval > until) {
      WarnOfNoRoom(ticket.status());
      return ticket;
    }
    connection_.channel().Pause(interval);
  }
}

absl::StatusOr<RegionTicket> RegionOpener::ReserveLargest(std::size_t wanted, std::size_t least,
                                                          absl::Time deadline) {
  for (std::size_t bytes = wanted;; bytes = std::max(RoundUp(bytes / 2, kPageBytes), least)) {
    absl::StatusOr<RegionTicket> ticket =
        RegionClient::Reserve(connection_, bytes, deadline, /*retries=*/false);
    const bool is_refused = absl::IsResourceExhausted(ticket.status());
    if (ticket.ok() || is_refused) crowded_.store(is_refused || bytes < wanted, std::memory_order_relaxed);
    if (!is_refused || bytes <= least) return ticket;
  }
}

absl::StatusOr<std::size_t> RegionOpener::AskLimit(absl::Time deadline) {
  ASSIGN_OR_RETURN(OutgoingMessage message, MessageWriter().Finish());
  ASSIGN_OR_RETURN(const grpc::ByteBuffer response,
                   connection_.channel().Call(GetInfoMethod(), std::move(message), deadline, ""));
  ASSIGN_OR_RETURN(const Arrived<v1::GetInfoResponse> info,
                   ReadResponse<v1::GetInfoResponse>(response, InlineField()));
  const std::int64_t bytes = info.message.limits().max_region_bytes();
  if (bytes > 0) return static_cast<std::size_t>(bytes);
  const absl::Status error = absl::UnimplementedError("the server shares no memory");
  WarnOfPath(error);
  return error;
}

absl::StatusOr<std::shared_ptr<SharedRegion>> RegionOpener::HandOver(RegionTicket ticket,
                                                                     absl::Time deadline) {
  absl::StatusOr<std::shared_ptr<SharedRegion>> region =
      regions_.HandOver(connection_, std::move(ticket), *path_, deadline);
  if (!IsOfSocket(region.status())) return region;
  // A server that shuts down removes its socket, and no longer answers. In that case the path is not the
  // cause.
  const absl::StatusOr<std::size_t> limit = AskLimit(std::max(deadline, absl::Now() + tuning_.pause));
  if (!limit.ok()) return limit.status();
  WarnOfPath(region.status());
  if (absl::IsPermissionDenied(region.status())) return region;
  // Unavailable would mean that the server does not answer.
  return absl::FailedPreconditionError(region.status().message());
}

void RegionOpener::Remember(const absl::Status& answer, absl::Duration pause, std::size_t refused_bytes) {
  refusal_ = answer;
  if (answer.ok()) return;
  const bool has_no_room = absl::IsResourceExhausted(answer);
  if (has_no_room) pause = tuning_.pause;
  if (absl::IsUnimplemented(answer) || absl::IsPermissionDenied(answer)) pause = tuning_.long_pause;
  refused_bytes_ = has_no_room ? refused_bytes : 0;
  not_before_ = absl::Now() + pause;
  ForgetLimit();
}

void RegionOpener::WarnOfNoRoom(const absl::Status& error) {
  Warn(absl::StrCat("elements travel in messages: ", error.message()));
}

void RegionOpener::WarnOfPath(const absl::Status& error) {
  if (!path_was_given_ && !absl::IsPermissionDenied(error)) return;
  Warn(absl::StrCat("the region socket \"", *path_,
                    "\" is of no use, and elements travel in messages: ", error.message()));
}

void RegionOpener::Warn(std::string text) {
  const std::lock_guard lock(warning_mutex_);
  if (std::exchange(may_warn_, false)) warning_ = std::move(text);
}

std::string RegionOpener::TakeWarning() {
  const std::lock_guard lock(warning_mutex_);
  return std::exchange(warning_, std::string());
}

}  // namespace warpline::client
