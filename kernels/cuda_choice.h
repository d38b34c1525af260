// The server's choice of a kernel on a GPU. It is a value, made once for a problem and the alignment of its
// operands, then printed, kept and launched. Choosing needs no GPU: it allocates no device memory, launches
// nothing, and does not query devices.
#ifndef WARPLINE_KERNELS_CUDA_CHOICE_H_
#define WARPLINE_KERNELS_CUDA_CHOICE_H_

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>
#include <variant>

#include "kernels/cuda_variants.h"
#include "kernels/map/packs/plan.h"
#include "kernels/map/plan.h"
#include "kernels/reduce/plan.h"
#include "kernels/transpose/plan.h"

namespace warpline {

// The arguments of a launch, for rows that compute them from the problem. Empty for other rows.
struct KernelPlan {
  std::variant<std::monostate, TransposePlan, ReducePlan, PackPlan, MapPlan> arguments;
};

template <typename ProblemT>
struct CudaChoice {
  const CudaVariant<ProblemT>* row = nullptr;  // null: no row can run the problem
  int configuration = 0;                       // see ConfigurationNamed
  KernelPlan plan;

  // Returns the name for reports and metrics: that of the row or of its configuration.
  std::string_view name() const {
    return configuration == 0 ? row->name : row->configurations[static_cast<std::size_t>(configuration) - 1];
  }
  cudaError_t Launch(const ProblemT& problem, const Operands& operands, const CudaContext& context,
                     cudaStream_t stream) const {
    CudaContext of_choice = context;
    of_choice.configuration = configuration;
    if (!std::holds_alternative<std::monostate>(plan.arguments)) of_choice.plan = &plan;
    return row->launch(problem, operands, of_choice, stream);
  }
};

// Chooses what runs a valid problem. `variant` is the name of a row, a configuration or a group; empty: any
// row. Of the operands, only their addresses modulo 16 matter, and whether C and D are the same memory. The
// server's own choice is reproducible. It is empty only for problems that are larger than any kernel
// supports, which CheckVariant has refused. If `variant` is a name, the row is null if it cannot run the
// problem at these addresses.
CudaChoice<TransposeProblem> Choose(const TransposeProblem& problem, std::string_view variant,
                                    const DeviceTraits& traits, const Operands& operands);
CudaChoice<GemmProblem> Choose(const GemmProblem& problem, std::string_view variant,
                               const DeviceTraits& traits, const Operands& operands);
CudaChoice<ReduceProblem> Choose(const ReduceProblem& problem, std::string_view variant,
                                 const DeviceTraits& traits, const Operands& operands);
CudaChoice<MapProblem> Choose(const MapProblem& problem, std::string_view variant, const DeviceTraits& traits,
                              const Operands& operands);

// Returns the row with this name, which must exist.
template <typename Row>
const Row& RowNamed(std::span<const Row> table, std::string_view name) {
  for (const Row& row : table) {
    if (row.name == name) return row;
  }
  return table.back();
}

// Chooses the first row, from `begin` on, that `variant` can mean and that supports the problem. Only for
// tables whose rules do not depend on addresses.
template <typename ProblemT>
CudaChoice<ProblemT> ChooseInOrder(std::span<const CudaVariant<ProblemT>> table, const ProblemT& problem,
                                   std::string_view variant, const DeviceTraits& traits,
                                   std::size_t begin = 0) {
  for (std::size_t i = begin; i < table.size(); ++i) {
    const auto& row = table[i];
    if (variant.empty() ? MayChoose(row, problem, traits)
                        : Answers(row, variant) && Suits(row, problem, traits)) {
      return {.row = &row, .configuration = ConfigurationNamed(row, variant).value_or(0), .plan = {}};
    }
  }
  return {};
}

// For all other problems: chooses the first row that supports the problem at any address.
template <typename ProblemT>
CudaChoice<ProblemT> Choose(const ProblemT& problem, std::string_view variant, const DeviceTraits& traits,
                            const Operands&) {
  return ChooseInOrder(CudaTable(problem), problem, variant, traits);
}

// Chooses a replacement if a row of the server's choice refused the problem at its launch: the next suitable
// row of the table.
template <typename ProblemT>
CudaChoice<ProblemT> ChooseAfter(const CudaChoice<ProblemT>& refused, const ProblemT& problem,
                                 const DeviceTraits& traits) {
  const auto table = CudaTable(problem);
  return ChooseInOrder(table, problem, {}, traits, static_cast<std::size_t>(refused.row - table.data()) + 1);
}

}  // namespace warpline

#endif  // WARPLINE_KERNELS_CUDA_CHOICE_H_
