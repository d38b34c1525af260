#include "server/rpc/codec/tensor_info.h"

#include <cstdint>

#include "kernels/status_macros.h"
#include "proto/rules/tensor_rules.h"
#include "proto/wire/tensor_field.h"

namespace warpline {

v1::TensorInfo ToProto(const TensorStore::Info& info) {
  v1::TensorInfo proto;
  proto.mutable_resident()->set_id(info.id);
  proto.mutable_resident()->set_ttl_seconds(absl::ToDoubleSeconds(info.ttl));
  proto.set_data_type(ToProto(info.spec.dtype));
  for (int i = 0; i < info.spec.shape.rank; ++i) proto.add_shape(info.spec.shape[i]);
  proto.set_device(info.device);
  proto.set_size_bytes(static_cast<std::int64_t>(info.spec.bytes));
  proto.set_missing_bytes(static_cast<std::int64_t>(info.missing_bytes));
  proto.mutable_replicas()->Assign(info.replicas.begin(), info.replicas.end());
  return proto;
}

absl::StatusOr<TensorSpec> SpecOf(const v1::CreateRequest& request) {
  TensorSpec spec;
  ASSIGN_OR_RETURN(spec.dtype, CheckDataType("data_type", request.data_type()));
  ASSIGN_OR_RETURN(spec.shape, CheckShape("shape", request.shape()));
  ASSIGN_OR_RETURN(spec.bytes, StorageBytes("shape", spec.dtype, spec.shape, 0));
  return spec;
}

std::string GetResponseHead(const TensorStore::Info* info, std::size_t offset, std::size_t length) {
  v1::GetResponse response;
  if (info != nullptr) *response.mutable_tensor() = ToProto(*info);
  response.set_offset(static_cast<std::int64_t>(offset));
  std::string head = response.SerializeAsString();
  if (length > 0) AppendFieldHead(head, v1::GetResponse::kDataFieldNumber, length);
  return head;
}

}  // namespace warpline
