// The shared parts of our own matrix products: the choice of the tile that a CTA computes, and the conversion
// of a sum to an element of D.
#ifndef WARPLINE_KERNELS_GEMM_DEVICE_CUH_
#define WARPLINE_KERNELS_GEMM_DEVICE_CUH_

#include <cuda/std/complex>

#include "kernels/cuda_variants.h"
#include "kernels/gemm/epilogue.h"
#include "kernels/gpu/real.cuh"
#include "kernels/launch_grids.h"

namespace warpline {

template <typename T>
using Complex = cuda::std::complex<T>;

// Operands of type In, accumulators of type Wide, D of type Out.
template <typename InT, typename OutT, typename WideT>
struct GemmTypes {
  using In = InT;
  using Out = OutT;
  using Wide = WideT;
};

// The arguments of a kernel. Tiles are numbered along n first, then m, then the batch.
template <typename Types>
struct GemmArgs {
  const typename Types::In *a, *b;
  const typename Types::Out *c, *bias;
  typename Types::Out* d;
  const StepScalars* scalars;
  GemmProblem problem;
  std::int64_t tiles_m, tiles_n;

  std::int64_t Tiles() const { return tiles_m * tiles_n * problem.batch.Count(); }
};

template <typename Types>
GemmArgs<Types> MakeGemmArgs(const GemmProblem& problem, const Operands& operands, int tile_m, int tile_n) {
  using In = typename Types::In;
  using Out = typename Types::Out;
  return {.a = static_cast<const In*>(operands.in[0]),
          .b = static_cast<const In*>(operands.in[1]),
          .c = static_cast<const Out*>(problem.has_c ? operands.in[2] : nullptr),
          .bias = static_cast<const Out*>(problem.has_bias ? operands.in[problem.BiasIndex()] : nullptr),
          .d = static_cast<Out*>(operands.out),
          .scalars = operands.scalars,
          .problem = problem,
          .tiles_m = CeilDiv(problem.m, tile_m),
          .tiles_n = CeilDiv(problem.n, tile_n)};
}

// The first element of a tile, and the index of its matrix of D.
struct GemmTile {
  std::int64_t row0, column0, matrix;
};

template <typename Types>
__device__ GemmTile TileAt(const GemmArgs<Types>& args, std::int64_t index, int tile_m, int tile_n) {
  GemmTile tile;
  tile.column0 = index % args.tiles_n * tile_n;
  index /= args.tiles_n;
  tile.row0 = index % args.tiles_m * tile_m;
  tile.matrix = index / args.tiles_m;
  return tile;
}

// Returns the tiles in another order. Tiles that run at the same time should use few rows of A and few
// columns of B. So the order goes down 16 tiles before it goes right.
template <typename Types>
__device__ GemmTile GroupedTileAt(const GemmArgs<Types>& args, std::int64_t index, int tile_m, int tile_n) {
  constexpr int kGroup = 16;
  GemmTile tile;
  const std::int64_t per_matrix = args.tiles_m * args.tiles_n;
  tile.matrix = index / per_matrix;
  index -= tile.matrix * per_matrix;
  const std::int64_t first = index / (kGroup * args.tiles_n) * kGroup;
  const std::int64_t height = min(std::int64_t{kGroup}, args.tiles_m - first);
  index -= first * args.tiles_n;
  tile.row0 = (first + index % height) * tile_m;
  tile.column0 = index / height * tile_n;
  return tile;
}

// One matrix of a batch as op(X), so that element (i, j) is the one to multiply.
template <typename T>
struct GemmOperand {
  const T* data;
  std::int64_t ld;
  bool trans;

  __device__ T At(std::int64_t i, std::int64_t j) const {
    return trans ? data[j * ld + i] : data[i * ld + j];
  }
};

template <typename Types>
__device__ GemmOperand<typename Types::In> OperandA(const GemmArgs<Types>& args, std::int64_t matrix) {
  const GemmProblem& p = args.problem;
  return {args.a + matrix * (p.trans_a ? p.k : p.m) * p.lda, p.lda, p.trans_a};
}

template <typename Types>
__device__ GemmOperand<typename Types::In> OperandB(const GemmArgs<Types>& args, std::int64_t matrix) {
  const GemmProblem& p = args.problem;
  return {args.b + matrix * (p.trans_b ? p.n : p.k) * p.ldb, p.ldb, p.trans_b};
}

// Converts sums to elements of one matrix of D.
template <typename Types>
class GemmEpilogue {
 public:
  using Out = typename Types::Out;
  using Wide = typename Types::Wide;

  // `c`: the index of the matrix of C that is added to matrix `d`.
  __device__ GemmEpilogue(const GemmArgs<Types>& args, std::int64_t d, std::int64_t c)
      : args_(args),
        c_(args.c + c * args.problem.m * args.problem.ldc),
        d_(args.d + d * args.problem.m * args.problem.n),
        // Without a product alpha is ignored, even if it is infinite.
        alpha_(args.problem.k == 0
                   ? Wide{0}
                   : Pick(args.scalars->alpha_f32, args.scalars->alpha_f64, args.scalars->alpha_i64)),
        beta_(Pick(args.scalars->beta_f32, args.scalars->beta_f64, args.scalars->beta_i64)) {}

