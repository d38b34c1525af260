// The ladder: a sequence of kernels of one operation, from the plainest to the server's own, each of which
// shows the effect of one technique. A server has those that it can choose itself, an oracle, and `atomic`.
// The tables here have the others, which only the benchmark and its tests run.
#ifndef WARPLINE_KERNELS_LADDER_RUNGS_H_
#define WARPLINE_KERNELS_LADDER_RUNGS_H_

#include <algorithm>
#include <span>
#include <string_view>
#include <vector>

#include "kernels/cuda_choice.h"

namespace warpline {

// Rows that a server does not have, for a type of problem. Their names differ from those of the server's.
std::span<const CudaVariant<TransposeProblem>> LadderRungs(const TransposeProblem& problem);
std::span<const CudaVariant<GemmProblem>> LadderRungs(const GemmProblem& problem);
std::span<const CudaVariant<ReduceProblem>> LadderRungs(const ReduceProblem& problem);
template <typename ProblemT>
std::span<const CudaVariant<ProblemT>> LadderRungs(const ProblemT&) {
  return {};
}

// Returns all rows for a type of problem: first the ladder by its steps (README.md), then the rows that
// are not on it (step 0), the server's first.
template <typename ProblemT>
std::vector<const CudaVariant<ProblemT>*> Climb(const ProblemT& problem) {
  std::vector<const CudaVariant<ProblemT>*> rows;
  for (const auto& row : CudaTable(problem)) rows.push_back(&row);
  for (const auto& row : LadderRungs(problem)) rows.push_back(&row);
  std::stable_sort(rows.begin(), rows.end(), [](const auto* a, const auto* b) {
    return static_cast<unsigned>(a->step) - 1 < static_cast<unsigned>(b->step) - 1;  // 0 comes last
  });
  return rows;
}

// Same as Choose, but `variant` may also name one of the rungs.
template <typename ProblemT>
CudaChoice<ProblemT> ChooseOnLadder(const ProblemT& problem, std::string_view variant,
                                    const DeviceTraits& traits, const Operands& operands) {
  const CudaChoice<ProblemT> of_server = Choose(problem, variant, traits, operands);
  if (of_server.row != nullptr || variant.empty()) return of_server;
  return ChooseInOrder(LadderRungs(problem), problem, variant, traits);
}

}  // namespace warpline

#endif  // WARPLINE_KERNELS_LADDER_RUNGS_H_
