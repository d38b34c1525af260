// The server's choice of a kernel on a GPU, as a value: made once for a problem and the alignment of its
// operands, then printed, kept and launched. Choosing allocates nothing on a device, launches nothing, and
// asks no device: it runs where there is no GPU.
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

// The arguments of a launch, for rows that compute them from the problem. Others have none.
struct KernelPlan {
  std::variant<std::monostate, TransposePlan, ReducePlan, PackPlan, MapPlan> arguments;
};

template <typename ProblemT>
struct CudaChoice {
  const CudaVariant<ProblemT>* row = nullptr;  // null: nothing serves
  int configuration = 0;                       // see ConfigurationNamed
  KernelPlan plan;

  // The name that reports and metrics have: of the row, or of its configuration.
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

// Chooses what runs a valid problem. `variant` is the name of a row, of a configuration or of a group; empty:
// any may be chosen. Of the operands only the remainders by 16 of their addresses count, and whether C lies
// where D does. The choice of the server is reproducible. It is empty only for problems that CheckVariant has
// refused, as larger than any kernel takes. For a name the row is null if it cannot run the problem at these
// addresses.
CudaChoice<TransposeProblem> Choose(const TransposeProblem& problem, std::string_view variant,
                                    const DeviceTraits& traits, const Operands& operands);
CudaChoice<GemmProblem> Choose(const GemmProblem& problem, std::string_view variant,
                               const DeviceTraits& traits, const Operands& operands);
CudaChoice<ReduceProblem> Choose(const ReduceProblem& problem, std::string_view variant,
                                 const DeviceTraits& traits, const Operands& operands);
CudaChoice<MapProblem> Choose(const MapProblem& problem, std::string_view variant, const DeviceTraits& traits,
                              const Operands& operands);

// Returns the row of this name; there must be one.
template <typename Row>
const Row& RowNamed(std::span<const Row> table, std::string_view name) {
  for (const Row& row : table) {
    if (row.name == name) return row;
  }
  return table.back();
}

// Chooses the first row, from `begin` on, that `variant` may mean and that suits the problem. Only for tables
// whose rules do not depend on addresses.
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

// Chooses the first row that suits any other problem, whatever the addresses.
template <typename ProblemT>
CudaChoice<ProblemT> Choose(const ProblemT& problem, std::string_view variant, const DeviceTraits& traits,
                            const Operands&) {
  return ChooseInOrder(CudaTable(problem), problem, variant, traits);
}

// Chooses what runs instead of a row of the server's choice that refused the problem at its launch: the next
// one of the table.
template <typename ProblemT>
CudaChoice<ProblemT> ChooseAfter(const CudaChoice<ProblemT>& refused, const ProblemT& problem,
                                 const DeviceTraits& traits) {
  const auto table = CudaTable(problem);
  return ChooseInOrder(table, problem, {}, traits, static_cast<std::size_t>(refused.row - table.data()) + 1);
}

}  // namespace warpline

#endif  // WARPLINE_KERNELS_CUDA_CHOICE_H_
