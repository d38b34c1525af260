#include "kernels/gemm/cublas_product.h"

#include <array>

#include "kernels/gemm/kernels.h"

namespace warpline {
namespace {

cudaDataType_t TypeOf(DType dtype) {
  switch (dtype) {
    case DType::kI8:
      return CUDA_R_8I;
    case DType::kI32:
      return CUDA_R_32I;
    case DType::kF16:
      return CUDA_R_16F;
    case DType::kBF16:
      return CUDA_R_16BF;
    case DType::kF64:
      return CUDA_R_64F;
    case DType::kC64:
      return CUDA_C_32F;
    case DType::kC128:
      return CUDA_C_64F;
    default:
      return CUDA_R_32F;
  }
}

// Returns the type of alpha and beta.
cudaDataType_t ScaleTypeOf(const CublasProduct& product) {
  switch (product.a.dtype) {
    case DType::kI8:
      return CUDA_R_32I;
    case DType::kF16:
    case DType::kBF16:
      return CUDA_R_32F;
    default:
      return TypeOf(product.a.dtype);
  }
}

cublasComputeType_t ComputeTypeOf(const CublasProduct& product) {
  switch (product.a.dtype) {
    case DType::kI8:
      return CUBLAS_COMPUTE_32I;
    case DType::kF64:
    case DType::kC128:
      return CUBLAS_COMPUTE_64F;
    case DType::kF32:
      return product.precision == Precision::kTf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
    default:
      return CUBLAS_COMPUTE_32F;
  }
}

cublasLtEpilogue_t EpilogueOf(const CublasProduct& product) {
  const bool has_bias = product.bias != nullptr;
  switch (product.activation) {
    case Activation::kNone:
      break;
    case Activation::kRelu:
      return has_bias ? CUBLASLT_EPILOGUE_RELU_BIAS : CUBLASLT_EPILOGUE_RELU;
    case Activation::kGelu:
      return has_bias ? CUBLASLT_EPILOGUE_GELU_BIAS : CUBLASLT_EPILOGUE_GELU;
  }
  return has_bias ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT;
}

struct Scalars {
  const void *alpha, *beta;
};

// Only takes addresses in device memory; does not read them.
Scalars ScalarsOf(const StepScalars* scalars, cudaDataType_t type) {
  switch (type) {
    case CUDA_R_64F:
    case CUDA_C_64F:
      return {&scalars->alpha_f64, &scalars->beta_f64};
    case CUDA_R_32I:  // alpha_i64 is little-endian: its lower half is the i32
      return {&scalars->alpha_i64, &scalars->beta_i64};
    default:
      return {&scalars->alpha_f32, &scalars->beta_f32};
  }
}

// The scalars of a plain product: alpha is 1 and beta 0.
constexpr StepScalars kPlainProduct;

// Returns the alignment, in bytes, that the library may assume for the address of every matrix.
std::uint32_t AlignmentOf(const CublasMatrix& matrix) {
  const std::uint64_t bits = reinterpret_cast<std::uintptr_t>(matrix.data) |
                             static_cast<std::uint64_t>(matrix.Size()) * SizeOf(matrix.dtype) | 256;
  return static_cast<std::uint32_t>(bits & -bits);
}

}  // namespace

CublasProduct DescribeCublasProduct(const GemmProblem& problem, const Operands& operands,
                                    const StridedBatch& batch) {
  const std::int64_t m = problem.m, n = problem.n, k = problem.k;
  CublasProduct product;
  product.trans_a = problem.trans_a;
  product.trans_b = problem.trans_b;
  product.precision = problem.precision;
  product.activation = problem.activation;
  product.bias = problem.has_bias ? operands.in[problem.BiasIndex()] : nullptr;
  product.scalars = operands.scalars;
  product.batch = batch;
  product.a = {.data = operands.in[0],
               .rows = problem.trans_a ? k : m,
               .columns = problem.trans_a ? m : k,
               .ld = problem.lda,
               .dtype = problem.dtype,
               .step = batch.a};
  product.b = {.data = operands.in[1],
               .rows = problem.trans_b ? n : k,
               .columns = problem.trans_b ? k : n,
               .ld = problem.ldb,
               .dtype = problem.dtype,
               .step = batch.b};
  product.d = {
      .data = operands.out, .rows = m, .columns = n, .ld = n, .dtype = problem.OutDType(), .step = batch.d};
  product.c = product.d;
  product.has_c = problem.has_c;
  if (problem.has_c) {
    product.c.data = operands.in[2];
    product.c.ld = problem.ldc;
    product.c.step = batch.c;
  }
  return product;
}

CublasCall::CublasCall(const CublasLt& lt, const CublasProduct& product) : lt_(lt), product_(product) {
  if (product.batch.count > INT32_MAX) {
    status_ = CUBLAS_STATUS_NOT_SUPPORTED;
    return;
  }
  Describe(product.a, a_);
  Describe(product.b, b_);
  Describe(product.c, c_);
  Describe(product.d, d_);
  // The library computes the transpose of D, a column-major D', as op(B)' * op(A)'. So the operands are
  // swapped.
  Call(lt->matmul_desc_init, &product_layout_, sizeof(product_layout_), ComputeTypeOf(product),
       ScaleTypeOf(product));
  SetProduct<std::int32_t>(CUBLASLT_MATMUL_DESC_POINTER_MODE, product.scalars != nullptr
                                                                  ? CUBLASLT_POINTER_MODE_DEVICE
                                                                  : CUBLASLT_POINTER_MODE_HOST);
  SetProduct<std::int32_t>(CUBLASLT_MATMUL_DESC_TRANSA, product.trans_b ? CUBLAS_OP_T : CUBLAS_OP_N);
  SetProduct<std::int32_t>(CUBLASLT_MATMUL_DESC_TRANSB, product.trans_a ? CUBLAS_OP_T : CUBLAS_OP_N);
  SetProduct(CUBLASLT_MATMUL_DESC_EPILOGUE, EpilogueOf(product));
  if (const std::int32_t count = lt.multiprocessors(); count > 0) {
    SetProduct(CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET, count);
  }
  if (product.bias != nullptr) SetProduct(CUBLASLT_MATMUL_DESC_BIAS_POINTER, product.bias);
}

void CublasCall::Describe(const CublasMatrix& matrix, cublasLtMatrixLayoutOpaque_t& layout) {
  Call(lt_->layout_init, &layout, sizeof(layout), TypeOf(matrix.dtype),
       static_cast<std::uint64_t>(matrix.columns), static_cast<std::uint64_t>(matrix.rows), matrix.ld);
  const auto count = static_cast<std::int32_t>(product_.batch.count);
  const std::int64_t stride = matrix.step * matrix.Size();
  Call(lt_->layout_set, &layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof(count));
  Call(lt_->layout_set, &layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride, sizeof(stride));
}

cudaError_t CublasCall::FindAlgorithms(std::size_t workspace_bytes,
                                       std::span<cublasLtMatmulHeuristicResult_t> algorithms, int* found) {
  *found = 0;
  cublasLtMatmulPreferenceOpaque_t preference;
  Call(lt_->preference_init, &preference, sizeof(preference));
  SetPreference(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, workspace_bytes);
  SetPreference(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, AlignmentOf(product_.b));
  SetPreference(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, AlignmentOf(product_.a));
  SetPreference(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, AlignmentOf(product_.c));
  SetPreference(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, AlignmentOf(product_.d));
  // If a split k is summed in a 16-bit output type, the result is rounded twice. Summing in the compute type
  // avoids that. Other outputs must not be restricted: then the library takes five times as long for tf32
  // products with unaligned rows (docs/benchmarks/history.md#2026-11-26-odd-products).
  const bool rounds_twice = SizeOf(product_.d.dtype) == 2;
  SetPreference<std::uint32_t>(
      preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
      rounds_twice ? CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE : CUBLASLT_REDUCTION_SCHEME_MASK);
  Call(lt_->get_heuristic, lt_.handle(), &product_layout_, &b_, &a_, &c_, &d_, &preference,
       static_cast<int>(algorithms.size()), algorithms.data(), found);
  return Error();
}

cudaError_t CublasCall::Launch(const cublasLtMatmulAlgo_t& algorithm, void* workspace,
                               std::size_t workspace_bytes, cudaStream_t stream) {
  const Scalars scalars =
      ScalarsOf(product_.scalars != nullptr ? product_.scalars : &kPlainProduct, ScaleTypeOf(product_));
  const StridedBatch& batch = product_.batch;
  for (std::int64_t i = 0, steps = batch.loop.Count(); i < steps; ++i) {
    const GemmBatch::Matrices at = batch.loop.At(i);
    auto* d = const_cast<void*>(product_.d.At(batch.DAt(i)));
    const void* c = product_.has_c ? product_.c.At(at.c) : d;
    Call(lt_->matmul, lt_.handle(), &product_layout_, scalars.alpha, product_.b.At(at.b), &b_,
         product_.a.At(at.a), &a_, scalars.beta, c, &c_, d, &d_, &algorithm, workspace, workspace_bytes,
         stream);
  }
  return Error();
}

CublasAlgorithms::Key CublasCall::KeyOf(int rank, std::size_t workspace_bytes) const {
  CublasAlgorithms::Key key{};
  std::size_t size = 0;
  for (const CublasMatrix* matrix : {&product_.a, &product_.b, &product_.c, &product_.d}) {
    for (const std::int64_t number : {matrix->rows, matrix->columns, matrix->ld, matrix->step}) {
      key[size++] = number;
    }
    key[size++] = static_cast<std::int64_t>(AlignmentOf(*matrix)) << 8 | static_cast<int>(matrix->dtype);
  }
  key[size++] = product_.batch.count;
  key[size++] = static_cast<std::int64_t>(workspace_bytes);
  key[size++] = lt_.multiprocessors();
  std::int64_t& rest = key[size];
  const auto add = [&rest](std::int64_t value, int bits) { rest = rest << bits | value; };
  add(rank, 8);
  add(static_cast<std::int64_t>(product_.precision), 4);
  add(static_cast<std::int64_t>(product_.activation), 4);
  add(static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(product_.bias) % 256), 8);
  for (const bool is_set :
       {product_.trans_a, product_.trans_b, product_.bias != nullptr, product_.scalars != nullptr}) {
    add(is_set ? 1 : 0, 1);
  }
  return key;
}

