// Closes descriptors that other processes have created.
#ifndef WARPLINE_SERVER_RPC_DESCRIPTOR_CLOSER_H_
#define WARPLINE_SERVER_RPC_DESCRIPTOR_CLOSER_H_

#include <cstddef>
#include <deque>
#include <memory>

#include "server/base/mutex.h"
#include "server/base/unique_fd.h"

namespace warpline {

// close(2) of a descriptor that another process has opened may take hours, for example for a socket that
// lingers with unsent data, or for a file of a file system in user space. So they are closed one after the
// other on a separate thread. It starts with the first descriptor, and is not waited for when this object is
// destroyed.
class DescriptorCloser {
 public:
  DescriptorCloser() = default;
  ~DescriptorCloser();
  DescriptorCloser(const DescriptorCloser&) = delete;
  DescriptorCloser& operator=(const DescriptorCloser&) = delete;

  // Does not block.
  void Close(UniqueFd descriptor);
  // How many are still to be closed.
  std::size_t waiting() const;

 private:
  struct Queue;
  std::shared_ptr<Queue> queue_;  // shared with the thread
};

}  // namespace warpline

#endif  // WARPLINE_SERVER_RPC_DESCRIPTOR_CLOSER_H_
