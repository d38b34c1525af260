#include "server/rpc/put_sequence.h"

#include <cstdint>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/status_macros.h"
#include "proto/rules/known_fields.h"
#include "server/base/errors.h"

namespace warpline {

ScanSchema PutSchema() {
  return ScanSchema::For(
      v1::PutRequest::descriptor(),
      {.payload = v1::PutRequest::descriptor()->FindFieldByNumber(v1::PutRequest::kDataFieldNumber)});
}

absl::StatusOr<PutMessage> ReadPutMessage(const ScanSchema& schema, Slices slices) {
  ASSIGN_OR_RETURN(const ScannedMessage scanned, ScanMessage(schema, slices));
  PutMessage message;
  if (!message.request.ParseFromString(scanned.header)) {
    return absl::InvalidArgumentError("the message is not a valid protobuf message of its type");
  }
  RETURN_IF_ERROR(CheckAllKnown(message.request));
  // If there are several, the last one counts, as usual in protobuf.
  const std::optional<std::size_t> index = PayloadIndex(message.request.data());
  if (index.has_value() && *index < scanned.payloads.size()) message.data = scanned.payloads[*index];
  if (message.data.length > kMaxChunkBytes) {
    return FieldError(
        "data", absl::StrCat(message.data.length, " bytes; the limit of a message is ", kMaxChunkBytes));
  }
  return message;
}

absl::Status PutSequence::Begin(const v1::PutRequest& first) {
  if (first.id().empty()) return FieldError("id", "missing in the first message");
  if (first.offset() < 0) return FieldError("offset", absl::StrCat(first.offset(), "; the least is 0"));
  auto writing = tensors_.Write(owner_, first.id(), static_cast<std::size_t>(first.offset()));
  RETURN_IF_ERROR(InField(absl::IsInvalidArgument(writing.status()) ? "offset" : "id", writing.status()));
  writing_ = *std::move(writing);
  id_ = first.id();
  return absl::OkStatus();
}

absl::StatusOr<ByteRange> PutSequence::Extend(const PutMessage& message) {
  const v1::PutRequest& next = message.request;
  if (!next.id().empty() && next.id() != id_) return FieldError("id", "differs from the first message's");
  const std::size_t end = writing_.range().end;
  if (next.offset() != static_cast<std::int64_t>(end)) {
    return FieldError("offset", absl::StrCat(next.offset(), ", but the message before ended at ", end));
  }
  RETURN_IF_ERROR(InField("offset", writing_.Extend(message.data.length)));
  return ByteRange{end, end + message.data.length};
}

}  // namespace warpline
