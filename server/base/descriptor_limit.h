// The process's limit of file descriptors.
#ifndef WARPLINE_SERVER_BASE_DESCRIPTOR_LIMIT_H_
#define WARPLINE_SERVER_BASE_DESCRIPTOR_LIMIT_H_

#include <cstdint>

namespace warpline {

// Raises the soft limit of RLIMIT_NOFILE of this process to the hard limit, and returns the resulting limit.
// Many systems set the soft limit to 1024 for programs that call select(2), which this one does not.
std::int64_t RaiseDescriptorLimit();

}  // namespace warpline

#endif  // WARPLINE_SERVER_BASE_DESCRIPTOR_LIMIT_H_
