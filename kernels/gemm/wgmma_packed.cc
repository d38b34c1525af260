// Variant `wgmma_packed`: `wgmma` after operands were copied to where rows are 16 bytes apart or a multiple,
// as the tensor memory accelerator wants them. For products of which nothing is aligned: the library writes
// such a D slowly, or leaves sums to a second kernel, and `wgmma` writes it itself, with C, bias and
// activation.
//
// Limit: that of `wgmma`, and memory, through which operands go once more each way.
#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "kernels/align.h"
#include "kernels/gemm/kernels.h"
#include "kernels/gemm/stages.h"

namespace warpline {
namespace {

constexpr std::int64_t kVector = 8;  // elements of 16 bits in 16 bytes

// What `wgmma` computes instead, of operands of which some are copied.
struct Packing {
  GemmProblem product;
  bool packs_a = false, packs_b = false;

  explicit Packing(const GemmProblem& problem) : product(problem) {
    const auto pack = [](std::int64_t columns, std::int64_t& ld) {
      if (ld % kVector == 0) return false;
      ld = PackedRow(columns);
      return true;
    };
    packs_a = pack(problem.trans_a ? problem.m : problem.k, product.lda);
    packs_b = pack(problem.trans_b ? problem.k : problem.n, product.ldb);
  }

  std::int64_t CountA() const { return product.batch.CountAlong(product.batch.a); }
  std::int64_t CountB() const { return product.batch.CountAlong(product.batch.b); }
  std::int64_t RowsA() const { return CountA() * (product.trans_a ? product.k : product.m); }
  std::int64_t RowsB() const { return CountB() * (product.trans_b ? product.n : product.k); }
  double BytesA() const { return packs_a ? Bytes(CountA(), product.StrideA()) : 0; }
  double BytesB() const { return packs_b ? Bytes(CountB(), product.StrideB()) : 0; }
  int Copies() const { return int{packs_a} + int{packs_b}; }

 private:
  double Bytes(std::int64_t count, std::int64_t each) const {
    return static_cast<double>(count) * static_cast<double>(each) *
           static_cast<double>(SizeOf(product.dtype));
  }
};

// Where B begins in the workspace, behind A, and where it ends. Only of what fits.
std::size_t BeginOfB(const Packing& packing) {
  return AlignUp(static_cast<std::size_t>(packing.BytesA()), kStagedAlignment);
}
std::size_t EndOf(const Packing& packing) {
  return BeginOfB(packing) + AlignUp(static_cast<std::size_t>(packing.BytesB()), kStagedAlignment);
}

}  // namespace

bool GemmWgmmaPackedSupports(const GemmProblem& problem, const DeviceTraits& traits) {
  const Packing packing(problem);
  return packing.Copies() > 0 && packing.BytesA() + packing.BytesB() <= kMaxStagedBytes &&
         GemmWgmmaSupports(packing.product, traits);
}

bool GemmWgmmaPackedPreferred(const GemmProblem& problem, const DeviceTraits& traits) {
  if (!GemmWgmmaWritesRows(problem, traits)) return false;
  const Packing packing(problem);
  double seconds = GemmWgmmaSeconds(packing.product, traits);
  if (packing.packs_a) seconds += PackingSeconds(packing.BytesA(), packing.RowsA());
  if (packing.packs_b) seconds += PackingSeconds(packing.BytesB(), packing.RowsB());
  return seconds < GemmCublasPackedSeconds(problem);
}

std::size_t GemmWgmmaPackedWorkspace(const GemmProblem& problem, const DeviceTraits&) {
  return EndOf(Packing(problem));
}

VariantCost GemmWgmmaPackedCost(const GemmProblem& problem, const DeviceTraits&) {
  const Packing packing(problem);
  return {.transfer = 1 + 2 * (packing.BytesA() + packing.BytesB()) / std::max(BytesOf(problem), 1.0),
          .launches = 1.0 + packing.Copies()};
}

cudaError_t LaunchGemmWgmmaPacked(const GemmProblem& problem, const Operands& operands,
                                  const CudaContext& context, cudaStream_t stream) {
  if (problem.m == 0 || problem.n == 0 || problem.batch.Count() == 0) return cudaSuccess;
  const Packing packing(problem);
  if (operands.workspace_bytes < EndOf(packing)) return cudaErrorNotSupported;
  auto* const workspace = static_cast<std::byte*>(operands.workspace);
  const GemmProblem& product = packing.product;
  Operands packed = operands;
  if (packing.packs_a) {
    const std::int64_t rows = problem.trans_a ? problem.k : problem.m;
    const PackedOperand a = {.from = operands.in[0],
                             .to = workspace,
                             .dtype = problem.dtype,
                             .count = packing.CountA(),
                             .rows = rows,
                             .columns = problem.trans_a ? problem.m : problem.k,
                             .ld = problem.lda,
                             .to_rows = rows,
                             .to_columns = product.lda};
    if (cudaError_t error = PackOperand(a, stream); error != cudaSuccess) return error;
    packed.in[0] = a.to;
  }
  if (packing.packs_b) {
    const std::int64_t rows = problem.trans_b ? problem.n : problem.k;
    const PackedOperand b = {.from = operands.in[1],
                             .to = workspace + BeginOfB(packing),
                             .dtype = problem.dtype,
                             .count = packing.CountB(),
                             .rows = rows,
                             .columns = problem.trans_b ? problem.k : problem.n,
                             .ld = problem.ldb,
                             .to_rows = rows,
                             .to_columns = product.ldb};
    if (cudaError_t error = PackOperand(b, stream); error != cudaSuccess) return error;
    packed.in[1] = b.to;
  }
  return LaunchGemmWgmma(product, packed, context, stream);
}

}  // namespace warpline
