// The slices of shared regions that a request names.
#ifndef WARPLINE_SERVER_RPC_REGION_SLICES_H_
#define WARPLINE_SERVER_RPC_REGION_SLICES_H_

#include "absl/status/status.h"
#include "proto/wire/scanner.h"
#include "server/plan/binding.h"
#include "server/plan/plan.h"
#include "server/store/region_store.h"

namespace warpline {

// Gives the bindings of Area::kShared their memory, of regions of this owner, which then counts as in use.
// Errors are those of RegionStore::Use, with the field; INVALID_ARGUMENT if an offset is no multiple of the
// element size, or if a result would overlap another slice.
absl::Status BindSlices(const Plan& plan, const ScannedMessage& message, OwnerId owner, RegionStore& regions,
                        Bindings& bindings);

}  // namespace warpline

#endif  // WARPLINE_SERVER_RPC_REGION_SLICES_H_
