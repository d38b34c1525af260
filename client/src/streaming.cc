#include "client/src/streaming.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/time/clock.h"
#include "client/src/arrived.h"
#include "client/src/transfer.h"
#include "kernels/status_macros.h"

namespace warpline::client {

std::vector<std::size_t> LargestOf(const std::vector<std::size_t>& bytes, std::size_t limit,
                                   std::size_t most) {
  std::vector<std::size_t> order(bytes.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return bytes[a] > bytes[b]; });
  std::size_t left = std::accumulate(bytes.begin(), bytes.end(), std::size_t{0}), count = 0;
  for (; left >= limit && count < std::min(order.size(), most); ++count) left -= bytes[order[count]];
  order.resize(count);
  std::sort(order.begin(), order.end());
  return order;
}

absl::Duration Streaming::left() const {
  return std::max(options_.deadline - absl::Now(), absl::Nanoseconds(1));
}

absl::StatusOr<int> Streaming::ChannelsOf(std::size_t bytes) const {
  ASSIGN_OR_RETURN(const int channels, ChannelsFor(options_.channels, bytes));
  return std::min(channels, channels_);
}

Progress Streaming::ProgressOf() {
  if (!options_.progress) return nullptr;
  return [this](std::size_t bytes) { options_.progress(moved_ + bytes, total_); };
}

void Streaming::SetUploads(std::span<Operand* const> operands) {
  total_ = options_.result_bytes;
  for (Operand* const operand : operands) {
    const auto same = std::find_if(arrays_.begin(), arrays_.end(), [&](const ConstArray& other) {
      return other.data == operand->data && other.dtype == operand->dtype && other.shape == operand->shape &&
             other.row_stride == operand->row_stride;
    });
    operand->upload = static_cast<int>(same - arrays_.begin());
    if (same != arrays_.end()) continue;
    arrays_.push_back(operand->AsArray());
    total_ += ByteSize({.dtype = operand->dtype, .shape = operand->shape}).value_or(0);
  }
}

absl::Status Streaming::Send(const std::string& uploads, const std::stop_token& ended) {
  v1::Uploads accepted;
  if (!accepted.ParseFromString(uploads) || accepted.ids_size() != static_cast<int>(arrays_.size()) ||
      accepted.channels() < 1) {
    return BadResponse("no Uploads for this request");
  }
  channels_ = accepted.channels();
  moved_ = 0;
  for (std::size_t i = 0; i < arrays_.size(); ++i) {
    ConstArray dense = arrays_[i];
    dense.row_stride = 0;
    ASSIGN_OR_RETURN(const std::size_t bytes, ByteSize(dense));
    ASSIGN_OR_RETURN(const int channels, ChannelsOf(bytes));
    Transfer transfer(connection_, options_.deadline, options_.request_id, ProgressOf());
    RETURN_IF_ERROR(
        transfer.PutUpload(accepted.ids(static_cast<int>(i)), arrays_[i], bytes, channels, ended));
    moved_ += bytes;
  }
  return absl::OkStatus();
}

absl::Status Streaming::Fetch(const Destination& wanted, Array& array, std::optional<Tensor>& tensor) {
  if (!tensor.has_value()) return absl::InternalError("the server's response lacks a tensor");
  ASSIGN_OR_RETURN(const int channels, ChannelsOf(tensor->bytes()));
  const std::size_t bytes = tensor->bytes();
  ASSIGN_OR_RETURN(array, Array::For(tensor->dtype(), tensor->shape(), bytes, wanted));
  Transfer transfer(connection_, options_.deadline, options_.request_id, ProgressOf());
  RETURN_IF_ERROR(transfer.GetResult(tensor->id(), {static_cast<std::byte*>(array.data()), bytes}, channels));
  moved_ += bytes;
  // If this fails, the tensor is freed when its lease ends.
  static_cast<void>(tensors_.Drop(tensor->Release(), left()));
  tensor.reset();
  return absl::OkStatus();
}

}  // namespace warpline::client
