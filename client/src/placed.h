// The arguments of one request as they are sent: those of the caller, but for what lies in the client's pool.
#ifndef WARPLINE_CLIENT_SRC_PLACED_H_
#define WARPLINE_CLIENT_SRC_PLACED_H_

#include <algorithm>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "client/src/placement.h"
#include "client/src/region_pool.h"
#include "client/src/result_type.h"
#include "warpline/requests.h"

namespace warpline::client {

// Calls `visit` with each operand.
template <typename Args, typename Visit>
void ForEachOperand(Args& args, const Visit& visit) {
  if constexpr (std::is_same_v<std::remove_const_t<Args>, RunArgs>) {
    for (auto& [name, operand] : args.inputs) visit(operand);
  } else if (auto* const gemm = std::get_if<GemmArgs>(&args)) {
    visit(gemm->a);
    visit(gemm->b);
    if (gemm->c) visit(*gemm->c);
    if (gemm->bias) visit(*gemm->bias);
  } else if (auto* const transpose = std::get_if<TransposeArgs>(&args)) {
    visit(transpose->x);
  } else {
    visit(std::get<ReduceArgs>(args).x);
  }
}

// `Args` is OperationArgs or RunArgs.
template <typename Args>
class Placed {
 public:
  // `pool` may be null. `types` are those of the results. `destination` is that of an operation. `keeps`: the
  // arguments may go while args() is still needed.
  Placed(RegionPool* pool, const Args& args, ResultTypes types, const Destination& destination, bool keeps)
      : args_(&args), types_(std::move(types)), destination_(destination) {
    const bool uses_pool = pool != nullptr && MayUse(*pool, args);
    if (!uses_pool && !keeps) return;
    args_ = &own_.emplace(args);
    if (!uses_pool) return;
    std::vector<Operand*> operands;
    ForEachOperand(*own_, [&](Operand& operand) { operands.push_back(&operand); });
    std::span<Destination> destinations(&destination_, 1);
    if constexpr (std::is_same_v<Args, RunArgs>) {
      own_->destinations.resize(std::max(own_->destinations.size(), types_.size()));
      destinations = own_->destinations;
    }
    ResultTypes placed_types = types_;
    placed_types.resize(destinations.size());
    placement_ = Placement(*pool, std::move(operands), destinations, std::move(placed_types));
  }
  Placed(const Placed&) = delete;
  Placed& operator=(const Placed&) = delete;

  const Args& args() const { return *args_; }
  const ResultTypes& types() const { return types_; }
  const Destination& destination() const { return destination_; }
  Placement& placement() { return placement_; }
  // Gives up the arguments and what was placed for them: the call is over.
  void Release() {
    placement_ = Placement();
    args_ = nullptr;
    own_.reset();
  }

 private:
  // False for most small calls, which then cost hardly more than without a pool.
  bool MayUse(const RegionPool& pool, const Args& args) const {
    const auto is_in_region = [&](const void* data) {
      return data != nullptr && pool.table().Find(data, 0) != nullptr;
    };
    bool may_use = is_in_region(destination_.data);
    if constexpr (std::is_same_v<Args, RunArgs>) {
      for (const Destination& each : args.destinations) may_use = may_use || is_in_region(each.data);
    }
    ForEachOperand(args, [&](const Operand& operand) {
      if (may_use || !operand.travels_along()) return;
      const absl::StatusOr<std::size_t> bytes = ByteSize({.dtype = operand.dtype, .shape = operand.shape});
      may_use = is_in_region(operand.data) || (bytes.ok() && *bytes >= pool.share_from_bytes());
    });
    return may_use || std::any_of(types_.begin(), types_.end(), [&](const std::optional<ArrayType>& type) {
             return type && type->bytes >= pool.share_from_bytes();
           });
  }

  const Args* args_;
  const ResultTypes types_;
  std::optional<Args> own_;
  Destination destination_;
  Placement placement_;
};

}  // namespace warpline::client

#endif  // WARPLINE_CLIENT_SRC_PLACED_H_
