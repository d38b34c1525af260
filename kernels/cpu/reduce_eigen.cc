// Sum, mean, min and max by Eigen's vectorised loops over contiguous runs of x. If x's contiguous axis is
// reduced, a run becomes one number. If it is kept, runs are combined element by element.
#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "kernels/cpu/float16.h"
#include "kernels/cpu/launchers.h"
#include "kernels/cpu/looks.h"
#include "kernels/cpu/strided.h"

namespace warpline::cpu {
namespace {

// Maximum length of a run. Its copies below, of up to 8 KiB each, stay in the first-level cache.
constexpr int kRun = 1024;
// Number of runs that are added in f32 before the sum is added to an f64 total. So in f32 an element is
// rounded at most kRun or kFlush times, for any number of elements.
constexpr int kFlush = 64;

template <typename T>
using Array = Eigen::Array<T, Eigen::Dynamic, 1, Eigen::ColMajor, kRun, 1>;  // on the stack

// A policy. `In` is the type to which elements of a run are widened, `Total` the type in which runs are
// accumulated.
template <typename T>
struct Sum {
  using In = std::conditional_t<std::is_integral_v<T>, std::int64_t, Compute<T>>;
  using Total = std::conditional_t<std::is_integral_v<T>, std::int64_t, double>;
  static constexpr Total Identity() { return 0; }
  static In Collapse(const auto& run) { return run.sum(); }
  static Total Combine(Total a, Total b) { return a + b; }
  static void CombineInto(auto& into, const auto& run) { into += run; }
};

// NaN if any element is NaN. Eigen's default does not specify that.
template <typename T, bool kMax>
struct Extreme {
  using In = Compute<T>;
  using Total = In;
  // The operation that minCoeff<PropagateNaN>() uses. Eigen 3.4 has no public name for it between two arrays.
  using Op = std::conditional_t<kMax, Eigen::internal::scalar_max_op<In, In, Eigen::PropagateNaN>,
                                Eigen::internal::scalar_min_op<In, In, Eigen::PropagateNaN>>;
  static constexpr Total Identity() {
    using Limits = std::numeric_limits<In>;
    if constexpr (Limits::has_infinity) return kMax ? -Limits::infinity() : Limits::infinity();
    return kMax ? Limits::lowest() : Limits::max();
  }
  static In Collapse(const auto& run) { return run.redux(Op()); }
  static In Combine(In a, In b) { return Op()(a, b); }
  static void CombineInto(auto& into, const auto& run) { into = into.binaryExpr(run, Op()); }
};

// Calls f with n elements from x on, as an Eigen array of In: x itself if that is its type, otherwise a copy.
template <typename In, typename T, typename F>
void WithRun(const T* x, std::int64_t n, F&& f) {
  const Eigen::Map<const Array<T>> run(x, n);
  if constexpr (std::is_same_v<In, T>) {
    f(run);
  } else {
    const Array<In> widened = run.template cast<In>();
    f(widened);
  }
}

// The axes of x. `run` is its contiguous axis.
struct Layout {
  AxisList kept, reduced;  // all except `run`; y_stride is y's stride for kept axes
  Axis run;                // x is contiguous along it
};

// Computes y[...] from the run and all other runs along `reduced`.
template <typename Policy, typename T, typename Store>
void CollapseRuns(Looks& looks, const Layout& layout, const T* x, Store store) {
  using In = typename Policy::In;
  using Total = typename Policy::Total;
  layout.kept.ForEach([&](std::int64_t kept, std::int64_t y) {
    Total total = Policy::Identity();
    const bool ends = layout.reduced.ForEach([&](std::int64_t reduced, std::int64_t) {
      for (std::int64_t i = 0; i < layout.run.size; i += kRun) {
        const std::int64_t n = std::min<std::int64_t>(kRun, layout.run.size - i);
        WithRun<In>(x + kept + reduced + i, n, [&](const auto& run) {
          total = Policy::Combine(total, static_cast<Total>(Policy::Collapse(run)));
        });
        if (looks.Stop(n)) return false;
      }
      return true;
    });
    if (!ends || looks.Stop(8)) return false;
    store(y, total);
    return true;
  });
}

// Computes y[..., i, ...] from element i of all runs along `reduced`.
template <typename Policy, typename T, typename Store>
void CombineRuns(Looks& looks, const Layout& layout, const T* x, Store store) {
  using In = typename Policy::In;
  using Total = typename Policy::Total;
  layout.kept.ForEach([&](std::int64_t kept, std::int64_t y) {
    for (std::int64_t i = 0; i < layout.run.size; i += kRun) {
      const std::int64_t n = std::min<std::int64_t>(kRun, layout.run.size - i);
      const In identity = static_cast<In>(Policy::Identity());
      Array<Total> total = Array<Total>::Constant(n, Policy::Identity());
      Array<In> partial = Array<In>::Constant(n, identity);
      int runs = 0;
      const auto flush = [&] {
        Policy::CombineInto(total, partial.template cast<Total>());
        partial.setConstant(identity);
        runs = 0;
      };
      const bool ends = layout.reduced.ForEach([&](std::int64_t reduced, std::int64_t) {
        WithRun<In>(x + kept + reduced + i, n, [&](const auto& run) { Policy::CombineInto(partial, run); });
        if (++runs == kFlush) flush();
        return !looks.Stop(n + 8);
      });
      if (!ends) return false;
      flush();
      for (std::int64_t j = 0; j < n; ++j) store(y + (i + j) * layout.run.y_stride, total[j]);
      if (looks.Stop(n)) return false;
    }
    return true;
  });
}

template <typename T>
void Reduce(const ReduceProblem& problem, const Operands& operands) {
  const Shape y_shape = problem.OutputShape(/*keepdims=*/true);
  if (y_shape.Count() == 0) return;
  const auto x_strides = RowMajorStrides(problem.shape, problem.row_stride);
  const auto y_strides = RowMajorStrides(y_shape);
  Layout layout;
  for (int i = 0; i < problem.shape.rank; ++i) {
    const bool reduced = problem.IsReduced(i);
    (reduced ? layout.reduced : layout.kept)
        .Append({problem.shape[i], x_strides[i], reduced ? 0 : y_strides[i]});
  }
  layout.run = layout.kept.RemoveContiguousInX();
  const bool collapse = layout.run.size == 1;
  if (collapse) layout.run = layout.reduced.RemoveContiguousInX();

  const T* x = static_cast<const T*>(operands.in[0]);
  Looks looks(operands.interest);
  const auto reduce = [&]<typename Policy>(std::type_identity<Policy>, auto store) {
    if (collapse) {
      CollapseRuns<Policy>(looks, layout, x, store);
    } else {
      CombineRuns<Policy>(looks, layout, x, store);
    }
  };
  const double count = static_cast<double>(problem.ReducedCount());  // 0: the mean is 0 / 0, which is NaN
  using SumOut = std::conditional_t<std::is_integral_v<T>, std::int64_t, T>;
  using MeanOut = std::conditional_t<std::is_integral_v<T>, double, T>;
  const auto store = [&](std::int64_t i, auto total) {
    switch (problem.op) {
      case ReduceOp::kSum:
        static_cast<SumOut*>(operands.out)[i] = RoundTo<SumOut>(total);
        break;
      case ReduceOp::kMean:
        static_cast<MeanOut*>(operands.out)[i] = RoundTo<MeanOut>(static_cast<double>(total) / count);
        break;
      default:
        static_cast<T*>(operands.out)[i] = RoundTo<T>(total);
    }
  };
  switch (problem.op) {
    case ReduceOp::kSum:
    case ReduceOp::kMean:
      return reduce(std::type_identity<Sum<T>>(), store);
    case ReduceOp::kMin:
      return reduce(std::type_identity<Extreme<T, false>>(), store);
    case ReduceOp::kMax:
      return reduce(std::type_identity<Extreme<T, true>>(), store);
    default:
      return;  // not supported
  }
}

}  // namespace

bool ReduceEigenSupportsDType(DType dtype) { return IsFloat(dtype) || dtype == DType::kI32; }

bool ReduceEigenSupports(const ReduceProblem& problem, const DeviceTraits&) {
  const bool known = problem.op == ReduceOp::kSum || problem.op == ReduceOp::kMean ||
                     problem.op == ReduceOp::kMin || problem.op == ReduceOp::kMax;
  return known && problem.OutDType() == DefaultOutDType(problem.op, problem.dtype);
}

void ReduceEigen(const ReduceProblem& problem, const Operands& operands) {
  switch (problem.dtype) {
    case DType::kI32:
      return Reduce<std::int32_t>(problem, operands);
    case DType::kF16:
      return Reduce<Float16>(problem, operands);
    case DType::kBF16:
      return Reduce<BFloat16>(problem, operands);
    case DType::kF32:
      return Reduce<float>(problem, operands);
    case DType::kF64:
      return Reduce<double>(problem, operands);
    default:
      return;  // not supported
  }
}

}  // namespace warpline::cpu
