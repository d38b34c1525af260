#include "client/cli/transport.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <string>
#include <string_view>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client/cli/error.h"
#include "client/src/region_allocator.h"
#include "client/src/region_socket.h"
#include "client/src/shared_region.h"
#include "kernels/status_macros.h"

namespace warpline::client {
namespace {

// From this size on, opening a region pays off even for a single use. Measured for a whole transpose on the
// cpu backend: 28 ms inline and 30 ms shared at 1 MiB, 60 ms and 45 ms at 4 MiB.
constexpr std::size_t kLargeBytes = std::size_t{1} << 20;

bool HasRegionSocket(const CommonFlags& common) {
  return !common.regions.empty() || absl::StartsWith(common.server, "unix:");
}

}  // namespace

std::size_t StreamFromBytes(TransportKind kind) {
  switch (kind) {
    case TransportKind::kAuto:
      return ClientOptions().stream_from_bytes;
    case TransportKind::kStream:
      return 1;
    case TransportKind::kInline:
    case TransportKind::kShm:
      return 0;
  }
  return 0;
}

void AddTransport(CLI::App& command, TransportKind& into) {
  const Choices<TransportKind> kinds = {{"auto", TransportKind::kAuto},
                                        {"inline", TransportKind::kInline},
                                        {"shm", TransportKind::kShm},
                                        {"stream", TransportKind::kStream}};
  AddChoice(command, "--transport", into, kinds, "how arrays travel (see below; default: auto)");
}

absl::Status CheckSharing(const CommonFlags& common) {
  if (HasRegionSocket(common)) return absl::OkStatus();
  return UsageError(absl::StrCat("--transport=shm: the server is at ", common.server,
                                 ", but memory can be shared on one host only: call it at unix:PATH, or name "
                                 "its region socket with --regions"));
}

absl::Status CheckRegions(const CommonFlags& common) {
  if (common.regions.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const std::string path, RegionSocketPath(common.server, common.regions));
  const auto wrong = [&](std::string_view why) {
    return UsageError(absl::StrCat("--regions=", common.regions, ": ", std::string(why)));
  };
  struct stat info;
  if (::stat(path.c_str(), &info) != 0) return wrong(std::strerror(errno));
  if (!S_ISSOCK(info.st_mode)) return wrong("this is no socket");
  const absl::Status status = RegionSocket::Connect(path, absl::Now() + common.deadline).status();
  const bool is_of_the_path = absl::IsInvalidArgument(status) || absl::IsPermissionDenied(status);
  return is_of_the_path ? wrong(std::string(status.message())) : status;
}

Transport::Transport(Client& client, TransportKind kind, const CommonFlags& common)
    : client_(&client),
      kind_(kind),
      may_share_(kind == TransportKind::kShm || (kind == TransportKind::kAuto && HasRegionSocket(common))),
      must_share_(kind == TransportKind::kShm || (may_share_ && !common.regions.empty())),
      deadline_(common.deadline) {}

std::size_t Transport::max_bytes() const {
  if (kind_ == TransportKind::kInline) return kMaxMessageBytes;
  return static_cast<std::size_t>(std::numeric_limits<std::int64_t>::max());
}

absl::StatusOr<Region*> Transport::OpenRegion(std::size_t bytes) {
  const bool is_worth_it = bytes >= kLargeBytes || (kind_ == TransportKind::kShm && bytes > 0);
  if (!may_share_ || !is_worth_it) return nullptr;
  absl::StatusOr<Region> region = client_->OpenRegion(bytes, deadline_);
  if (region.ok()) {
    regions_.push_back(std::make_unique<Region>(*std::move(region)));
    return regions_.back().get();
  }
  if (must_share_ || absl::IsDeadlineExceeded(region.status())) return region.status();
  // There are other ways to send the arrays. If the server has a problem, they will report it.
  may_share_ = false;
  return nullptr;
}

absl::StatusOr<std::shared_ptr<void>> Transport::Allocate(std::size_t bytes) {
  ASSIGN_OR_RETURN(Region* const region, OpenRegion(bytes));
  if (region == nullptr) return nullptr;
  ASSIGN_OR_RETURN(Array array, region->Allocate(DType::kU8, {static_cast<std::int64_t>(bytes)}));
  void* const data = array.data();
  return std::shared_ptr<void>(std::make_shared<Array>(std::move(array)), data);
}

std::string_view Transport::WayOf(const Operand& operand, std::size_t i, const Streamed& streamed) const {
  if (!operand.resident.empty()) return "resident";
  if (IsShared(operand.data)) return "shm";
  return std::count(streamed.operands.begin(), streamed.operands.end(), i) > 0 ? "stream" : "inline";
}

std::string_view Transport::WayOf(const Destination& place, std::size_t i, const Streamed& streamed) {
  if (place.keep) return "resident";
  if (place.region != nullptr) return "shm";
  return std::count(streamed.results.begin(), streamed.results.end(), i) > 0 ? "stream" : "inline";
}

absl::StatusOr<std::vector<Destination>> Transport::Place(std::span<const std::optional<ArrayType>> types) {
  std::vector<Destination> places(types.size());
  std::size_t region_bytes = 0;
  for (const std::optional<ArrayType>& type : types) {
    if (!type) continue;
    constexpr std::size_t kUnit = RegionAllocator::kLargeAlignment;
    region_bytes += (type->bytes + kUnit - 1) / kUnit * kUnit;
  }
  ASSIGN_OR_RETURN(Region* const region, OpenRegion(region_bytes));
  for (std::size_t i = 0; i < places.size(); ++i) {
    if (types[i]) places[i].region = region;
  }
  return places;
}

bool Transport::IsShared(const void* data) const {
  const auto* const byte = static_cast<const std::byte*>(data);
  return std::any_of(regions_.begin(), regions_.end(), [&](const std::unique_ptr<Region>& region) {
    const std::byte* const begin = region->shared()->data();
    return byte >= begin && byte < begin + region->bytes();
  });
}

SharedPlaces Transport::shared() const {
  return {.find = [this](const void* data, std::size_t) -> absl::StatusOr<std::optional<v1::RegionSlice>> {
    if (!IsShared(data)) return std::nullopt;
    return v1::RegionSlice();
  }};
}

}  // namespace warpline::client
