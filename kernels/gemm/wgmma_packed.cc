// Variant `wgmma_packed`: `wgmma` after operands were copied so that rows are a multiple of 16 bytes apart,
// as the tensor memory accelerator requires. It is for products where nothing is aligned: the library writes
// such a D slowly, or leaves sums to a second kernel. `wgmma` writes it directly, with C, bias and
// activation.
//
// Limit: that of `wgmma`, and memory, which operands pass once more in each direction.
#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "kernels/align.h"
#include "kernels/gemm/kernels.h"
#include "kernels/gemm/stages.h"

namespace warpline {
namespace {

constexpr std::int64_t kVectorBytes = 16;

bool IsAligned(const void* address) { return reinterpret_cast<std::uintptr_t>(address) % kVectorBytes == 0; }

// The product that `wgmma` computes, with some operands replaced by copies.
struct Packing {
  GemmProblem product;
  bool packs_a = false, packs_b = false;

  explicit Packing(const GemmProblem& problem) : product(problem) {
    const auto pack = [&](std::int64_t columns, std::int64_t& ld) {
      if (ld * static_cast<std::int64_t>(SizeOf(problem.dtype)) % kVectorBytes == 0) return false;
      ld = PackedRow(columns);
      return true;
    };
    packs_a = pack(problem.trans_a ? problem.m : problem.k, product.lda);
    packs_b = pack(problem.trans_b ? problem.k : problem.n, product.ldb);
  }

  std::int64_t CountA() const { return product.batch.CountAlong(product.batch.a); }
  std::int64_t CountB() const { return product.batch.CountAlong(product.batch.b); }
  // The sizes of the copied operands in bytes.
  double BytesA() const { return packs_a ? Bytes(CountA(), product.StrideA()) : 0; }
  double BytesB() const { return packs_b ? Bytes(CountB(), product.StrideB()) : 0; }
  double Seconds() const {
    double seconds = 0;
    if (packs_a) seconds += PackingSeconds(BytesA(), CountA() * (product.trans_a ? product.k : product.m));
    if (packs_b) seconds += PackingSeconds(BytesB(), CountB() * (product.trans_b ? product.n : product.k));
    return seconds;
  }

 private:
  double Bytes(std::int64_t count, std::int64_t each) const {
    return static_cast<double>(count) * static_cast<double>(each) *
           static_cast<double>(SizeOf(product.dtype));
  }
};

// The offsets in the workspace where B begins, after A, and where it ends. Valid only for operands that fit.
std::size_t BeginOfB(const Packing& packing) {
  return AlignUp(static_cast<std::size_t>(packing.BytesA()), kStagedAlignment);
}
std::size_t EndOf(const Packing& packing) {
  return BeginOfB(packing) + AlignUp(static_cast<std::size_t>(packing.BytesB()), kStagedAlignment);
}

}  // namespace

bool GemmWgmmaPackedSupports(const GemmProblem& problem, const DeviceTraits& traits) {
  const Packing packing(problem);
  return (packing.packs_a || packing.packs_b) && packing.BytesA() + packing.BytesB() <= kMaxStagedBytes &&
         GemmWgmmaSupports(packing.product, traits);
}

bool GemmWgmmaPackedWritesFaster(const GemmProblem& problem, const DeviceTraits& traits) {
  const Packing packing(problem);
  return GemmLibraryWritesSlowly(problem, traits) &&
         GemmWgmmaSeconds(packing.product, traits) + packing.Seconds() < GemmLibrarySeconds(problem, traits);
}

std::size_t GemmWgmmaPackedWorkspace(const GemmProblem& problem, const DeviceTraits&) {
  return EndOf(Packing(problem));
}

VariantCost GemmWgmmaPackedCost(const GemmProblem& problem, const DeviceTraits&) {
  const Packing packing(problem);
  return {.transfer = 1 + 2 * (packing.BytesA() + packing.BytesB()) / std::max(BytesOf(problem), 1.0),
          .launches = 1.0 + int{packing.packs_a} + int{packing.packs_b}};
}

cudaError_t LaunchGemmWgmmaPacked(const GemmProblem& problem, const Operands& operands,
                                  const CudaContext& context, cudaStream_t stream) {
  if (problem.m == 0 || problem.n == 0 || problem.batch.Count() == 0) return cudaSuccess;
  const Packing packing(problem);
  // Check here instead of after the copies, which would remain in a graph.
  const bool suits =
      (packing.packs_a || IsAligned(operands.in[0])) && (packing.packs_b || IsAligned(operands.in[1]));
  if (!suits || operands.workspace_bytes < EndOf(packing)) return cudaErrorNotSupported;
  auto* const workspace = static_cast<std::byte*>(operands.workspace);
  Operands packed = operands;
  if (packing.packs_a) {
    const PackedOperand a = PackedA(problem, packing.product, operands.in[0], workspace);
    if (cudaError_t error = PackOperand(a, stream); error != cudaSuccess) return error;
    packed.in[0] = a.to;
  }
  if (packing.packs_b) {
    const PackedOperand b = PackedB(problem, packing.product, operands.in[1], workspace + BeginOfB(packing));
    if (cudaError_t error = PackOperand(b, stream); error != cudaSuccess) return error;
    packed.in[1] = b.to;
  }
  return LaunchGemmWgmma(packing.product, packed, context, stream);
}

}  // namespace warpline
