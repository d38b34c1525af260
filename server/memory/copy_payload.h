// The only code in which the daemon copies payload bytes in host memory, so that every copy is counted.
#ifndef WARPLINE_SERVER_MEMORY_COPY_PAYLOAD_H_
#define WARPLINE_SERVER_MEMORY_COPY_PAYLOAD_H_

#include <cstddef>
#include <span>

#include "server/observe/metrics.h"

namespace warpline {

// A place in the code that copies payload; each has one series of warpline_host_copy_bytes_total.
class CopySite {
 public:
  CopySite(Metrics& metrics, const char* name) : bytes_(metrics.HostCopyBytes(name)) {}

 private:
  friend void CopyPayload(CopySite& site, std::byte* to, std::span<const std::span<const std::byte>> pieces);
  Counter bytes_;
};

// Copies the pieces one after the other to `to`, on the calling thread. Large payloads are divided into parts
// that several workers copy at the same time (Scheduler).
void CopyPayload(CopySite& site, std::byte* to, std::span<const std::span<const std::byte>> pieces);

}  // namespace warpline

#endif  // WARPLINE_SERVER_MEMORY_COPY_PAYLOAD_H_