cudaError_t CublasCall::LaunchRanked(int rank, void* workspace, std::size_t workspace_bytes,
                                     cudaStream_t stream) {
  if (status_ != CUBLAS_STATUS_SUCCESS) return Error();
  const auto find = [&]() -> std::optional<RankedAlgorithm> {
    std::array<cublasLtMatmulHeuristicResult_t, kCublasAlgorithms> ranked = {};
    // The first algorithm is by far the most used, and the library makes a list of one faster.
    const std::size_t asked = rank == 0 ? 1 : ranked.size();
    int found = 0;
    const cudaError_t error = FindAlgorithms(workspace_bytes, std::span(ranked).first(asked), &found);
    if (error != cudaSuccess) return std::nullopt;
    const cublasLtMatmulHeuristicResult_t& chosen = ranked[static_cast<std::size_t>(rank)];
    return RankedAlgorithm{.exists = rank < found && chosen.state == CUBLAS_STATUS_SUCCESS,
                           .algorithm = chosen.algo};
  };
  const auto algorithm = lt_.algorithms().Get(KeyOf(rank, workspace_bytes), find);
  if (algorithm == nullptr) return Error();
  if (!algorithm->exists) return cudaErrorNotSupported;
  return Launch(algorithm->algorithm, workspace, workspace_bytes, stream);
}

cudaError_t CublasCall::Error() const {
  switch (status_) {
    case CUBLAS_STATUS_SUCCESS:
      return cudaSuccess;
    case CUBLAS_STATUS_NOT_SUPPORTED:
    case CUBLAS_STATUS_ARCH_MISMATCH:
    case CUBLAS_STATUS_INVALID_VALUE:  // a size or leading dimension that the library does not support
      return cudaErrorNotSupported;
    case CUBLAS_STATUS_ALLOC_FAILED:
      return cudaErrorMemoryAllocation;
    default:
      // The library reports this both for lack of memory and for a lost context. If the context is lost, the
      // next runtime call reports it; until then the process must not be ended.
      return cudaErrorNotSupported;
  }
}

}  // namespace warpline
