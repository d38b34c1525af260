// Variant `cublas`: cuBLASLt with the algorithm that its heuristic ranks first. The query happens at launch,
// that is, once when a graph is captured.
//
// Limit: the tensor cores (f32: the FMA units), and power. What it does not do as promised, see
// GemmCublasSupports, is left to our own rungs. The last rung; what would come next is to choose among its
// algorithms by measuring.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>

#include "kernels/gemm/cublaslt.h"
#include "kernels/gemm/gemm_kernels.h"

namespace warpline {
namespace {

struct Types {
  cudaDataType_t in;   // A and B
  cudaDataType_t out;  // C, D and the bias
  cudaDataType_t scale;
  cublasComputeType_t compute;
};

Types TypesOf(const GemmProblem& problem) {
  const bool to_f32 = problem.OutDType() == DType::kF32;
  switch (problem.dtype) {
    case DType::kI8:
      return {CUDA_R_8I, CUDA_R_32I, CUDA_R_32I, CUBLAS_COMPUTE_32I};
    case DType::kF16:
      return {CUDA_R_16F, to_f32 ? CUDA_R_32F : CUDA_R_16F, CUDA_R_32F, CUBLAS_COMPUTE_32F};
    case DType::kBF16:
      return {CUDA_R_16BF, to_f32 ? CUDA_R_32F : CUDA_R_16BF, CUDA_R_32F, CUBLAS_COMPUTE_32F};
    case DType::kF64:
      return {CUDA_R_64F, CUDA_R_64F, CUDA_R_64F, CUBLAS_COMPUTE_64F};
    default:
      return {CUDA_R_32F, CUDA_R_32F, CUDA_R_32F,
              problem.precision == Precision::kTf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F};
  }
}

cublasLtEpilogue_t EpilogueOf(const GemmProblem& problem) {
  switch (problem.activation) {
    case Activation::kNone:
      break;
    case Activation::kRelu:
      return problem.has_bias ? CUBLASLT_EPILOGUE_RELU_BIAS : CUBLASLT_EPILOGUE_RELU;
    case Activation::kGelu:
      return problem.has_bias ? CUBLASLT_EPILOGUE_GELU_BIAS : CUBLASLT_EPILOGUE_GELU;
  }
  return problem.has_bias ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT;
}

cudaError_t ToCudaError(cublasStatus_t status) {
  switch (status) {
    case CUBLAS_STATUS_SUCCESS:
      return cudaSuccess;
    case CUBLAS_STATUS_NOT_SUPPORTED:
    case CUBLAS_STATUS_ARCH_MISMATCH:
    case CUBLAS_STATUS_INVALID_VALUE:  // a size or leading dimension past what the library takes
      return cudaErrorNotSupported;
    case CUBLAS_STATUS_ALLOC_FAILED:
      return cudaErrorMemoryAllocation;
    default:
      // The library says this for want of memory as well as for a lost context. If it is the context, the
      // next call of the runtime says so; until then nobody must take the process down.
      return cudaErrorNotSupported;
  }
}

// Calls to the library until one fails; the rest are skipped.
class Calls {
 public:
  template <typename Function, typename... Args>
  void operator()(Function function, Args... args) {
    if (status_ == CUBLAS_STATUS_SUCCESS) status_ = function(args...);
  }
  cublasStatus_t status() const { return status_; }

 private:
  cublasStatus_t status_ = CUBLAS_STATUS_SUCCESS;
};

// A batch of row-major rows x columns matrices with ld elements between rows, which the library, thinking in
// columns, sees as columns x rows ones. Neighbours along the innermost batch axis are `step` matrices apart.
struct Matrix {
  const void* data;
  std::int64_t rows, columns, ld;
  DType dtype;
  std::int64_t step;
  cublasLtMatrixLayoutOpaque_t layout;

  // Elements of one matrix.
  std::int64_t Size() const { return rows * ld; }
  const void* At(std::int64_t matrix) const {
    return static_cast<const std::byte*>(data) + matrix * Size() * static_cast<std::int64_t>(SizeOf(dtype));
  }

