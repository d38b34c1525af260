#include "server/rpc/request_id.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <random>

#include "absl/strings/str_cat.h"

namespace warpline {
namespace {

constexpr char kRequestIdKey[] = "x-request-id";
constexpr std::size_t kRequestIdLength = 128;

// The counter makes ids unique within the process, the random part between processes.
std::string NewRequestId() {
  static const std::uint32_t process = std::random_device{}();
  static std::atomic<std::uint64_t> next = 0;
  return absl::StrCat(absl::Hex(process, absl::kZeroPad8), "-",
                      absl::Hex(next.fetch_add(1), absl::kZeroPad8));
}

}  // namespace

std::string RequestId(const grpc::ServerContext& context) {
  const auto found = context.client_metadata().find(kRequestIdKey);
  if (found == context.client_metadata().end()) return NewRequestId();
  const grpc::string_ref& id = found->second;
  const bool usable = !id.empty() && id.size() <= kRequestIdLength &&
                      std::all_of(id.begin(), id.end(), [](char c) { return c > ' ' && c < 0x7f; });
  return usable ? std::string(id.data(), id.size()) : NewRequestId();
}

}  // namespace warpline
