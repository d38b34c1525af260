// Resident tensors as the API tells of them. Pure.
#ifndef WARPLINE_SERVER_RPC_CODEC_TENSOR_INFO_H_
#define WARPLINE_SERVER_RPC_CODEC_TENSOR_INFO_H_

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"
#include "server/store/tensor_store.h"
#include "warpline/v1/warpline.pb.h"

namespace warpline {

v1::TensorInfo ToProto(const TensorStore::Info& info);

// The tensor that a request wants made, dense. Errors name the field.
absl::StatusOr<TensorSpec> SpecOf(const v1::CreateRequest& request);

// A GetResponse up to its data, which has `length` bytes and comes next. `info` is null in all but the first.
std::string GetResponseHead(const TensorStore::Info* info, std::size_t offset, std::size_t length);

}  // namespace warpline

#endif  // WARPLINE_SERVER_RPC_CODEC_TENSOR_INFO_H_