  void Describe(const CublasLt& lt, cudaDataType_t type, std::int64_t batch, Calls& call) {
    call(lt->layout_init, &layout, sizeof(layout), type, static_cast<std::uint64_t>(columns),
         static_cast<std::uint64_t>(rows), ld);
    const auto batch_count = static_cast<std::int32_t>(batch);
    const std::int64_t stride = step * Size();
    call(lt->layout_set, &layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &batch_count, sizeof(batch_count));
    call(lt->layout_set, &layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride, sizeof(stride));
  }

  // What the library may assume of the address of every matrix, in bytes.
  std::uint32_t Alignment() const {
    const std::uint64_t bits =
        reinterpret_cast<std::uintptr_t>(data) | static_cast<std::uint64_t>(Size()) * SizeOf(dtype) | 256;
    return static_cast<std::uint32_t>(bits & -bits);
  }
};

// Strides cannot express more than one batch axis, and of i8 none: the others are a loop, whose launches a
// graph holds all, and a cache many graphs.
constexpr std::int64_t kMaxLaunches = 16;

GemmBatch LoopOf(const GemmProblem& problem) {
  return problem.dtype == DType::kI8 ? problem.batch : problem.batch.Outer();
}

bool AreMultiples(std::initializer_list<std::int64_t> sizes, std::int64_t of) {
  return std::all_of(sizes.begin(), sizes.end(), [of](std::int64_t size) { return size % of == 0; });
}

}  // namespace

bool GemmCublasSupports(const GemmProblem& problem, const DeviceTraits& traits) {
  // Without a product there are no A and B to describe.
  if (!traits.has_cublaslt || problem.k == 0 || LoopOf(problem).Count() > kMaxLaunches) return false;
  const std::int64_t ldc = problem.has_c ? problem.ldc : problem.n;
  // Whole words of four; and with a C whose rows are not those of D, half of a result is wrong (13.0, H200).
  if (problem.dtype == DType::kI8) {
    return ldc == problem.n && AreMultiples({problem.m, problem.n, problem.k, problem.lda, problem.ldb}, 4);
  }
  if (!problem.has_bias && problem.activation == Activation::kNone) return true;
  // It fuses nothing into f64 products; and rows that are not aligned to 16 bytes it rounds to 16 bits before
  // it adds the bias, and then again. Its gelu has the error of an approximated tanh, 2^-11: enough for
  // results of 16 bits and for what asks for tf32, not for f32.
  const bool half = SizeOf(problem.OutDType()) == 2;
  const bool coarse = half || problem.precision == Precision::kTf32;
  return problem.dtype != DType::kF64 && (coarse || problem.activation != Activation::kGelu) &&
         (!half || AreMultiples({problem.lda, problem.ldb, problem.n, ldc}, 8));
}

cudaError_t LaunchGemmCublas(const GemmProblem& problem, const Operands& operands, const CudaContext& context,
                             cudaStream_t stream) {
  const GemmBatch loop = LoopOf(problem);
  const std::int64_t launches = loop.Count();
  const bool strided = loop.rank < problem.batch.rank;
  const std::int64_t batch = strided ? problem.batch.InnerCount() : 1;
  if (problem.m == 0 || problem.n == 0 || launches * batch == 0) return cudaSuccess;
  if (context.cublaslt == nullptr || batch > INT32_MAX) {
    return cudaErrorNotSupported;
  }
  const CublasLt& lt = *context.cublaslt;
  const Types types = TypesOf(problem);
  const std::int64_t m = problem.m, n = problem.n, k = problem.k;
  const DType out = problem.OutDType();
  const int inner = problem.batch.rank - 1;
  const auto step = [inner](const std::int64_t* strides) { return inner < 0 ? 0 : strides[inner]; };
  Matrix a{operands.in[0],
           problem.trans_a ? k : m,
           problem.trans_a ? m : k,
           problem.lda,
           problem.dtype,
           step(problem.batch.a),
           {}};
  Matrix b{operands.in[1],
           problem.trans_b ? n : k,
           problem.trans_b ? k : n,
           problem.ldb,
           problem.dtype,
           step(problem.batch.b),
           {}};
  Matrix d{operands.out, m, n, n, out, 1, {}};
  // The library wants a C; beta is 0 then, and it does not read it.
  Matrix c = problem.has_c ? Matrix{operands.in[2], m, n, problem.ldc, out, step(problem.batch.c), {}} : d;

  Calls call;
  for (Matrix* matrix : {&a, &b}) matrix->Describe(lt, types.in, batch, call);
  for (Matrix* matrix : {&c, &d}) matrix->Describe(lt, types.out, batch, call);

  // The transpose of D, a column-major D', is op(B)' * op(A)': the operands change places.
  cublasLtMatmulDescOpaque_t desc;
  const std::int32_t pointer_mode = CUBLASLT_POINTER_MODE_DEVICE;
  const std::int32_t op_first = problem.trans_b ? CUBLAS_OP_T : CUBLAS_OP_N;
  const std::int32_t op_second = problem.trans_a ? CUBLAS_OP_T : CUBLAS_OP_N;
  const cublasLtEpilogue_t epilogue = EpilogueOf(problem);
  const void* bias = problem.has_bias ? operands.in[problem.BiasIndex()] : nullptr;
  call(lt->matmul_desc_init, &desc, sizeof(desc), types.compute, types.scale);
  call(lt->matmul_desc_set, &desc, CUBLASLT_MATMUL_DESC_POINTER_MODE, &pointer_mode, sizeof(pointer_mode));
  call(lt->matmul_desc_set, &desc, CUBLASLT_MATMUL_DESC_TRANSA, &op_first, sizeof(op_first));
  call(lt->matmul_desc_set, &desc, CUBLASLT_MATMUL_DESC_TRANSB, &op_second, sizeof(op_second));
  call(lt->matmul_desc_set, &desc, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof(epilogue));
  if (const std::int32_t count = lt.multiprocessors(); count > 0) {
    call(lt->matmul_desc_set, &desc, CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET, &count, sizeof(count));
  }
  if (bias != nullptr) {
    call(lt->matmul_desc_set, &desc, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias, sizeof(bias));
  }

  cublasLtMatmulPreferenceOpaque_t preference;
  const std::size_t workspace_bytes =
      operands.workspace == nullptr ? 0 : std::min(operands.workspace_bytes, kCublasWorkspaceBytes);
  const std::uint32_t alignments[] = {b.Alignment(), a.Alignment(), c.Alignment(), d.Alignment()};
  call(lt->preference_init, &preference, sizeof(preference));
  call(lt->preference_set, &preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace_bytes,
       sizeof(workspace_bytes));
  call(lt->preference_set, &preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, &alignments[0],
       sizeof(alignments[0]));
  call(lt->preference_set, &preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, &alignments[1],
       sizeof(alignments[1]));
  call(lt->preference_set, &preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, &alignments[2],
       sizeof(alignments[2]));
  call(lt->preference_set, &preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, &alignments[3],
       sizeof(alignments[3]));

  // A split k summed up in the output's type would round twice; in the compute type it does not.
  const std::uint32_t reductions = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
  call(lt->preference_set, &preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &reductions,
       sizeof(reductions));

  cublasLtMatmulHeuristicResult_t best = {};
  int found = 0;
  call(lt->get_heuristic, lt.handle(), &desc, &b.layout, &a.layout, &c.layout, &d.layout, &preference, 1,
       &best, &found);
  if (call.status() != CUBLAS_STATUS_SUCCESS) return ToCudaError(call.status());
  if (found == 0) return cudaErrorNotSupported;

  const StepScalars* scalars = operands.scalars;  // in device memory: only addresses are taken here
  const void* alpha = &scalars->alpha_f32;
  const void* beta = &scalars->beta_f32;
  if (types.scale == CUDA_R_64F) {
    alpha = &scalars->alpha_f64;
    beta = &scalars->beta_f64;
  } else if (types.scale == CUDA_R_32I) {  // the lower half of a little-endian number
    alpha = &scalars->alpha_i64;
    beta = &scalars->beta_i64;
  }
  for (std::int64_t i = 0; i < launches; ++i) {
    const GemmBatch::Matrices at = loop.At(i);
    auto* result = const_cast<void*>(d.At(i * batch));
    const void* addend = problem.has_c ? c.At(at.c) : result;
    call(lt->matmul, lt.handle(), &desc, alpha, b.At(at.b), &b.layout, a.At(at.a), &a.layout, beta, addend,
         &c.layout, result, &d.layout, &best.algo, operands.workspace, workspace_bytes, stream);
  }
  return ToCudaError(call.status());
}

}  // namespace warpline
