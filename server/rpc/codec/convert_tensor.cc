#include "server/rpc/codec/convert_tensor.h"

#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/status_macros.h"
#include "proto/rules/tensor_rules.h"
#include "server/base/errors.h"

namespace warpline {
namespace {

std::string Sub(std::string_view field, const char* part) {
  return absl::StrCat(std::string(field), ".", part);
}

// Returns the bytes of all rows with their padding. Cannot overflow, because StorageBytes was checked before.
std::size_t PaddedBytes(const CheckedTensor& tensor) {
  std::int64_t rows = 1;
  for (int axis = 0; axis + 1 < tensor.spec.shape.rank; ++axis) rows *= tensor.spec.shape[axis];
  return static_cast<std::size_t>(rows * tensor.row_stride) * SizeOf(tensor.spec.dtype);
}

// Returns the number of the payload; nothing if there is nothing to read.
absl::StatusOr<std::optional<std::size_t>> CheckPayload(std::string_view field, const v1::Tensor& tensor,
                                                        std::span<const PayloadRange> payloads,
                                                        const CheckedTensor& expected) {
  const std::size_t bytes = expected.spec.bytes, padded = PaddedBytes(expected);
  const auto expectation = [&] {
    return absl::StrCat(
        bytes, padded == bytes ? "" : absl::StrCat(" or, with the padding of the last row, ", padded),
        " bytes (", std::string(Name(expected.spec.dtype)), " ", ToString(expected.spec.shape), ", rows ",
        expected.row_stride, " elements apart)");
  };
  if (!tensor.has_inline_()) {
    // An empty array has no elements to send, so a client may leave them out.
    if (bytes == 0) return std::optional<std::size_t>();
    return FieldError(Sub(field, "inline"), absl::StrCat("missing; expected ", expectation()));
  }
  const std::optional<std::size_t> index = PayloadIndex(tensor.inline_());
  if (!index.has_value() || *index >= payloads.size()) {
    return absl::InternalError(absl::StrCat(std::string(field), ": the header does not come from a scan"));
  }
  const std::size_t length = payloads[*index].length;
  if (length != bytes && length != padded) {
    return FieldError(Sub(field, "inline"), absl::StrCat("got ", length, " bytes; expected ", expectation()));
  }
  return bytes == 0 ? std::nullopt : index;
}

// A resident tensor has its own data type and shape. If the request gives them too, they must be the same.
absl::StatusOr<CheckedTensor> CheckResident(std::string_view field, const v1::Tensor& tensor,
                                            std::span<const absl::StatusOr<TensorSpec>> references) {
  const std::string id_field = Sub(field, "resident.id");
  if (tensor.resident().id().empty()) return FieldError(id_field, "missing");
  const std::optional<std::size_t> index = ReferenceIndex(tensor.resident().id());
  if (!index.has_value() || *index >= references.size()) {
    return absl::InternalError(absl::StrCat(id_field, ": the header does not come from a scan"));
  }
  const absl::StatusOr<TensorSpec>& found = references[*index];
  RETURN_IF_ERROR(InField(id_field, found.status()));
  CheckedTensor checked{.spec = *found, .row_stride = RowSize(found->shape), .source = {}};
  checked.source.reference = index;
  if (tensor.data_type() != v1::DATA_TYPE_UNSPECIFIED) {
    ASSIGN_OR_RETURN(const DType dtype, CheckDataType(Sub(field, "data_type"), tensor.data_type()));
    if (dtype != found->dtype) {
      return FieldError(Sub(field, "data_type"),
                        absl::StrCat(std::string(Name(dtype)), ", but the resident tensor is ",
                                     std::string(Name(found->dtype))));
    }
  }
  if (tensor.shape_size() > 0) {
    ASSIGN_OR_RETURN(const Shape shape, CheckShape(Sub(field, "shape"), tensor.shape()));
    if (!(shape == found->shape)) {
      return FieldError(Sub(field, "shape"), absl::StrCat(ToString(shape), ", but the resident tensor has ",
                                                          ToString(found->shape)));
    }
  }
  if (tensor.row_stride() != 0) {
    return FieldError(Sub(field, "row_stride"),
                      absl::StrCat(tensor.row_stride(), "; resident tensors are dense, so it must be 0"));
  }
  return checked;
}

// Returns the number of the upload.
absl::StatusOr<std::size_t> CheckUpload(std::string_view field, const v1::Tensor& tensor) {
  if (tensor.row_stride() != 0) {
    return FieldError(Sub(field, "row_stride"),
                      absl::StrCat(tensor.row_stride(), "; uploads are dense, so it must be 0"));
  }
  const std::int32_t number = tensor.upload().number();
  if (number < 0 || number >= static_cast<std::int32_t>(kMaxUploads)) {
    return FieldError(Sub(field, "upload.number"), absl::StrCat(number, " is not in 0..", kMaxUploads - 1));
  }
  return static_cast<std::size_t>(number);
}

absl::StatusOr<CheckedTensor> CheckTensor(std::string_view field, const v1::Tensor* tensor,
                                          const TokenValues& values) {
  if (tensor == nullptr) return FieldError(field, "missing");
  if (tensor->has_resident()) return CheckResident(field, *tensor, values.references);
  ASSIGN_OR_RETURN(const DType dtype, CheckDataType(Sub(field, "data_type"), tensor->data_type()));
  ASSIGN_OR_RETURN(const Layout layout, CheckLayout(field, dtype, tensor->shape(), tensor->row_stride()));
  CheckedTensor checked{.spec = layout.spec, .row_stride = layout.row_stride, .source = {}};
  if (tensor->has_region()) {
    ASSIGN_OR_RETURN(checked.source.slice, ReadSlice(Sub(field, "region"), tensor->region(), values));
  } else if (tensor->has_upload()) {
    ASSIGN_OR_RETURN(checked.source.upload, CheckUpload(field, *tensor));
  } else {
    ASSIGN_OR_RETURN(checked.source.payload, CheckPayload(field, *tensor, values.payloads, checked));
  }
  return checked;
}

// Returns the integer for this token of a header. Token 0 means that the integer is absent.
absl::StatusOr<PlannedInteger> IntegerOf(const std::string& field, std::int64_t token,
                                         std::span<const std::int64_t> values) {
  if (token == 0) return PlannedInteger();
  const std::optional<std::size_t> index = IntegerIndex(token);
  if (index.has_value() && *index < values.size()) return PlannedInteger{.index = *index};
  return absl::InternalError(absl::StrCat(field, ": the header does not come from a scan"));
}

}  // namespace

absl::StatusOr<PlannedSlice> ReadSlice(std::string field, const v1::RegionSlice& slice,
                                       const TokenValues& values) {
  const std::string id_field = Sub(field, "id");
  if (slice.id().empty()) return FieldError(id_field, "missing");
  const std::optional<std::size_t> index = ReferenceIndex(slice.id());
  if (!index.has_value() || *index >= values.references.size()) {
    return absl::InternalError(absl::StrCat(id_field, ": the header does not come from a scan"));
  }
  PlannedSlice planned{.reference = *index, .offset = {}, .call = {}, .field = {}};
  ASSIGN_OR_RETURN(planned.offset, IntegerOf(Sub(field, "offset"), slice.offset(), values.integers));
  ASSIGN_OR_RETURN(planned.call, IntegerOf(Sub(field, "call"), slice.call(), values.integers));
  planned.field = std::move(field);
  return planned;
}

absl::Status TensorReader::CheckSameUpload(std::string_view field, const CheckedTensor& tensor) {
  const auto [first, is_new] = uploads_.try_emplace(*tensor.source.upload, tensor.spec);
  const TensorSpec& other = first->second;
  if (is_new || (other.dtype == tensor.spec.dtype && other.shape == tensor.spec.shape))
    return absl::OkStatus();
  return FieldError(
      Sub(field, "upload.number"),
      absl::StrCat(*tensor.source.upload, ": an operand before it has this number and is ",
                   std::string(Name(other.dtype)), " ", ToString(other.shape), ", but this one is ",
                   std::string(Name(tensor.spec.dtype)), " ", ToString(tensor.spec.shape)));
}

absl::StatusOr<CheckedTensor> TensorReader::Read(std::string_view field, const v1::Tensor* tensor) {
  ASSIGN_OR_RETURN(CheckedTensor checked, CheckTensor(field, tensor, values_));
  if (checked.source.upload.has_value()) {
    RETURN_IF_ERROR(CheckSameUpload(field, checked));
    return checked;
  }
  if (checked.source.reference.has_value() || checked.source.slice.has_value()) return checked;
  bytes_ += checked.spec.bytes;  // cannot overflow: all these bytes were received
  if (bytes_ > static_cast<std::size_t>(limits_.max_inline_bytes)) {
    return FieldError(Sub(field, "inline"),
                      absl::StrCat("the tensors up to this one take ", bytes_, " bytes; the limit is ",
                                   limits_.max_inline_bytes, " (the server's --max-inline-bytes)"));
  }
  return checked;
}

}  // namespace warpline
