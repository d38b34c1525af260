#include "server/rpc/polling_choice.h"

namespace warpline {

// This version has no other way.
void LetOurThreadsRead() {}

}  // namespace warpline
