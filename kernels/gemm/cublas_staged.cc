// Variants `cublas_packed` and `cublas_epilogue`: cuBLASLt for products that it computes slowly, or not as
// promised, without extra stages.
//
// `cublas_packed` first copies operands to the layout that the library's fast kernels need. Rows are a
// multiple of 16 bytes apart. For i8, k is innermost in A and in B, because its tensor cores support nothing
// else. In `cublas_epilogue` the library computes only sums: into workspace if D has 16-bit elements,
// otherwise into D. Then a kernel of ours adds C and the bias, applies the activation, and rounds.
// `cublas_packed` does this too if the library cannot write D itself. Limit: that of `cublas`, and memory,
// which operands and sums pass once more in each direction. The next improvement would be a kernel of ours
// that needs neither copies nor sums.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>

#include "kernels/align.h"
#include "kernels/gemm/cublas_product.h"
#include "kernels/gemm/kernels.h"
#include "kernels/gemm/stages.h"

namespace warpline {
namespace {

bool IsHalf(DType dtype) { return dtype == DType::kF16 || dtype == DType::kBF16; }

std::int64_t RoundUp(std::int64_t size, std::int64_t to) { return (size + to - 1) / to * to; }

// The product that the library computes, the copies before it, and the work after it.
struct Stages {
  // In this problem, m, n and k are rounded up if operands are padded.
  GemmProblem product;
  bool packs_a = false, packs_b = false;
  // finishes: a kernel of ours finishes the library's sums. sums_in_d: the sums lie in D.
  bool finishes = false, sums_in_d = false;
  std::int64_t ld_sums = 0;

  std::int64_t CountA() const { return product.batch.CountAlong(product.batch.a); }
  std::int64_t CountB() const { return product.batch.CountAlong(product.batch.b); }
  // The numbers of elements in the workspace.
  double ElementsA() const { return packs_a ? Elements(CountA(), product.StrideA()) : 0; }
  double ElementsB() const { return packs_b ? Elements(CountB(), product.StrideB()) : 0; }
  double ElementsOfSums() const {
    if (!finishes || sums_in_d) return 0;
    return Elements(product.batch.Count(), product.m) * static_cast<double>(ld_sums);
  }
  double Bytes() const {
    return (ElementsA() + ElementsB()) * static_cast<double>(SizeOf(product.dtype)) +
           ElementsOfSums() * static_cast<double>(SizeOf(product.OutDType()));
  }

 private:
  static double Elements(std::int64_t count, std::int64_t each) {
    return static_cast<double>(count) * static_cast<double>(each);
  }
};

// The offsets of the parts of the workspace. Valid only if the stages fit.
struct Layout {
  std::size_t library = 0, a, b, sums, end;

