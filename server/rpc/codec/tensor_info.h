// Converts resident tensors for the API. Pure.
#ifndef WARPLINE_SERVER_RPC_CODEC_TENSOR_INFO_H_
#define WARPLINE_SERVER_RPC_CODEC_TENSOR_INFO_H_

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"
#include "server/store/tensor_store.h"
#include "warpline/v1/warpline.pb.h"

namespace warpline {

v1::TensorInfo ToProto(const TensorStore::Info& info);

// Returns the tensor that a request wants to create, which is dense. Errors name the field.
absl::StatusOr<TensorSpec> SpecOf(const v1::CreateRequest& request);

// Returns a GetResponse up to its data, which follows and has `length` bytes. `info` is null except in the
// first message.
std::string GetResponseHead(const TensorStore::Info* info, std::size_t offset, std::size_t length);

}  // namespace warpline

#endif  // WARPLINE_SERVER_RPC_CODEC_TENSOR_INFO_H_
