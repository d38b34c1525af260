#include "server/base/free_memory.h"

#ifdef WARPLINE_TCMALLOC
#include <gperftools/malloc_extension.h>
#endif

namespace warpline {

void ReturnFreeMemory() {
#ifdef WARPLINE_TCMALLOC
  MallocExtension::instance()->ReleaseFreeMemory();
#endif
}

}  // namespace warpline