  explicit Layout(const Stages& stages) {
    const std::size_t element = SizeOf(stages.product.dtype);
    const auto after = [](std::size_t begin, double elements, std::size_t each) {
      return AlignUp(begin + static_cast<std::size_t>(elements) * each, kStagedAlignment);
    };
    a = kCublasWorkspaceBytes;
    b = after(a, stages.ElementsA(), element);
    sums = after(b, stages.ElementsB(), element);
    end = after(sums, stages.ElementsOfSums(), SizeOf(stages.product.OutDType()));
  }
};

// Moves the work after the product from the library to our kernel.
void LeaveSums(const GemmProblem& problem, Stages& stages) {
  GemmProblem& product = stages.product;
  product.has_c = product.has_bias = false;
  product.activation = Activation::kNone;
  if (IsHalf(product.dtype)) product.out_dtype = DType::kF32;  // rounded once, at the end
  stages.finishes = true;
  stages.sums_in_d = product.OutDType() == problem.OutDType() && product.OutDType() != DType::kI32 &&
                     product.m == problem.m && product.n == problem.n;
  stages.ld_sums = stages.sums_in_d ? product.n : RoundUp(product.n, 4);  // rows of a multiple of 16 bytes
}

Stages StagesOfEpilogue(const GemmProblem& problem) {
  Stages stages{.product = problem};
  LeaveSums(problem, stages);
  return stages;
}

// Packs i8 operands: k becomes innermost, and is padded to a multiple of 16 bytes. m and n are padded to
// multiples of four elements, which are 16 bytes of D.
void PackBytes(const GemmProblem& problem, Stages& stages) {
  constexpr std::int64_t kDepth = 16, kSide = 4;
  GemmProblem& product = stages.product;
  const bool k_is_whole = problem.k % kDepth == 0;
  stages.packs_a = problem.trans_a || problem.lda % kDepth != 0 || problem.m % kSide != 0 || !k_is_whole;
  stages.packs_b = !problem.trans_b || problem.ldb % kDepth != 0 || problem.n % kSide != 0 || !k_is_whole;
  product.trans_a = false;
  product.trans_b = true;
  product.m = RoundUp(problem.m, kSide);
  product.n = RoundUp(problem.n, kSide);
  product.k = RoundUp(problem.k, kDepth);
  if (stages.packs_a) product.lda = product.k;
  if (stages.packs_b) product.ldb = product.k;
}

// Packs 16-bit floats into rows of whole 16-byte vectors. If rows lie along k, and k is not a multiple of a
// vector, k is padded: without that the library takes five times as long
// (docs/benchmarks/history.md#2026-11-25-drawn-problems). To pad k, both operands are copied, with zeros at
// their ends.
void Pack16Bit(const GemmProblem& problem, Stages& stages) {
  constexpr std::int64_t kVector = 8;
  GemmProblem& product = stages.product;
  stages.packs_a = problem.lda % kVector != 0;
  stages.packs_b = problem.ldb % kVector != 0;
  const bool rows_along_k = (stages.packs_a && !problem.trans_a) || (stages.packs_b && problem.trans_b);
  if (rows_along_k && problem.k % kVector != 0) stages.packs_a = stages.packs_b = true;
  // The rows of A need no padding if the library can write D itself, since D has the same number of rows.
  if (stages.packs_a && (problem.trans_a || problem.n % kVector != 0)) {
    product.m = RoundUp(problem.m, kVector);
  }
  if (stages.packs_b) product.n = RoundUp(problem.n, kVector);
  if (stages.packs_a && stages.packs_b) product.k = RoundUp(problem.k, kVector);
  if (stages.packs_a) product.lda = PackedRow(problem.trans_a ? product.m : product.k);
  if (stages.packs_b) product.ldb = PackedRow(problem.trans_b ? product.k : product.n);
}

Stages StagesOfPacking(const GemmProblem& problem) {
  Stages stages{.product = problem};
  problem.dtype == DType::kI8 ? PackBytes(problem, stages) : Pack16Bit(problem, stages);
  const GemmProblem& product = stages.product;
  const std::int64_t ldc = problem.has_c ? problem.ldc : problem.n;
  const bool d_is_aligned = problem.n % 8 == 0 && ldc % 8 == 0;
  const bool writes_d = product.m == problem.m && product.n == problem.n && GemmCublasFuses(product) &&
                        (problem.dtype == DType::kI8 || d_is_aligned);
  if (!writes_d) LeaveSums(problem, stages);
  return stages;
}

bool Fits(const Stages& stages) {
  return stages.Bytes() + 3 * kStagedAlignment + static_cast<double>(kCublasWorkspaceBytes) <=
         kMaxStagedBytes;
}

bool HasFewSteps(const GemmProblem& problem) {
  return StridedBatch::OfLargestAxis(problem.batch).loop.Count() <= kMaxCublasLaunches;
}

// Copies one operand if `packs` is set. Returns the address for the library.
const void* Pack(const PackedOperand& operand, bool packs, cudaStream_t stream, cudaError_t& error) {
  if (!packs) return operand.from;
  if (error == cudaSuccess) error = PackOperand(operand, stream);
  return operand.to;
}

cudaError_t Launch(const GemmProblem& problem, const Stages& stages, const Operands& operands,
                   const CudaContext& context, cudaStream_t stream) {
  if (problem.m == 0 || problem.n == 0 || problem.batch.Count() == 0) return cudaSuccess;
  const Layout layout(stages);
  if (context.cublaslt == nullptr || operands.workspace_bytes < layout.end) return cudaErrorNotSupported;
  const GemmProblem& product = stages.product;
  // Sums in D would overwrite C, if both are the same memory, before C is read.
  if (stages.sums_in_d && problem.has_c && operands.in[2] == operands.out) return cudaErrorNotSupported;
  auto* workspace = static_cast<std::byte*>(operands.workspace);
  cudaError_t error = cudaSuccess;
  Operands staged = operands;
  staged.in[0] =
      Pack(PackedA(problem, product, operands.in[0], workspace + layout.a), stages.packs_a, stream, error);
  staged.in[1] =
      Pack(PackedB(problem, product, operands.in[1], workspace + layout.b), stages.packs_b, stream, error);
  if (error != cudaSuccess) return error;

  if (stages.finishes) {
    if (!stages.sums_in_d) staged.out = workspace + layout.sums;
    staged.scalars = nullptr;
  }
  const auto launch = [&](const StridedBatch& batch) {
    CublasProduct described = DescribeCublasProduct(product, staged, batch);
    if (stages.finishes) described.c.ld = described.d.ld = stages.ld_sums;
    return CublasCall(*context.cublaslt, described)
        .LaunchRanked(context.configuration, workspace, kCublasWorkspaceBytes, stream);
  };
  error = launch(StridedBatch::OfLargestAxis(problem.batch));
  if (error == cudaErrorNotSupported && problem.batch.rank > 0 &&
      problem.batch.Count() <= kMaxCublasLaunches) {
    error = launch(StridedBatch::OfNoAxis(problem.batch));
  }
  if (error != cudaSuccess || !stages.finishes) return error;
  const GemmSums sums = {.data = staged.out, .ld = stages.ld_sums, .matrix = product.m * stages.ld_sums};
  return FinishGemm(problem, operands, sums, stream);
}

// Estimated seconds on an H200, to choose between the library with and without copies. Infinite if
// impossible.
struct PackingTimes {
  double without, with;
};
constexpr double kNever = std::numeric_limits<double>::infinity();
// How many sums per second our kernel finishes, if the library cannot add the bias.
constexpr double kFinishedPerSecond = 0.17e12;

double SumsOf(const GemmProblem& problem) {
  return static_cast<double>(problem.m) * static_cast<double>(problem.n) *
         static_cast<double>(problem.batch.Count());
}

// True if D has 16-bit elements and unaligned rows. The library has no fast kernel for such a D.
bool HasOddRows(const GemmProblem& problem) { return SizeOf(problem.OutDType()) == 2 && problem.n % 8 != 0; }

// Constants for such products on an H200 (docs/benchmarks/2026-11-26-h200-odd-rows.md). kFixed: the fixed
// part of the time. kAligned, kOddN: operations per second if copies align everything, or everything but n.
// The others apply to products without copies. kAsIs: operations per second. kRead: bytes of operands read
// per second. kWrittenPairs, kWritten: elements of D written per second, if pairs of elements are aligned
// words, and if not.
constexpr double kFixed = 5e-6, kAligned = 750e12, kOddN = 95e12, kAsIs = 80e12, kRead = 1.2e12,
                 kWrittenPairs = 1e12, kWritten = 0.7e12;
// A single column or row is read faster than several.
constexpr double kReadForColumn = 3.6e12, kReadForRow = 3.1e12;

// Returns the bytes of A and B.
double BytesOfOperands(const GemmProblem& problem) {
  const double elements =
      static_cast<double>(problem.batch.CountAlong(problem.batch.a)) *
          static_cast<double>(problem.StrideA()) +
      static_cast<double>(problem.batch.CountAlong(problem.batch.b)) * static_cast<double>(problem.StrideB());
  return elements * static_cast<double>(SizeOf(problem.dtype));
}

double AsIsSeconds(const GemmProblem& problem) {
  const double sums = SumsOf(problem);
  const double reading = problem.n == 1 ? kReadForColumn : problem.m == 1 ? kReadForRow : kRead;
  const double written = problem.n % 2 == 0 ? kWrittenPairs : kWritten;
  return kFixed + std::max({FlopsOf(problem) / kAsIs, sums / written, BytesOfOperands(problem) / reading}) +
         (GemmCublasFuses(problem) ? 0 : sums / kFinishedPerSecond);
}

double PackedSeconds(const GemmProblem& problem, const Stages& stages) {
  const GemmProblem& product = stages.product;
  const auto element = static_cast<double>(SizeOf(problem.dtype));
  const double bytes_a = stages.ElementsA() * element, bytes_b = stages.ElementsB() * element;
  // Bytes of the copies that are still in the L2 cache when the library reads them.
  constexpr double kHeld = 40e6;
  const double read = BytesOfOperands(product) - std::min(bytes_a + bytes_b, kHeld);
  double seconds =
      kFixed + std::max(FlopsOf(problem) / (product.n % 8 == 0 ? kAligned : kOddN), TransferSeconds(read));
  if (stages.packs_a) {
    seconds += PackingSeconds(bytes_a, stages.CountA() * (product.trans_a ? product.k : product.m));
  }
  if (stages.packs_b) {
    seconds += PackingSeconds(bytes_b, stages.CountB() * (product.trans_b ? product.n : product.k));
  }
  if (stages.finishes) {
    seconds += kLaunchSeconds +
               TransferSeconds(2 * sizeof(float) * stages.ElementsOfSums() + SumsOf(problem) * element);
  }
  return seconds;
}

PackingTimes EstimateOddRows(const GemmProblem& problem, const DeviceTraits& traits) {
  const bool as_is = GemmCublasSupports(problem, traits) || GemmCublasEpilogueSupports(problem, traits);
  const bool packed = GemmCublasPackedSupports(problem, traits);
  return {.without = as_is ? AsIsSeconds(problem) : kNever,
          .with = packed ? PackedSeconds(problem, StagesOfPacking(problem)) : kNever};
}

PackingTimes EstimatePacking(const GemmProblem& problem, const Stages& stages) {
  const bool is_i8 = problem.dtype == DType::kI8;
  // Operations per second of large products, with and without packing. i8 products that `cublas` refuses run
  // on kernels without tensor cores.
  const bool cublas_does = GemmCublasFuses(problem) && problem.batch.Count() <= kMaxCublasLaunches;
  const double packed = is_i8 ? 1000e12 : 600e12;
  const double as_is = !is_i8 ? 140e12 : cublas_does ? 120e12 : 4e12;
  const double work = FlopsOf(problem);
  // If a second kernel is needed anyway, packing pays off sooner
  // (docs/benchmarks/history.md#2026-11-25-drawn-problems).
  const double sums = is_i8 || GemmCublasFuses(problem) ? 0 : SumsOf(problem);
  const int launches = int{stages.packs_a} + int{stages.packs_b} + int{stages.finishes};
  return {.without = work / as_is + sums / kFinishedPerSecond,
          .with = work / packed + TransferSeconds(2 * stages.Bytes()) + launches * kLaunchSeconds};
}

}  // namespace

bool GemmCublasPackedSupports(const GemmProblem& problem, const DeviceTraits& traits) {
  if (!traits.has_cublaslt || problem.k == 0 || !HasFewSteps(problem)) return false;
  if (problem.dtype == DType::kI8 && problem.OutDType() != DType::kI32) return false;
  const Stages stages = StagesOfPacking(problem);
  // `cublas` does not use strided batches for i8.
  const bool is_long_batch = problem.dtype == DType::kI8 && problem.batch.Count() > kMaxCublasLaunches;
  return (stages.packs_a || stages.packs_b || is_long_batch) && Fits(stages);
}

bool GemmCublasPackedPreferred(const GemmProblem& problem, const DeviceTraits& traits) {
  const PackingTimes times = HasOddRows(problem) ? EstimateOddRows(problem, traits)
                                                 : EstimatePacking(problem, StagesOfPacking(problem));
  return times.with < times.without;
}

bool GemmLibraryDoes(const GemmProblem& problem, const DeviceTraits& traits) {
  return GemmCublasSupports(problem, traits) || GemmCublasEpilogueSupports(problem, traits) ||
         ((IsHalf(problem.dtype) || problem.dtype == DType::kI8) &&
          GemmCublasPackedSupports(problem, traits));
}

bool GemmLibraryWritesSlowly(const GemmProblem& problem, const DeviceTraits& traits) {
  return traits.has_cublaslt && IsHalf(problem.dtype) && HasOddRows(problem);
}

double GemmLibrarySeconds(const GemmProblem& problem, const DeviceTraits& traits) {
  if (!GemmLibraryDoes(problem, traits)) return AsIsSeconds(problem);
  const PackingTimes times = EstimateOddRows(problem, traits);
  return std::min(times.with, times.without);
}

std::size_t GemmCublasPackedWorkspace(const GemmProblem& problem, const DeviceTraits&) {
  return Layout(StagesOfPacking(problem)).end;
}

VariantCost GemmCublasPackedCost(const GemmProblem& problem, const DeviceTraits&) {
  const Stages stages = StagesOfPacking(problem);
  return {.transfer = 1 + 2 * stages.Bytes() / std::max(BytesOf(problem), 1.0),
          .launches = 1.0 + int{stages.packs_a} + int{stages.packs_b} + int{stages.finishes}};
}

cudaError_t LaunchGemmCublasPacked(const GemmProblem& problem, const Operands& operands,
                                   const CudaContext& context, cudaStream_t stream) {
  return Launch(problem, StagesOfPacking(problem), operands, context, stream);
}

bool GemmCublasAddsBiasSlowly(const GemmProblem& problem) {
  constexpr double kMinSums = 1.5e6;
  // Sums would overwrite C if C and D are the same memory.
  return problem.precision == Precision::kTf32 && problem.has_bias && !problem.has_c && problem.n % 4 != 0 &&
         SumsOf(problem) >= kMinSums && Fits(StagesOfEpilogue(problem));
}

bool GemmCublasEpilogueSupports(const GemmProblem& problem, const DeviceTraits& traits) {
  if (!traits.has_cublaslt || problem.k == 0 || !HasFewSteps(problem)) return false;
  constexpr std::int64_t kRowBytes = 16;
  const bool d_is_aligned =
      problem.n * static_cast<std::int64_t>(SizeOf(problem.OutDType())) % kRowBytes == 0;
  // For 16-bit elements, the library can fuse ReLU alone with any alignment, but it may lack a kernel for
  // that.
  const bool only_relu = problem.activation == Activation::kRelu && !problem.has_bias;
  const std::int64_t ldc = problem.has_c ? problem.ldc : problem.n;
  const bool is_sure = d_is_aligned && (!IsHalf(problem.dtype) || !only_relu ||
                                        (AreGemmRowsAligned(problem) && problem.k % 8 == 0 && ldc % 8 == 0));
  return (IsFloat(problem.dtype) || IsComplex(problem.dtype)) && !(GemmCublasFuses(problem) && is_sure) &&
         Fits(StagesOfEpilogue(problem));
}

std::size_t GemmCublasEpilogueWorkspace(const GemmProblem& problem, const DeviceTraits&) {
  return Layout(StagesOfEpilogue(problem)).end;
}

VariantCost GemmCublasEpilogueCost(const GemmProblem&, const DeviceTraits&) {
  // D, or 32-bit sums, move once more in each direction.
  return {.transfer = 2, .launches = 2};
}

cudaError_t LaunchGemmCublasEpilogue(const GemmProblem& problem, const Operands& operands,
                                     const CudaContext& context, cudaStream_t stream) {
  return Launch(problem, StagesOfEpilogue(problem), operands, context, stream);
}

}  // namespace warpline
