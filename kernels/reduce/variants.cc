#include <algorithm>
#include <optional>
#include <utility>

#include "kernels/cuda_choice.h"
#include "kernels/reduce/canonical.h"
#include "kernels/reduce/kernels.h"
#include "kernels/reduce/rungs.h"
#include "kernels/reduce/vector_plan.h"
#include "kernels/transpose/kernels.h"

namespace warpline {
namespace {

cudaError_t LaunchPlan(const ReduceProblem& problem, const ReducePlan& plan, const Operands& operands,
                       const CudaContext& context, cudaStream_t stream) {
  switch (NumberClassOf(problem.dtype)) {
    case NumberClass::kF32:
      return LaunchVectorizedF32(problem, plan, operands, context, stream);
    case NumberClass::kF64:
      return LaunchVectorizedF64(problem, plan, operands, context, stream);
    case NumberClass::kI32:
      return LaunchVectorizedI32(problem, plan, operands, context, stream);
    case NumberClass::kU32:
      return LaunchVectorizedU32(problem, plan, operands, context, stream);
    case NumberClass::kI64:
      return LaunchVectorizedI64(problem, plan, operands, context, stream);
    case NumberClass::kU64:
      return LaunchVectorizedU64(problem, plan, operands, context, stream);
  }
  return cudaErrorNotSupported;
}

template <ReduceShape kShape>
cudaError_t LaunchBy(const ReduceProblem& problem, const Operands& operands, const CudaContext& context,
                     cudaStream_t stream) {
  if (context.plan != nullptr) {
    return LaunchPlan(problem, std::get<ReducePlan>(context.plan->arguments), operands, context, stream);
  }
  const auto plan = PlanReduceBy(kShape, problem, context.traits, operands.in[0]);
  if (!plan.has_value()) return cudaErrorNotSupported;
  return LaunchPlan(problem, *plan, operands, context, stream);
}

// The address of the input is not known yet, so an aligned and an unaligned one are tried.
template <ReduceShape kShape>
std::size_t WorkspaceBy(const ReduceProblem& problem, const DeviceTraits& traits) {
  std::size_t bytes = 0;
  for (const std::uintptr_t address : {0, 1}) {
    const auto plan =
        PlanReduceBy(kShape, problem, traits, reinterpret_cast<const void*>(address));  // never read
    if (plan.has_value()) bytes = std::max(bytes, plan->WorkspaceBytes());
  }
  return bytes;
}

// The older name for all of these kernels.
constexpr std::string_view kGroup = "vectorized";

// A row for a kernel of PlanReduce. The server chooses it only through a plan.
template <ReduceShape kShape>
constexpr CudaVariant<ReduceProblem> Planned(std::string_view summary, int step = 0) {
  return {.name = Name(kShape),
          .summary = summary,
          .reproducible = true,
          .supports_dtype = IsReal,
          .supports =
              [](const ReduceProblem& problem, const DeviceTraits& traits) {
                return PlanReduceBy(kShape, problem, traits, nullptr).has_value();
              },
          .workspace_bytes = WorkspaceBy<kShape>,
          .launch = LaunchBy<kShape>,
          .preferred = [](const ReduceProblem&, const DeviceTraits&) { return false; },
          .group = kGroup,
          .step = step};
}

cudaError_t LaunchCub(const ReduceProblem& problem, const Operands& operands, const CudaContext&,
                      cudaStream_t stream) {
  switch (problem.dtype) {
    case DType::kI32:
      return LaunchReduceCubTyped<DType::kI32>(problem, operands, stream);
    case DType::kF32:
      return LaunchReduceCubTyped<DType::kF32>(problem, operands, stream);
    case DType::kF64:
      return LaunchReduceCubTyped<DType::kF64>(problem, operands, stream);
    default:
      return cudaErrorNotSupported;
  }
}

// Returns whether each result is a copy of its only element, in the same order: reductions over axes of size
// 1. Norms and counts of one element are different. So are bools, whose byte may be neither 0 nor 1.
bool CopiesElements(const ReduceProblem& problem, const DeviceTraits&) {
  const bool keeps = problem.op == ReduceOp::kSum || problem.op == ReduceOp::kProd ||
                     problem.op == ReduceOp::kMin || problem.op == ReduceOp::kMax ||
                     problem.op == ReduceOp::kMean || problem.op == ReduceOp::kLogSumExp;
  return keeps && HasDenseRows(problem.shape, problem.row_stride) && problem.dtype != DType::kBool &&
         problem.ReducedCount() == 1 && problem.OutDType() == problem.dtype;
}

cudaError_t LaunchCopy(const ReduceProblem& problem, const Operands& operands, const CudaContext&,
                       cudaStream_t stream) {
  const auto bytes = problem.shape.Count() * static_cast<std::int64_t>(SizeOf(problem.dtype));
  return bytes == 0 ? cudaSuccess : LaunchFlatCopy(operands.in[0], operands.out, bytes, stream);
}

// Costs, from docs/benchmarks/2026-11-23-h200-ladder.md. Rungs without their own cost reach at least three
// quarters of the memory's rate.

// True for one result of all elements, if CUB loads them in vectors. Our own kernels take a microsecond
// longer.
bool IsSumOfAll(const ReduceProblem& problem, const DeviceTraits&) {
  const CanonicalReduce reduce = Canonicalize(problem);
  const bool is_plain = problem.op == ReduceOp::kSum || problem.op == ReduceOp::kMean ||
                        problem.op == ReduceOp::kMin || problem.op == ReduceOp::kMax;
  return IsFloat(problem.dtype) && is_plain && reduce.results == 1 && reduce.reduced_count > 0 &&
         reduce.reduced.rank == 1 && reduce.InnermostReduced();
}

VariantCost CubCost(const ReduceProblem& problem, const DeviceTraits&) {
  const CanonicalReduce reduce = Canonicalize(problem);
  if (IsSumOfAll(problem, {})) return {.launches = 2};
  constexpr double kCtaThreads = 256;  // one CTA processes a segment
  return {.transfer = reduce.InnermostReduced() && reduce.reduced.rank == 1 ? 2.0 : 60.0,
          .serial = reduce.results > 1 ? static_cast<double>(reduce.reduced_count) / kCtaThreads : 0};
}

// Each result is a chain of loads in one thread. If there are more results than threads on the device, they
// run one after another.
VariantCost NaiveCost(const ReduceProblem& problem, const DeviceTraits& traits) {
  const CanonicalReduce reduce = Canonicalize(problem);
  constexpr double kThreads = 2048;  // per multiprocessor
  const double waves = static_cast<double>(reduce.results) / (kThreads * std::max(traits.multiprocessors, 1));
  return {.transfer = 8, .serial = static_cast<double>(reduce.reduced_count) * std::max(waves, 1.0)};
}

constexpr CudaVariant<ReduceProblem> kVariants[] = {
    {.name = "copy",
     .summary = "copies bytes, for reductions over axes of size 1 whose results are the elements",
     .reproducible = true,
     .supports_dtype = IsReal,
     .supports = CopiesElements,
     .workspace_bytes = [](const ReduceProblem&, const DeviceTraits&) -> std::size_t { return 0; },
     .launch = LaunchCopy},
    {.name = "cub",
     .summary = "CUB of the CUDA toolkit: DeviceReduce for one result, DeviceSegmentedReduce for more",
     .reproducible = true,  // CUB promises this for one device, and its fixed order of tiles ensures it
     .supports_dtype = HasRungs,
     .supports = SupportsRungs,
     .workspace_bytes =
         [](const ReduceProblem& problem, const DeviceTraits& traits) {
           return CubWorkspaceBytes(Canonicalize(problem), traits);
         },
     .launch = LaunchCub,
     .preferred = IsSumOfAll,
     .cost = CubCost},
    Planned<ReduceShape::kRows>("rows by 16-byte loads, a warp or a CTA each", 7),
    Planned<ReduceShape::kRuns>("rows of several runs, which may be unaligned"),
    Planned<ReduceShape::kPackedRows>("short rows, many of them through shared memory"),
    Planned<ReduceShape::kColumns>("neighbouring columns, several a thread"),
    Planned<ReduceShape::kFewRows>("columns of few elements, 16 bytes of each row a thread"),
    Planned<ReduceShape::kShiftedColumns>("columns of unaligned rows, by vectors that begin before them"),
    Planned<ReduceShape::kBulkColumns>("columns of unaligned rows, which the device copies by itself"),
    Planned<ReduceShape::kFlatColumns>("few columns, all of their elements in one block"),
    Planned<ReduceShape::kPackedColumns>("many blocks of few columns, whole ones through shared memory"),
    {.name = "atomic",
     .summary = "sums by atomic additions, in shared memory first, then one a CTA and result",
     .reproducible = false,
     .supports_dtype = HasRungs,
     .supports =
         [](const ReduceProblem& problem, const DeviceTraits& traits) {
           return SupportsRungs(problem, traits) && IsSumLike(problem.op);
         },
     .workspace_bytes = PartialBytes,
     .launch = LaunchReduceAtomic,
     .step = 2},
    {.name = "naive",
     .summary = "one thread a result, in f64 or 64-bit integers",
     .reproducible = true,
     .supports_dtype = IsReal,
     .supports = [](const ReduceProblem&, const DeviceTraits&) { return true; },
     .workspace_bytes = [](const ReduceProblem&, const DeviceTraits&) -> std::size_t { return 0; },
     .launch = LaunchReduceNaive,
     .cost = NaiveCost,
     .step = 1},
};

}  // namespace

std::span<const CudaVariant<ReduceProblem>> CudaReduceVariants() { return kVariants; }

CudaChoice<ReduceProblem> Choose(const ReduceProblem& problem, std::string_view variant,
                                 const DeviceTraits& traits, const Operands& operands) {
  const auto table = CudaReduceVariants();
  const void* const in = operands.in[0];
  if (variant.empty()) {
    for (const auto& row : table) {
      if (row.group == kGroup) break;
      if (MayChoose(row, problem, traits)) return {.row = &row};
    }
  }
  if (variant.empty() || variant == kGroup) {
    ReducePlan plan = PlanReduce(problem, traits, in);
    const auto& row = RowNamed(table, Name(plan.vectors.shape));
    return {.row = &row, .configuration = 0, .plan = {std::move(plan)}};
  }
  CudaChoice<ReduceProblem> choice = ChooseInOrder(table, problem, variant, traits);
  if (choice.row == nullptr || choice.row->group != kGroup) return choice;
  for (int i = 0; i < kReduceShapes; ++i) {
    const auto shape = static_cast<ReduceShape>(i);
    if (Name(shape) != variant) continue;
    std::optional<ReducePlan> plan = PlanReduceBy(shape, problem, traits, in);
    if (!plan.has_value()) return {};
    choice.plan.arguments = *std::move(plan);
  }
  return choice;
}

}  // namespace warpline
