#include "kernels/cpu/cpu_variants.h"

#include <array>
#include <cmath>
#include <cstddef>

#include "kernels/cpu/launchers.h"

namespace warpline {
namespace {

constexpr bool AnyDType(DType) { return true; }
constexpr bool BlasDType(DType dtype) {
  return dtype == DType::kF32 || dtype == DType::kF64 || IsComplex(dtype);
}

template <typename ProblemT>
constexpr bool Always(const ProblemT&, const DeviceTraits&) {
  return true;
}
template <typename ProblemT>
constexpr std::size_t NoWorkspace(const ProblemT&, const DeviceTraits&) {
  return 0;
}

// The costs of rows were fitted to tests/bench/cost_bench. Elements that a loop handles one by one are
// counted in elements of the simplest sum.
VariantCost TransposeBlocksCost(const TransposeProblem& problem, const DeviceTraits&) {
  const double size = static_cast<double>(SizeOf(problem.dtype));
  return {.serial = static_cast<double>(problem.shape.Count()) * (0.4 + 0.15 * size)};
}
VariantCost TransposeLoopsCost(const TransposeProblem& problem, const DeviceTraits&) {
  return {.serial = 2.0 * static_cast<double>(problem.shape.Count())};
}

double ResultsOf(const GemmProblem& problem) {
  return static_cast<double>(problem.batch.Count()) * static_cast<double>(problem.m) *
         static_cast<double>(problem.n);
}
// Elements of the result that are finished one by one.
double FinishedOneByOne(const GemmProblem& problem) {
  return ResultsOf(problem) * (problem.activation == Activation::kGelu ? 6 : 1);
}
VariantCost GemmOpenblasCost(const GemmProblem& problem, const DeviceTraits&) {
  const bool finishes = problem.has_bias || problem.activation != Activation::kNone;
  return {.serial = finishes ? FinishedOneByOne(problem) : 0,
          .launches = static_cast<double>(problem.batch.Count())};
}
VariantCost GemmEigenCost(const GemmProblem& problem, const DeviceTraits&) {
  return {.arithmetic = BlasDType(problem.dtype) ? 3.5 : 1,  // 1: it is the choice, which sets the rates
          .serial = FinishedOneByOne(problem),
          .launches = 2 * static_cast<double>(problem.batch.Count())};
}
VariantCost GemmLoopsCost(const GemmProblem& problem, const DeviceTraits&) {
  return {.serial = ResultsOf(problem) * static_cast<double>(problem.k) * 0.6 + FinishedOneByOne(problem)};
}

VariantCost ReduceRunsCost(const ReduceProblem& problem, const DeviceTraits&) {
  return {.serial = 0.25 * static_cast<double>(problem.shape.Count()) +
                    2 * static_cast<double>(problem.OutputShape(false).Count())};
}
VariantCost ReduceLoopsCost(const ReduceProblem& problem, const DeviceTraits&) {
  return {.serial =
              (problem.op == ReduceOp::kLogSumExp ? 2 : 1) * static_cast<double>(problem.shape.Count()) +
              2 * static_cast<double>(problem.OutputShape(false).Count())};
}

DType OperandType(const MapProblem& problem, std::size_t value) {
  return value < problem.inputs.size() ? problem.inputs[value].dtype
                                       : problem.nodes[value - problem.inputs.size()].dtype;
}

// The time of a node is about that of moving its operands through the L1 cache, or a third of the time for
// its worst operands, which tests/bench/worst_operands measures. Denormal numbers are the worst: many
// processors need more than a hundred cycles for each product, quotient or root with one.
double CostOf(const MapProblem& problem, const MapNode& node) {
  if (RowOf(node.op).operands == 0) return 0.25;
  const DType of =
      OperandType(problem, static_cast<std::size_t>(node.operands[node.op == MapOp::kWhere ? 1 : 0]));
  if (IsInteger(of)) {
    if (node.op == MapOp::kPow) return 40;
    return node.op == MapOp::kFloorDivide || node.op == MapOp::kRemainder ? 15 : 0.25;
  }
  if (!IsFloat(PartOf(of))) return 0.25;
  const bool is_wide = PartOf(of) == DType::kF64, is_half = SizeOf(of) <= 2;
  switch (node.op) {
    case MapOp::kFloorDivide:
    case MapOp::kHypot:
      return is_wide ? 65 : 45;
    case MapOp::kPow:
    case MapOp::kRemainder:
      return 40;
    case MapOp::kMultiply:
    case MapOp::kDivide:
      if (IsComplex(of)) return node.op == MapOp::kDivide ? (is_wide ? 60 : 30) : (is_wide ? 12 : 7);
      return is_wide ? 4 : 2;
    case MapOp::kAbs:
      if (IsComplex(of)) return is_wide ? 60 : 2;
      return is_half ? 1 : 0.25;
    case MapOp::kSqrt:
    case MapOp::kNextAfter:
      return is_wide ? 4 : 2;
    case MapOp::kClip:
      return is_half ? 2 : 1;
    case MapOp::kWhere:
      return is_half ? 1 : 0.5;
    default:
      if (RowOf(node.op).max_ulp > 0) return is_wide ? 32 : 24;
      return is_half ? 1 : IsComplex(of) ? 0.5 : 0.25;
  }
}

VariantCost MapBlocksCost(const MapProblem& problem, const DeviceTraits&) {
  double nodes = 0.5;
  for (const MapNode& node : problem.nodes) nodes += CostOf(problem, node);
  return {.serial = nodes * static_cast<double>(problem.shape.Count())};
}

// Columns: name, summary, reproducible, supports_dtype, supports, workspace_bytes, launch, available,
// preferred, cost. Every row runs in one thread in a fixed order, so all are reproducible.
constexpr std::array kTranspose = {
    CpuVariant<TransposeProblem>{"eigen", "2-D blocks by Eigen, rows by memcpy", true, AnyDType,
                                 Always<TransposeProblem>, NoWorkspace<TransposeProblem>, cpu::TransposeEigen,
                                 nullptr, nullptr, TransposeBlocksCost},
    CpuVariant<TransposeProblem>{"reference", "plain loops", true, AnyDType, Always<TransposeProblem>,
                                 NoWorkspace<TransposeProblem>, cpu::TransposeReference, nullptr, nullptr,
                                 TransposeLoopsCost},
};

constexpr std::array kGemm = {
    CpuVariant<GemmProblem>{"openblas", "OpenBLAS, one thread; tf32 is computed in f32", true, BlasDType,
                            cpu::GemmOpenblasSupports, NoWorkspace<GemmProblem>, cpu::GemmOpenblas, nullptr,
                            nullptr, GemmOpenblasCost},
    CpuVariant<GemmProblem>{"eigen", "Eigen, integers modulo 2^bits; tf32 is computed in f32", true,
                            IsGemmInput, Always<GemmProblem>, cpu::GemmEigenWorkspaceBytes, cpu::GemmEigen,
                            nullptr, nullptr, GemmEigenCost},
    CpuVariant<GemmProblem>{"reference", "plain loops in f64 or modulo 2^bits", true, IsGemmInput,
                            Always<GemmProblem>, NoWorkspace<GemmProblem>, cpu::GemmReference, nullptr,
                            nullptr, GemmLoopsCost},
};

constexpr std::array kReduce = {
    CpuVariant<ReduceProblem>{"eigen",
                              "Eigen; f16, bf16 and f32 in f32, long sums in f64; integers modulo 2^64", true,
                              cpu::ReduceEigenSupportsDType, cpu::ReduceEigenSupports,
                              NoWorkspace<ReduceProblem>, cpu::ReduceEigen, nullptr, nullptr, ReduceRunsCost},
    CpuVariant<ReduceProblem>{"passes",
                              "Eigen; two passes for var, std and logsumexp; counts, argmin and argmax", true,
                              IsReal, cpu::ReducePassesSupports, NoWorkspace<ReduceProblem>,
                              cpu::ReducePasses, nullptr, nullptr, ReduceRunsCost},
    CpuVariant<ReduceProblem>{"reference", "plain loops in f64 or 64-bit integers", true, IsReal,
                              Always<ReduceProblem>, NoWorkspace<ReduceProblem>, cpu::ReduceReference,
                              nullptr, nullptr, ReduceLoopsCost},
};

constexpr std::array kMap = {
    CpuVariant<MapProblem>{"blocks", "node by node over blocks in the L1 cache", true, IsMapType,
                           Always<MapProblem>, cpu::MapBlocksWorkspaceBytes, cpu::MapBlocks, nullptr, nullptr,
                           MapBlocksCost},
};

// Counts, for each key, the comparisons of a sort, of the heap of the first elements, or of a selection.
VariantCost SortCost(const SortProblem& problem, const DeviceTraits&) {
  const double elements = static_cast<double>(problem.rows) * static_cast<double>(problem.count);
  if (problem.kth_count > 0) return {.serial = elements * (2 + 4 * static_cast<double>(problem.kth_count))};
  return {.serial = elements * (2 + 4 * std::log2(static_cast<double>(problem.taken) + 1))};
}
VariantCost SearchCost(const SearchProblem& problem, const DeviceTraits&) {
  return {.serial = static_cast<double>(problem.needles) *
                    (4 + 8 * std::log2(static_cast<double>(problem.count) + 1))};
}
VariantCost ScanCost(const ScanProblem& problem, const DeviceTraits&) {
  return {.serial = 2 * static_cast<double>(problem.outer) * static_cast<double>(problem.count) *
                    static_cast<double>(problem.inner)};
}
VariantCost TakeCost(const TakeProblem& problem, const DeviceTraits&) {
  return {.transfer = 2, .serial = 2 * static_cast<double>(problem.shape.Count())};
}
VariantCost PutCost(const PutProblem& problem, const DeviceTraits&) {
  return {.serial = 4 * static_cast<double>(problem.index_shape.Count())};
}

constexpr std::array kTake = {
    CpuVariant<TakeProblem>{"runs", "copies what is contiguous for one index", true, AnyDType,
                            Always<TakeProblem>, NoWorkspace<TakeProblem>, cpu::Take, nullptr, nullptr,
                            TakeCost},
};
constexpr std::array kPut = {
    CpuVariant<PutProblem>{"in_order", "writes one value after the other", true, AnyDType, Always<PutProblem>,
                           NoWorkspace<PutProblem>, cpu::Put, nullptr, nullptr, PutCost},
};
constexpr std::array kScan = {
    CpuVariant<ScanProblem>{"in_order", "one element after the other, in the type of the result", true,
                            IsScanType, Always<ScanProblem>, NoWorkspace<ScanProblem>, cpu::Scan, nullptr,
                            nullptr, ScanCost},
};
constexpr std::array kSort = {
    CpuVariant<SortProblem>{
        "keys", "the standard library's sort of integer keys, a heap of those taken, or a selection", true,
        IsReal, Always<SortProblem>, cpu::SortWorkspaceBytes, cpu::Sort, nullptr, nullptr, SortCost},
};
constexpr std::array kSearch = {
    CpuVariant<SearchProblem>{"bisect", "a binary search for each needle", true, IsReal,
                              Always<SearchProblem>, NoWorkspace<SearchProblem>, cpu::Search, nullptr,
                              nullptr, SearchCost},
};

VariantCost CompressCost(const CompressProblem& problem, const DeviceTraits&) {
  return {.transfer = 2, .serial = 2 * static_cast<double>(problem.rows)};
}
constexpr std::array kCompress = {
    CpuVariant<CompressProblem>{"in_order", "copies one row after the other", true, AnyDType,
                                Always<CompressProblem>, NoWorkspace<CompressProblem>, cpu::Compress, nullptr,
                                nullptr, CompressCost},
};

}  // namespace

std::span<const CpuVariant<TransposeProblem>> CpuTransposeVariants() { return kTranspose; }
std::span<const CpuVariant<GemmProblem>> CpuGemmVariants() { return kGemm; }
std::span<const CpuVariant<ReduceProblem>> CpuReduceVariants() { return kReduce; }
std::span<const CpuVariant<MapProblem>> CpuMapVariants() { return kMap; }
std::span<const CpuVariant<TakeProblem>> CpuTakeVariants() { return kTake; }
std::span<const CpuVariant<PutProblem>> CpuPutVariants() { return kPut; }
std::span<const CpuVariant<ScanProblem>> CpuScanVariants() { return kScan; }
std::span<const CpuVariant<SortProblem>> CpuSortVariants() { return kSort; }
std::span<const CpuVariant<SearchProblem>> CpuSearchVariants() { return kSearch; }
std::span<const CpuVariant<CompressProblem>> CpuCompressVariants() { return kCompress; }

}  // namespace warpline
