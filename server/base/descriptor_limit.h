// The process's limit of file descriptors.
#ifndef WARPLINE_SERVER_BASE_DESCRIPTOR_LIMIT_H_
#define WARPLINE_SERVER_BASE_DESCRIPTOR_LIMIT_H_

#include <cstdint>

namespace warpline {

// Raises the soft limit of RLIMIT_NOFILE to the hard limit, for this process, and returns what it is then.
// The soft limit is 1024 in many places for the sake of programs that call select(2), which this one does
// not.
std::int64_t RaiseDescriptorLimit();

}  // namespace warpline

#endif  // WARPLINE_SERVER_BASE_DESCRIPTOR_LIMIT_H_
