// The slices of shared regions that a request names.
#ifndef WARPLINE_SERVER_RPC_REGION_SLICES_H_
#define WARPLINE_SERVER_RPC_REGION_SLICES_H_

#include "absl/status/status.h"
#include "proto/wire/scanner.h"
#include "server/plan/binding.h"
#include "server/plan/plan.h"
#include "server/store/region_store.h"

namespace warpline {

// Sets the memory of bindings of Area::kShared, in regions of this owner, and marks it as in use. Errors are
// those of RegionStore::Use, with the field; INVALID_ARGUMENT if an offset is not a multiple of the element
// size, or if a result would overlap another slice.
absl::Status BindSlices(const Plan& plan, const ScannedMessage& message, OwnerId owner, RegionStore& regions,
                        Bindings& bindings);

}  // namespace warpline

#endif  // WARPLINE_SERVER_RPC_REGION_SLICES_H_
