// The work of TensorService for each request, without calls and transfers.
#ifndef WARPLINE_SERVER_RPC_TENSOR_REQUESTS_H_
#define WARPLINE_SERVER_RPC_TENSOR_REQUESTS_H_

#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "server/base/owner.h"
#include "server/memory/buffer.h"
#include "server/store/byte_ranges.h"
#include "server/store/tensor_store.h"
#include "warpline/v1/warpline.pb.h"

namespace warpline {

// Errors are those of the store, with the field. All functions are thread-safe.

// `devices` is the number of devices.
absl::StatusOr<TensorStore::Info> CreateTensor(const v1::CreateRequest& request, const Caller& caller,
                                               int devices, TensorStore& tensors);
// Returns the memory of each tensor. A thread that has time must free it: this may take a while, unless
// FreesAtOnce.
absl::StatusOr<std::vector<Buffer>> DropTensors(const v1::DropRequest& request, OwnerId owner,
                                                TensorStore& tensors);
bool FreesAtOnce(std::span<const Buffer> memory);
absl::StatusOr<v1::RenewResponse> RenewTensors(const v1::RenewRequest& request, OwnerId owner,
                                               TensorStore& tensors);
absl::StatusOr<v1::ListResponse> ListTensors(const v1::ListRequest& request, OwnerId owner,
                                             const TensorStore& tensors);

// The data that a GetRequest asks for: a tensor in use, and a range of that tensor.
struct AskedRange {
  TensorStore::Reading reading;
  ByteRange range;
};
absl::StatusOr<AskedRange> FindAsked(const v1::GetRequest& request, OwnerId owner, TensorStore& tensors);

}  // namespace warpline

#endif  // WARPLINE_SERVER_RPC_TENSOR_REQUESTS_H_
