// Flags that earlier versions had.
#ifndef WARPLINE_SERVER_SETTINGS_REMOVED_FLAGS_H_
#define WARPLINE_SERVER_SETTINGS_REMOVED_FLAGS_H_

#include <string_view>

namespace warpline {

struct RemovedFlag {
  std::string_view name;     // "tuning"
  std::string_view instead;  // what to do instead
  bool was_setting = true;   // it could be set by the environment
};

inline constexpr RemovedFlag kRemovedFlags[] = {
    {"grpc-memory-bytes", "not needed: 6 x --max-inline-bytes"},
    {"graph-cache-entries", "not needed: a lane keeps 256 graphs, within the memory for them"},
    {"max-job-bytes", "not needed: 4 x --max-inline-bytes"},
    {"max-streams",
     "not needed: a connection has 128 calls at a time, and a client may open more connections"},
    {"owner-label-limit", "not needed: the first 50 owners have metrics of their own"},
    {"pinned-bytes", "not needed: 8 x --max-inline-bytes on cuda, 4 x on cpu"},
    {"poll", "set --cpus: threads poll from 4 CPUs on, and do not below"},
    {"region-bytes-per-owner",
     "not needed: owners share --region-bytes fairly; region-bytes in --tokens limits one"},
    {"regions-per-owner", "not needed: an owner may have 1024 regions"},
    {"rpc-threads", "set --cpus: 2 threads receive calls from 8 CPUs on, else 1"},
    {"transfer-threads", "set --cpus: there are half as many such threads less one, at most 7"},
    {"tune", "not needed: the server chooses kernels by rules", false},
    {"tuning", "not needed: the server chooses kernels by rules"},
    {"tuning-file", "not needed: the server chooses kernels by rules"},
};

// Returns what to do instead of the flag; empty if there was never a flag of this name.
constexpr std::string_view InsteadOf(std::string_view name) {
  for (const RemovedFlag& flag : kRemovedFlags) {
    if (flag.name == name) return flag.instead;
  }
  return {};
}

}  // namespace warpline

#endif  // WARPLINE_SERVER_SETTINGS_REMOVED_FLAGS_H_
