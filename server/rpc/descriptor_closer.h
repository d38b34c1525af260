// Closes descriptors that others have made.
#ifndef WARPLINE_SERVER_RPC_DESCRIPTOR_CLOSER_H_
#define WARPLINE_SERVER_RPC_DESCRIPTOR_CLOSER_H_

#include <cstddef>
#include <deque>
#include <memory>

#include "server/base/mutex.h"
#include "server/base/unique_fd.h"

namespace warpline {

// close(2) of a descriptor that somebody else has opened may take hours: a socket that lingers with unsent
// data, a file of a file system in user space. So they are closed one after the other by a thread of their
// own, which is started by the first of them and is left to itself when this object goes.
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
