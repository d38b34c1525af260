#include "kernels/bench/harness/variants_of.h"

#include <algorithm>
#include <optional>

#include "kernels/ladder/rungs.h"

namespace warpline::bench {
namespace {

// Operations that any kernel does in negligible time.
constexpr double kSlowVariantFlops = 1 << 23;

// The others are never slow enough to ask.
template <typename ProblemT>
std::optional<ProblemT> Shrink(const ProblemT&) {
  return std::nullopt;
}

std::optional<GemmProblem> Shrink(const GemmProblem& problem) {
  if (FlopsOf(problem) < 64 * kSlowVariantFlops) return std::nullopt;
  const auto quarter = [](std::int64_t size) { return std::max<std::int64_t>(size / 4, 1); };
  GemmProblem shrunk = problem;
  shrunk.m = quarter(problem.m), shrunk.n = quarter(problem.n), shrunk.k = quarter(problem.k);
  shrunk.lda = shrunk.k, shrunk.ldb = shrunk.n, shrunk.ldc = shrunk.n;
  return shrunk;
}

std::optional<ReduceProblem> Shrink(const ReduceProblem& problem) {
  if (FlopsOf(problem) < kSlowVariantFlops) return std::nullopt;
  ReduceProblem shrunk = problem;
  const std::int64_t by = problem.shape.rank == 1 ? 64 : 8;
  for (int axis = 0; axis < shrunk.shape.rank; ++axis) {
    shrunk.shape[axis] = std::max<std::int64_t>(shrunk.shape[axis] / by, 1);
  }
  return shrunk;
}

template <typename ProblemT>
auto Bind(const CudaChoice<ProblemT>& choice, const ProblemT& problem, const Device& device) {
  return [choice, problem, &device](const Operands& operands, cudaStream_t stream) {
    return choice.Launch(problem, operands, device.context, stream);
  };
}

// The server's own choice, and what runs where that is refused.
template <typename ProblemT>
void AppendChoices(const ProblemT& problem, const Device& device, std::vector<BoundVariant>& to) {
  const DeviceTraits& traits = device.context.traits;
  for (auto choice = Choose(problem, {}, traits, Operands()); choice.row != nullptr;
       choice = ChooseAfter(choice, problem, traits)) {
    to.push_back({.name = std::string(choice.name()),
                  .summary = std::string(choice.row->summary),
                  .supported = true,
                  .workspace_bytes = choice.row->workspace_bytes(problem, traits),
                  .launch = Bind(choice, problem, device),
                  .launch_shrunk = {}});
  }
}

template <typename ProblemT>
BoundVariant BindRow(const CudaVariant<ProblemT>& row, const ProblemT& problem, const Device& device) {
  const DeviceTraits& traits = device.context.traits;
  BoundVariant variant{.name = std::string(row.name),
                       .summary = std::string(row.summary),
                       .supported = false,
                       .workspace_bytes = 0,
                       .launch = {},
                       .launch_shrunk = {}};
  const auto choice = ChooseOnLadder(problem, row.name, traits, Operands());
  if (choice.row == nullptr) return variant;
  variant.supported = true;
  variant.workspace_bytes = row.workspace_bytes(problem, traits);
  variant.launch = Bind(choice, problem, device);
  const std::optional<ProblemT> shrunk = Shrink(problem);
  if (!shrunk.has_value()) return variant;
  if (const auto of_shrunk = ChooseOnLadder(*shrunk, row.name, traits, Operands());
      of_shrunk.row != nullptr) {
    variant.workspace_bytes = std::max(variant.workspace_bytes, row.workspace_bytes(*shrunk, traits));
    variant.launch_shrunk = Bind(of_shrunk, *shrunk, device);
  }
  return variant;
}

}  // namespace

std::vector<BoundVariant> VariantsOf(const Case& bench_case, const Device& device) {
  std::vector<BoundVariant> variants;
  const auto& asked = bench_case.variants;
  const auto is_asked = [&](const auto& row) {
    return asked.empty() || std::any_of(asked.begin(), asked.end(),
                                        [&](const std::string& name) { return Answers(row, name); });
  };
  std::visit(
      [&](const auto& problem) {
        if (bench_case.choice_only) return AppendChoices(problem, device, variants);
        for (const auto* row : Climb(problem)) {
          if (is_asked(*row)) variants.push_back(BindRow(*row, problem, device));
        }
      },
      bench_case.problem);
  return variants;
}

}  // namespace warpline::bench
