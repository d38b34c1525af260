#include "client/src/streaming.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/time/clock.h"
#include "kernels/status_macros.h"

namespace warpline::client {

std::vector<std::size_t> LargestOf(const std::vector<std::size_t>& bytes, std::size_t limit) {
  std::vector<std::size_t> order(bytes.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return bytes[a] > bytes[b]; });
  std::size_t left = std::accumulate(bytes.begin(), bytes.end(), std::size_t{0}), count = 0;
  for (; left >= limit && count < order.size(); ++count) left -= bytes[order[count]];
  order.resize(count);
  std::sort(order.begin(), order.end());
  return order;
}

absl::Duration Streaming::left() const { return std::max(deadline_ - absl::Now(), absl::Nanoseconds(1)); }

absl::Status Streaming::Send(std::span<Operand* const> operands, std::optional<int> device) {
  std::vector<std::pair<Operand, std::size_t>> given;  // what was put, and its place in sent_
  for (Operand* const operand : operands) {
    const auto same = std::find_if(given.begin(), given.end(), [&](const auto& each) {
      const Operand& other = each.first;
      return other.data == operand->data && other.dtype == operand->dtype && other.shape == operand->shape &&
             other.row_stride == operand->row_stride;
    });
    if (same != given.end()) {
      *operand = sent_[same->second];
      continue;
    }
    const PutOptions options{.ttl = kLease, .device = device, .request_id = request_id_};
    ASSIGN_OR_RETURN(Tensor tensor, tensors_.Put(operand->AsArray(), left(), options));
    given.emplace_back(*operand, sent_.size());
    *operand = tensor;
    device = tensor.device();
    sent_.push_back(std::move(tensor));
  }
  return absl::OkStatus();
}

void Streaming::Drop(Tensor& tensor) {
  // If this fails, the lease ends.
  static_cast<void>(tensors_.Drop(tensor.Release(), left()));
}

void Streaming::DropSent() {
  for (Tensor& tensor : sent_) Drop(tensor);
  sent_.clear();
}

absl::Status Streaming::Fetch(const Destination& wanted, Array& array, std::optional<Tensor>& tensor) {
  if (!tensor.has_value()) return absl::InternalError("the server's response lacks a tensor");
  ASSIGN_OR_RETURN(array,
                   tensors_.Get(tensor->info(), left(), {.destination = wanted, .request_id = request_id_}));
  Drop(*tensor);
  tensor.reset();
  return absl::OkStatus();
}

}  // namespace warpline::client
