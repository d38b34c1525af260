#include "client/src/placement.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "client/src/parallel_copy.h"
#include "kernels/status_macros.h"

namespace warpline::client {
namespace {

std::span<const std::byte> BytesAt(const void* data, std::size_t bytes) {
  return {static_cast<const std::byte*>(data), bytes};
}

bool Overlap(std::span<const std::byte> a, std::span<const std::byte> b) {
  return a.data() < b.data() + b.size() && b.data() < a.data() + a.size();
}

bool AreSame(const Operand& a, const Operand& b) {
  return a.data == b.data && a.dtype == b.dtype && a.shape == b.shape && a.row_stride == b.row_stride;
}

// Copies the elements, without the padding of rows. The operand must not be empty.
void CopyDense(void* to, const Operand& operand, std::size_t bytes) {
  if (operand.row_stride == 0) return CopyBytes(to, operand.data, bytes);
  const auto element = static_cast<std::size_t>(SizeOf(operand.dtype));
  const std::int64_t row = operand.shape[operand.shape.rank - 1];
  CopyRows(to, operand.data, bytes, static_cast<std::size_t>(row) * element,
           static_cast<std::size_t>(operand.row_stride) * element);
}

}  // namespace

Placement::Placement(RegionPool& pool, std::vector<Operand*> operands, std::span<Destination> destinations,
                     std::vector<std::optional<ArrayType>> types)
    : pool_(&pool),
      operands_(std::move(operands)),
      destinations_(destinations),
      types_(std::move(types)),
      given_destinations_(destinations.begin(), destinations.end()) {
  for (const Operand* operand : operands_) given_operands_.push_back(*operand);
}

absl::Status Placement::Place(absl::Time deadline, bool may_retry) {
  if (!active()) return absl::OkStatus();
  if (is_placed_ && !is_lacking_ && !lost_region()) return absl::OkStatus();
  GiveBack();
  absl::Status status = PlaceAll(deadline, may_retry);
  is_placed_ = status.ok();
  if (!status.ok()) GiveBack();
  return status;
}

absl::Status Placement::PlaceAll(absl::Time deadline, bool may_retry) {
  for (Operand* operand : operands_) RETURN_IF_ERROR(PlaceOperand(*operand, deadline, may_retry));
  moved_.resize(destinations_.size());
  for (std::size_t i = 0; i < destinations_.size(); ++i) {
    RETURN_IF_ERROR(PlaceResult(i, deadline, may_retry));
  }
  return absl::OkStatus();
}

absl::Status Placement::PlaceOperand(Operand& operand, absl::Time deadline, bool may_retry) {
  if (!operand.travels_along() || operand.data == nullptr) return absl::OkStatus();
  const absl::StatusOr<std::size_t> span = ByteSize(operand.AsArray());
  const absl::StatusOr<std::size_t> bytes = ByteSize({.dtype = operand.dtype, .shape = operand.shape});
  // Invalid operands are reported later, when they are encoded.
  if (!span.ok() || !bytes.ok() || *bytes == 0) return absl::OkStatus();
  if (IsShared(operand.data, *span, operand.dtype)) {
    regions_.push_back(pool_->table().Find(operand.data, *span));
    return absl::OkStatus();
  }
  if (*bytes < pool_->share_from_bytes()) return absl::OkStatus();
  for (const Copied& each : copied_) {
    if (!AreSame(each.given, operand)) continue;
    operand = each.sent;
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(const std::optional<PoolBlock> block, Take(*bytes, deadline, may_retry));
  if (!block) return absl::OkStatus();
  CopyDense(block->memory.get(), operand, *bytes);
  const Operand sent{operand.dtype, operand.shape, 0, block->memory.get(), block->memory};
  copied_.push_back({std::exchange(operand, sent), sent});
  return absl::OkStatus();
}

absl::Status Placement::PlaceResult(std::size_t i, absl::Time deadline, bool may_retry) {
  Destination& destination = destinations_[i];
  // A region given by the caller is used in the same way without a pool.
  if (destination.region != nullptr) writes_in_place_ = true;
  if (destination.region != nullptr || destination.keep) return absl::OkStatus();
  // The codec handles a result whose size is unknown or too large for the destination.
  const std::optional<ArrayType>& type = types_[i];
  if (!type || type->bytes == 0) return absl::OkStatus();
  if (destination.data != nullptr && destination.bytes < type->bytes) return absl::OkStatus();
  const bool is_in_region =
      destination.data != nullptr && pool_->table().Find(destination.data, type->bytes) != nullptr;
  if (is_in_region && IsShared(destination.data, type->bytes, type->dtype) &&
      IsFree(destination.data, type->bytes)) {
    writes_in_place_ = true;
    in_place_.push_back(BytesAt(destination.data, type->bytes));
    regions_.push_back(pool_->table().Find(destination.data, type->bytes));
    return absl::OkStatus();
  }
  if (type->bytes >= pool_->share_from_bytes()) {
    ASSIGN_OR_RETURN(std::optional<PoolBlock> block, Take(type->bytes, deadline, may_retry));
    if (block) {
      destination = {.data = block->memory.get(), .bytes = block->bytes};
      moved_[i] = Moved{std::move(block)};
      return absl::OkStatus();
    }
  }
  if (is_in_region) {
    destination = {};
    moved_[i] = Moved{};
  }
  return absl::OkStatus();
}

absl::StatusOr<std::optional<PoolBlock>> Placement::Take(std::size_t bytes, absl::Time deadline,
                                                         bool may_retry) {
  absl::StatusOr<PoolBlock> block = pool_->Take(bytes, deadline);
  if (block.ok()) {
    regions_.push_back(block->region);
    return *std::move(block);
  }
  const bool is_unreachable = absl::IsUnavailable(block.status());
  // Without a server, messages fail too. Once the server is back, a message may be too small for the
  // elements.
  if (pool_->always() || (is_unreachable && may_retry)) return block.status();
  // A server that is starting may open its region socket a little later.
  is_lacking_ = is_lacking_ || is_unreachable || absl::IsFailedPrecondition(block.status());
  return std::nullopt;
}

bool Placement::IsShared(const void* data, std::size_t bytes, DType dtype) const {
  const std::shared_ptr<SharedRegion> region = pool_->table().Find(data, bytes);
  // Offsets must be multiples of the element size.
  return region != nullptr && region->status().ok() &&
         reinterpret_cast<std::uintptr_t>(data) % static_cast<std::size_t>(SizeOf(dtype)) == 0;
}

bool Placement::IsFree(const void* data, std::size_t bytes) const {
  const std::span<const std::byte> place = BytesAt(data, bytes);
  for (const Operand& operand : given_operands_) {
    if (!operand.travels_along()) continue;
    const absl::StatusOr<std::size_t> size = ByteSize(operand.AsArray());
    if (size.ok() && Overlap(place, BytesAt(operand.data, *size))) return false;
  }
  return std::none_of(in_place_.begin(), in_place_.end(),
                      [&](std::span<const std::byte> other) { return Overlap(place, other); });
}

bool Placement::lost_region() const {
  return std::any_of(regions_.begin(), regions_.end(), [](const std::shared_ptr<SharedRegion>& region) {
    return region == nullptr || !region->status().ok();
  });
}

void Placement::GiveBack() {
  for (std::size_t i = 0; i < operands_.size(); ++i) *operands_[i] = given_operands_[i];
  std::copy(given_destinations_.begin(), given_destinations_.end(), destinations_.begin());
  copied_.clear();
  moved_.clear();
  regions_.clear();
  in_place_.clear();
  is_placed_ = is_lacking_ = writes_in_place_ = false;
}

absl::Status Placement::Deliver(std::span<Array* const> results) {
  for (std::size_t i = 0; i < results.size() && i < moved_.size(); ++i) {
    if (moved_[i]) RETURN_IF_ERROR(DeliverOne(i, *results[i]));
  }
  return absl::OkStatus();
}

absl::Status Placement::DeliverOne(std::size_t i, Array& result) {
  const Destination& given = given_destinations_[i];
  if (given.data == nullptr) {
    if (std::shared_ptr<void> owner = pool_->Lend(*moved_[i]->block)) {
      result = Array::Over(result.dtype(), result.shape(), result.data(), result.bytes(), std::move(owner));
      return absl::OkStatus();
    }
  }
  ASSIGN_OR_RETURN(Array array, Array::For(result.dtype(), result.shape(), result.bytes(), given));
  CopyBytes(array.data(), result.data(), result.bytes());
  result = std::move(array);
  return absl::OkStatus();
}

}  // namespace warpline::client
