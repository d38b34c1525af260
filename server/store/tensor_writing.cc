// TensorStore::Writing: several calls may write different parts of one tensor.
#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/base/errors.h"
#include "server/store/tensor_entry.h"
#include "server/store/tensor_store.h"

namespace warpline {
namespace {

// Even a tensor that is filled from many places at once has fewer pieces. More pieces would only use host
// memory that no client is charged for.
constexpr std::size_t kMaxPieces = 65536;

}  // namespace

TensorStore::Writing& TensorStore::Writing::operator=(Writing&& other) noexcept {
  if (this == &other) return *this;
  Abandon();
  memory_ = std::move(other.memory_);
  store_ = std::exchange(other.store_, nullptr);
  entry_ = std::move(other.entry_);
  call_ = std::move(other.call_);
  range_ = other.range_;
  if (store_ != nullptr) {
    MutexLock lock(&store_->mutex_);
    std::replace(entry_->writing.begin(), entry_->writing.end(), static_cast<const ByteRange*>(&other.range_),
                 static_cast<const ByteRange*>(&range_));
  }
  return *this;
}

absl::Status TensorStore::Writing::Extend(std::size_t bytes) {
  MutexLock lock(&store_->mutex_);
  const std::size_t size = entry_->spec.bytes;
  if (entry_->is_upload && entry_->removed) {
    return absl::NotFoundError("the request that this upload belongs to has ended, or has all of it");
  }
  if (bytes > size - range_.end) {
    return absl::InvalidArgumentError(absl::StrCat(ToString(ByteRange{range_.end, range_.end + bytes}),
                                                   " are not within the tensor, which has ", size, " bytes"));
  }
  if (bytes == 0) return absl::OkStatus();  // nobody else can be writing an empty range
  const ByteRange more{range_.end, range_.end + bytes};
  if (entry_->complete) {
    return absl::InvalidArgumentError(
        absl::StrCat(ToString(more), " are there already: the tensor is complete"));
  }
  if (const auto common = entry_->written.FirstCommon(more); common.has_value()) {
    return absl::InvalidArgumentError(absl::StrCat(ToString(*common), " are there already"));
  }
  if (entry_->written.count() >= kMaxPieces && !entry_->written.Touches(more)) {
    return absl::ResourceExhaustedError(
        absl::StrCat(ToString(more), " would be another piece of the tensor that touches none of its ",
                     kMaxPieces, ": first fill the gaps between these"));
  }
  for (const ByteRange* other : entry_->writing) {
    if (other == &range_ || other->begin >= more.end || other->end <= more.begin) continue;
    return WithRetryAfter(absl::AbortedError(absl::StrCat("another call writes some of ", ToString(more))),
                          absl::Milliseconds(100));
  }
  if (range_.size() == 0) entry_->writing.push_back(&range_);
  range_.end += bytes;
  if (call_ != nullptr) call_->OnArrived(bytes, /*completes=*/false);
  return absl::OkStatus();
}

std::size_t TensorStore::Writing::Commit() {
  std::size_t missing = 0;
  bool completes = false;
  {
    MutexLock lock(&store_->mutex_);
    entry_->written.Add(range_);
    missing = entry_->spec.bytes - entry_->written.bytes();
    completes = missing == 0 && !entry_->complete;
    if (completes) entry_->complete = true;
  }
  const std::shared_ptr<StreamedCall> call = std::move(call_);
  Abandon();
  if (completes && call != nullptr) call->OnArrived(0, /*completes=*/true);
  return missing;
}

void TensorStore::Writing::Abandon() {
  if (store_ == nullptr) return;
  {
    MutexLock lock(&store_->mutex_);
    entry_->writing.remove(&range_);
  }
  memory_ = Buffer();
  if (call_ != nullptr) call_->OnTakenBack(range_.size());
  call_.reset();
  store_->EndUse(entry_);
  entry_.reset();
  store_ = nullptr;
}

}  // namespace warpline