  __device__ Out Value(std::int64_t row, std::int64_t column, Wide sum) const {
    return Narrow<Out>(Finish(row, column, sum));
  }

  // Returns the value before it is rounded to the type of D.
  __device__ Wide Finish(std::int64_t row, std::int64_t column, Wide sum) const {
    Wide value = alpha_ * sum;
    if (AddsC()) value = AddC(row, column, value);
    if constexpr (std::is_floating_point_v<Wide>) {
      if (AddsBias()) value += Bias(column);
      value = Activate(activation(), value);
    }
    return value;
  }

  // The separate steps of Finish. OnlyScales: true if D is only alpha times the sums.
  __device__ bool OnlyScales() const { return !AddsC() && !AddsBias() && activation() == Activation::kNone; }
  __device__ Wide alpha() const { return alpha_; }
  __device__ bool AddsC() const { return args_.problem.has_c && beta_ != Wide{0}; }
  __device__ Wide AddC(std::int64_t row, std::int64_t column, Wide value) const {
    return value + beta_ * Widen<Wide>(c_[row * args_.problem.ldc + column]);
  }
  __device__ bool AddsBias() const { return args_.problem.has_bias; }
  __device__ Wide Bias(std::int64_t column) const { return Widen<Wide>(args_.bias[column]); }
  __device__ Activation activation() const { return args_.problem.activation; }

  __device__ Out* At(std::int64_t row, std::int64_t column) const {
    return d_ + row * args_.problem.n + column;
  }

  __device__ bool IsInside(std::int64_t row, std::int64_t column) const {
    return row < args_.problem.m && column < args_.problem.n;
  }

  __device__ bool HasRow(std::int64_t row) const { return row < args_.problem.m; }
  __device__ std::int64_t columns() const { return args_.problem.n; }
  // Return how many of `count` rows or columns, from `row` or `column` on, are inside of D.
  __device__ int RowsInside(std::int64_t row, int count) const {
    return Inside(args_.problem.m - row, count);
  }
  __device__ int ColumnsInside(std::int64_t column, int count) const {
    return Inside(args_.problem.n - column, count);
  }

  // Does nothing outside of D.
  __device__ void Store(std::int64_t row, std::int64_t column, Wide sum) const {
    if (IsInside(row, column)) *At(row, column) = Value(row, column, sum);
  }

 private:
  __device__ static int Inside(std::int64_t left, int count) {
    return static_cast<int>(min(max(left, std::int64_t{0}), std::int64_t{count}));
  }

  __device__ static Wide Pick(float f32, double f64, std::int64_t i64) {
    if constexpr (std::is_integral_v<Wide>) {
      return static_cast<Wide>(i64);
    } else if constexpr (std::is_same_v<Wide, double> || std::is_same_v<Wide, Complex<double>>) {
      return f64;
    } else {
      return f32;
    }
  }

  const GemmArgs<Types>& args_;
  const Out* c_;
  Out* d_;
  Wide alpha_, beta_;
};

// Calls launch(GemmTypes<...>()) with the types of an f16 or bf16 problem.
template <typename Launch>
cudaError_t WithHalfGemmTypes(const GemmProblem& problem, Launch launch) {
  const bool to_f32 = problem.OutDType() == DType::kF32;
  switch (problem.dtype) {
    case DType::kF16:
      return to_f32 ? launch(GemmTypes<__half, float, float>()) : launch(GemmTypes<__half, __half, float>());
    case DType::kBF16:
      return to_f32 ? launch(GemmTypes<__nv_bfloat16, float, float>())
                    : launch(GemmTypes<__nv_bfloat16, __nv_bfloat16, float>());
    default:
      return cudaErrorNotSupported;
  }
}

// Calls launch(GemmTypes<...>()) with the types of an integer or float problem. Integers are computed modulo
// 2^bits. The sign makes no difference then, unless D is wider than the operands. So an unsigned type is used
// for both integer types of a width.
template <typename Launch>
cudaError_t WithGemmTypes(const GemmProblem& problem, Launch launch) {
  switch (problem.dtype) {
    case DType::kI8:
      if (problem.OutDType() == DType::kI32) {
        return launch(GemmTypes<std::int8_t, std::int32_t, std::uint32_t>());
      }
      [[fallthrough]];
    case DType::kU8:
      return launch(GemmTypes<std::uint8_t, std::uint8_t, std::uint32_t>());
    case DType::kI16:
    case DType::kU16:
      return launch(GemmTypes<std::uint16_t, std::uint16_t, std::uint32_t>());
    case DType::kI32:
    case DType::kU32:
      return launch(GemmTypes<std::uint32_t, std::uint32_t, std::uint32_t>());
    case DType::kI64:
    case DType::kU64:
      return launch(GemmTypes<std::uint64_t, std::uint64_t, std::uint64_t>());
    case DType::kF32:
      return launch(GemmTypes<float, float, float>());
    case DType::kF64:
      return launch(GemmTypes<double, double, double>());
    default:
      return WithHalfGemmTypes(problem, launch);
  }
}

}  // namespace warpline

#endif  // WARPLINE_KERNELS_GEMM_DEVICE_CUH_
