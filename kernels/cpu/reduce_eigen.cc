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

// The integers that hold the sum of kRun or kFlush elements, and of more modulo 2^64.
template <typename T>
using Partial =
    std::conditional_t<sizeof(T) <= 2, std::conditional_t<std::is_signed_v<T>, std::int32_t, std::uint32_t>,
                       std::uint64_t>;

// A policy. `In` is the type to which elements of a run are widened, `Total` the type in which runs are
// accumulated. Sums of integers are modulo 2^64, which is why their type has no sign.
template <typename T>
struct Sum {
  static constexpr bool kInteger = std::is_integral_v<T>;
  using In = typename std::conditional_t<kInteger, std::type_identity<Partial<T>>,
                                         std::type_identity<Compute<T>>>::type;
  using Total = std::conditional_t<kInteger, std::uint64_t, double>;
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
  static In Collapse(const auto& run) {
    if constexpr (!std::is_integral_v<T>) return run.redux(Op());
    // Eigen has no vectors of most integers, but compilers have.
    In best = Identity();
    for (Eigen::Index i = 0; i < run.size(); ++i)
      best = kMax ? std::max(best, run[i]) : std::min(best, run[i]);
    return best;
  }
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
  using SumOut = std::conditional_t<std::is_integral_v<T>, std::uint64_t, T>;  // or the bits of an i64
  using MeanOut = std::conditional_t<std::is_integral_v<T>, double, T>;
  using Signed = std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>;
  const auto store = [&](std::int64_t i, auto total) {
    switch (problem.op) {
      case ReduceOp::kSum:
        static_cast<SumOut*>(operands.out)[i] = RoundTo<SumOut>(total);
        break;
      case ReduceOp::kMean:
        if constexpr (std::is_integral_v<T>) {
          static_cast<MeanOut*>(operands.out)[i] = static_cast<double>(static_cast<Signed>(total)) / count;
        } else {
          static_cast<MeanOut*>(operands.out)[i] = RoundTo<MeanOut>(static_cast<double>(total) / count);
        }
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

bool ReduceEigenSupportsDType(DType dtype) { return IsFloat(dtype) || IsInteger(dtype); }

bool ReduceEigenSupports(const ReduceProblem& problem, const DeviceTraits&) {
  const bool known = problem.op == ReduceOp::kSum || problem.op == ReduceOp::kMean ||
                     problem.op == ReduceOp::kMin || problem.op == ReduceOp::kMax;
  // The mean of wider integers is that of sums which do not wrap.
  const bool wraps = problem.op == ReduceOp::kMean && IsInteger(problem.dtype) && SizeOf(problem.dtype) > 4;
  return known && !wraps && problem.OutDType() == DefaultOutDType(problem.op, problem.dtype);
}

void ReduceEigen(const ReduceProblem& problem, const Operands& operands) {
  VisitReal(problem.dtype, [&]<typename T>(std::type_identity<T>) {
    if constexpr (!std::is_same_v<T, Bool>) Reduce<T>(problem, operands);
  });
}

}  // namespace warpline::cpu
