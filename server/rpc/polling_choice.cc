#include "server/rpc/polling_choice.h"

#include <cstdlib>

namespace warpline {

void LetOurThreadsRead() { setenv("GRPC_EXPERIMENTS", "-event_engine_listener", /*overwrite=*/0); }

}  // namespace warpline
