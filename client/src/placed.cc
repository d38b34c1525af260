#include "client/src/placed.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

namespace warpline::client {

Placed::Placed(RegionPool* pool, const RunArgs& args, ResultTypes types, bool keeps)
    : args_(&args), types_(std::move(types)) {
  const bool uses_pool = pool != nullptr && MayUse(*pool, args);
  if (!uses_pool && !keeps) return;
  args_ = &own_.emplace(args);
  if (!uses_pool) return;
  std::vector<Operand*> operands;
  for (auto& [name, operand] : own_->inputs) operands.push_back(&operand);
  own_->destinations.resize(std::max(own_->destinations.size(), types_.size()));
  ResultTypes placed_types = types_;
  placed_types.resize(own_->destinations.size());
  placement_ = Placement(*pool, std::move(operands), own_->destinations, std::move(placed_types));
}

void Placed::Release() {
  placement_ = Placement();
  args_ = nullptr;
  own_.reset();
}

bool Placed::MayUse(const RegionPool& pool, const RunArgs& args) const {
  const auto is_in_region = [&](const void* data) {
    return data != nullptr && pool.table().Find(data, 0) != nullptr;
  };
  const auto is_large = [&](std::size_t bytes) { return bytes >= pool.share_from_bytes(); };
  for (const Destination& each : args.destinations) {
    if (is_in_region(each.data)) return true;
  }
  for (const auto& [name, operand] : args.inputs) {
    if (!operand.travels_along()) continue;
    const absl::StatusOr<std::size_t> bytes = ByteSize({.dtype = operand.dtype, .shape = operand.shape});
    if (is_in_region(operand.data) || (bytes.ok() && is_large(*bytes))) return true;
  }
  return std::any_of(types_.begin(), types_.end(), [&](const std::optional<ArrayType>& type) {
    return type.has_value() && is_large(type->bytes);
  });
}

}  // namespace warpline::client
