// Handles the process that an object of the C interface belongs to.
#ifndef WARPLINE_CLIENT_ABI_PROCESS_H_
#define WARPLINE_CLIENT_ABI_PROCESS_H_

#include <unistd.h>

namespace warpline::abi {

// Deletes an object that has a member `process`, except in a forked child: the threads and locks of the
// parent do not exist there.
template <typename Object>
void FreeInItsProcess(Object* object) {
  if (object != nullptr && object->process == getpid()) delete object;
}

}  // namespace warpline::abi

#endif  // WARPLINE_CLIENT_ABI_PROCESS_H_
