#include "kernels/bench/report/choice_text.h"

#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace warpline::bench {
namespace {

std::string Text(std::monostate) { return {}; }

std::string Text(const CanonicalTranspose& transpose) {
  return absl::StrJoin(transpose.dims.begin(), transpose.dims.begin() + transpose.rank, "x");
}
std::string Text(const TileWalk& walk) {
  // The kernel cuts a walk without tiles when it is launched.
  const std::string sides = absl::StrCat(
      walk.batch.Count(), walk.batch.Count() == 1 ? " matrix of " : " matrices of ", walk.ny, "x", walk.nx);
  return walk.tiles_x == 0 ? sides : absl::StrCat(sides, " in ", walk.Tiles(), " tiles");
}
std::string Text(const JoinedTiles& tiles) { return Text(tiles.walk); }
std::string Text(const PackedBox& box) {
  return absl::StrCat(box.boxes, " boxes with ", box.SharedBytes(), " bytes of shared memory");
}
std::string Text(const SmallBlocks& blocks) {
  return absl::StrCat(blocks.boxes, " boxes of ", blocks.box_bytes, " bytes");
}

std::string Text(const TransposePlan& plan) {
  if (plan.kernel == TransposeKernel::kCopy) return absl::StrCat(plan.in_bytes, " bytes");
  return absl::StrCat("elements of ", plan.element_bytes, plan.element_bytes == 1 ? " byte, " : " bytes, ",
                      std::visit([](const auto& shape) { return Text(shape); }, plan.shape));
}

std::string Text(const ReducePlan& plan) {
  const VectorPlan& vectors = plan.vectors;
  return absl::StrCat(plan.reduce.results, " results in ", vectors.tiles * vectors.split, " CTAs of ",
                      vectors.threads, " threads, ", vectors.split, " to a result");
}

const char* Name(PackLayout layout) {
  switch (layout) {
    case PackLayout::kDense:
      return "dense";
    case PackLayout::kVector:
      return "vectors";
    case PackLayout::kBroadcast:
      return "one element";
    case PackLayout::kRuns:
      return "runs";
    case PackLayout::kScattered:
      return "scattered";
  }
  return "";
}
std::string Text(const PackPlan& plan) {
  return absl::StrCat("a pack of x is ", Name(plan.x), ", of y ", Name(plan.y));
}

std::string Text(const MapPlan& plan) {
  return absl::StrCat(plan.code.instructions.size(), " instructions on ", plan.code.slots, " slots of ",
                      plan.code.slot_bytes, " bytes");
}

template <typename ProblemT>
std::string TextOf(const ProblemT& problem, const DeviceTraits& traits) {
  const CudaChoice<ProblemT> choice = Choose(problem, {}, traits, {});
  if (choice.row == nullptr) return "nothing";
  std::vector<std::string> parts = {
      std::visit([](const auto& arguments) { return Text(arguments); }, choice.plan.arguments)};
  if (const std::size_t bytes = choice.row->workspace_bytes(problem, traits); bytes > 0) {
    parts.push_back(absl::StrCat("workspace ", bytes, " bytes"));
  }
  const VariantCost cost = choice.row->cost == nullptr ? VariantCost() : choice.row->cost(problem, traits);
  if (cost.transfer != 1) parts.push_back(absl::StrCat("memory x", cost.transfer));
  if (cost.arithmetic != 1) parts.push_back(absl::StrCat("arithmetic x", cost.arithmetic));
  if (cost.serial > 0) parts.push_back(absl::StrCat(cost.serial, " elements in turn"));
  if (cost.launches != 1) parts.push_back(absl::StrCat(cost.launches, " launches"));
  if (parts.front().empty()) parts.erase(parts.begin());
  return absl::StrCat(std::string(choice.name()), parts.empty() ? "" : ": ", absl::StrJoin(parts, ", "));
}

}  // namespace

std::string ChoiceText(const Problem& problem, const DeviceTraits& traits) {
  return std::visit([&](const auto& p) { return TextOf(p, traits); }, problem);
}

}  // namespace warpline::bench
