#include "kernels/bench/harness/variants_of.h"

#include <algorithm>
#include <optional>
#include <type_traits>

namespace warpline::bench {
namespace {

// Operations that any kernel does in negligible time.
constexpr double kSlowVariantFlops = 1 << 23;

// Transpositions are never slow enough to ask.
std::optional<TransposeProblem> Shrink(const TransposeProblem&) { return std::nullopt; }
std::optional<ElementwiseProblem> Shrink(const ElementwiseProblem&) { return std::nullopt; }

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

}  // namespace

std::vector<BoundVariant> VariantsOf(const Case& bench_case, const Device& device) {
  std::vector<BoundVariant> variants;
  const auto& asked = bench_case.variants;
  std::visit(
      [&](const auto& problem) {
        const DeviceTraits& traits = device.context.traits;
        const auto table = CudaTable(problem);
        std::vector<const std::remove_cvref_t<decltype(table[0])>*> rows;
        for (const auto& row : table) rows.push_back(&row);
        if (!bench_case.choice_only) rows = Climb(table);
        for (const auto* at : rows) {
          const auto& row = *at;
          if (!asked.empty() && std::find(asked.begin(), asked.end(), row.name) == asked.end()) continue;
          if (bench_case.choice_only && !MayChoose(row, problem, traits)) continue;
          BoundVariant variant;
          variant.name = row.name;
          variant.summary = row.summary;
          variant.supported = row.supports_dtype(problem.dtype) && row.supports(problem, traits);
          if (variant.supported) {
            const auto bind = [&row, &device](const auto& what) {
              return [&row, &device, what](const Operands& operands, cudaStream_t stream) {
                return row.launch(what, operands, device.context, stream);
              };
            };
            variant.workspace_bytes = row.workspace_bytes(problem, traits);
            variant.launch = bind(problem);
            // The server's choice is never slow enough to ask.
            if (const auto shrunk = bench_case.choice_only ? std::nullopt : Shrink(problem);
                shrunk && row.supports(*shrunk, traits)) {
              variant.workspace_bytes =
                  std::max(variant.workspace_bytes, row.workspace_bytes(*shrunk, traits));
              variant.launch_shrunk = bind(*shrunk);
            }
          }
          variants.push_back(std::move(variant));
        }
      },
      bench_case.problem);
  return variants;
}

}  // namespace warpline::bench
