// Reductions that read every element twice, counts and places: variance, standard deviation, logsumexp,
// count_nonzero, any, all, argmin and argmax. Each pass processes contiguous runs of x by Eigen's vectorised
// loops. If x's contiguous axis is kept, a run has one element of each of many results.
#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "kernels/cpu/float16.h"
#include "kernels/cpu/launchers.h"
#include "kernels/cpu/looks.h"
#include "kernels/cpu/real.h"
#include "kernels/cpu/vector_math.h"
#include "kernels/reduce/canonical.h"

namespace warpline::cpu {
namespace {

// Maximum length of a run. Its arrays stay in the first-level cache.
constexpr int kRun = 1024;
constexpr std::int64_t kWork = 2;  // per element (Looks)

template <typename T>
using Array = Eigen::Array<T, Eigen::Dynamic, 1, Eigen::ColMajor, kRun, 1>;  // on the stack

// Calls f with n elements from x on, as an Eigen array of In.
template <typename In, typename T, typename F>
void WithRun(const T* x, std::int64_t n, F&& f) {
  if constexpr (std::is_same_v<T, Bool>) {
    f(Eigen::Map<const Array<std::uint8_t>>(reinterpret_cast<const std::uint8_t*>(x), n));
  } else if constexpr (std::is_same_v<In, T>) {
    f(Eigen::Map<const Array<T>>(x, n));
  } else {
    const Array<In> widened = Eigen::Map<const Array<T>>(x, n).template cast<In>();
    f(widened);
  }
}

// For one result: calls f for the runs of all its elements. If it was stopped, the result is undefined.
template <typename In, typename T, typename F>
void ForEachRun(Looks& looks, const CanonicalReduce& reduce, const T* x, F&& f) {
  const std::int64_t row = reduce.reduced.rank == 0 ? 1 : reduce.reduced.dims[reduce.reduced.rank - 1];
  for (std::int64_t at = 0; at < reduce.reduced_count; at += row) {
    const T* run = x + reduce.reduced.Offset(at);
    for (std::int64_t i = 0; i < row; i += kRun) {
      const std::int64_t n = std::min<std::int64_t>(kRun, row - i);
      WithRun<In>(run + i, n, f);
      if (looks.Stop(kWork * n)) return;
    }
  }
}

// For n neighbouring results: calls f for the runs that have one element of each.
template <typename In, typename T, typename F>
void ForEachRow(Looks& looks, const CanonicalReduce& reduce, const T* x, std::int64_t n, F&& f) {
  for (std::int64_t i = 0; i < reduce.reduced_count; ++i) {
    WithRun<In>(x + reduce.reduced.Offset(i), n, f);
    if (looks.Stop(kWork * n + 8)) return;
  }
}

bool IsAcross(const CanonicalReduce& reduce) {
  return reduce.kept.rank > 0 && reduce.kept.strides[reduce.kept.rank - 1] == 1;
}

// Calls one(x, o) for each result o, or many(x, o, n) for n neighbouring ones.
template <typename T, typename One, typename Many>
void ForEachResult(Looks& looks, const CanonicalReduce& reduce, const T* x, One&& one, Many&& many) {
  if (!IsAcross(reduce)) {
    for (std::int64_t o = 0; o < reduce.results && !looks.Stop(8); ++o) one(x + reduce.kept.Offset(o), o);
    return;
  }
  const std::int64_t row = reduce.kept.dims[reduce.kept.rank - 1];
  for (std::int64_t o = 0; o < reduce.results; o += row) {
    const T* from = x + reduce.kept.Offset(o);
    for (std::int64_t i = 0; i < row && !looks.Stop(8); i += kRun) {
      many(from + i, o + i, std::min<std::int64_t>(kRun, row - i));
    }
  }
}

// Floats are summed in f64, so that long sums keep their precision.
template <typename T>
void Variance(Looks& looks, const ReduceProblem& problem, const T* x, T* y) {
  using In = Compute<T>;
  const CanonicalReduce reduce = Canonicalize(problem);
  const auto count = static_cast<double>(reduce.reduced_count);
  const double degrees = std::max(count - problem.ddof, 0.0);
  const auto finish = [&](double squares) {
    const double variance = squares / degrees;
    return RoundTo<T>(problem.op == ReduceOp::kStd ? std::sqrt(variance) : variance);
  };
  ForEachResult(
      looks, reduce, x,
      [&](const T* from, std::int64_t o) {
        double sum = 0, squares = 0;
        ForEachRun<In>(looks, reduce, from,
                       [&](const auto& run) { sum += run.template cast<double>().sum(); });
        const double mean = sum / count;
        ForEachRun<In>(looks, reduce, from, [&](const auto& run) {
          squares += (run.template cast<double>() - mean).square().sum();
        });
        y[o] = finish(squares);
      },
      [&](const T* from, std::int64_t o, std::int64_t n) {
        Array<double> sums = Array<double>::Zero(n), squares = Array<double>::Zero(n);
        ForEachRow<In>(looks, reduce, from, n, [&](const auto& run) { sums += run.template cast<double>(); });
        const Array<double> means = sums / count;
        ForEachRow<In>(looks, reduce, from, n,
                       [&](const auto& run) { squares += (run.template cast<double>() - means).square(); });
        for (std::int64_t i = 0; i < n; ++i) y[o + i] = finish(squares[i]);
      });
}

template <typename In, typename Differences>
Array<In> Exponentials(const Differences& differences) {
#ifdef WARPLINE_HAS_VECTOR_MATH
  Array<In> numbers = differences;
  ApplyToVectors<map::Exp>(numbers.data(), numbers.data(), static_cast<int>(numbers.size()));
  return numbers;
#else
  return differences.exp();
#endif
}

// Sums exponentials of differences from the maximum. If the maximum is infinite or NaN, it is the result.
template <typename T>
void LogSumExp(Looks& looks, const ReduceProblem& problem, const T* x, T* y) {
  using In = Compute<T>;
  using Max = Eigen::internal::scalar_max_op<In, In, Eigen::PropagateNaN>;
  constexpr In kLeast = -std::numeric_limits<In>::infinity();
  const CanonicalReduce reduce = Canonicalize(problem);
  const auto finish = [](In max, double sum) {
    return RoundTo<T>(std::isfinite(max) ? static_cast<double>(max) + std::log(sum) : max);
  };
  ForEachResult(
      looks, reduce, x,
      [&](const T* from, std::int64_t o) {
        In max = kLeast;
        double sum = 0;
        ForEachRun<In>(looks, reduce, from, [&](const auto& run) { max = Max()(max, run.redux(Max())); });
        if (std::isfinite(max)) {
          ForEachRun<In>(looks, reduce, from,
                         [&](const auto& run) { sum += Exponentials<In>(run - max).sum(); });
        }
        y[o] = finish(max, sum);
      },
      [&](const T* from, std::int64_t o, std::int64_t n) {
        Array<In> max = Array<In>::Constant(n, kLeast);
        Array<double> sums = Array<double>::Zero(n);
        ForEachRow<In>(looks, reduce, from, n, [&](const auto& run) { max = max.binaryExpr(run, Max()); });
        ForEachRow<In>(looks, reduce, from, n,
                       [&](const auto& run) { sums += Exponentials<In>(run - max).template cast<double>(); });
        for (std::int64_t i = 0; i < n; ++i) y[o + i] = finish(max[i], sums[i]);
      });
}

template <typename T>
void Count(Looks& looks, const ReduceProblem& problem, const T* x, void* y) {
  using In = std::conditional_t<std::is_same_v<T, Bool>, std::uint8_t, Compute<T>>;
  const CanonicalReduce reduce = Canonicalize(problem);
  const auto store = [&](std::int64_t o, std::int64_t count) {
    if (problem.op == ReduceOp::kCountNonzero) {
      static_cast<std::int64_t*>(y)[o] = count;
    } else {
      const bool is_true = problem.op == ReduceOp::kAny ? count != 0 : count == reduce.reduced_count;
      static_cast<Bool*>(y)[o] = Bool{is_true};
    }
  };
  ForEachResult(
      looks, reduce, x,
      [&](const T* from, std::int64_t o) {
        std::int64_t count = 0;
        ForEachRun<In>(looks, reduce, from, [&](const auto& run) {
          std::int32_t nonzero = 0;
          for (Eigen::Index i = 0; i < run.size(); ++i) nonzero += run[i] != 0 ? 1 : 0;
          count += nonzero;
        });
        store(o, count);
      },
      [&](const T* from, std::int64_t o, std::int64_t n) {
        Array<std::int64_t> counts = Array<std::int64_t>::Zero(n);
        ForEachRow<In>(looks, reduce, from, n, [&](const auto& run) {
          for (Eigen::Index i = 0; i < n; ++i) counts[i] += run[i] != 0 ? 1 : 0;
        });
        for (std::int64_t i = 0; i < n; ++i) store(o + i, counts[i]);
      });
}

// The first of the greatest or the least elements, or the first NaN. A run is read for its extreme, and once
// more if that is new.
template <typename T, bool kMax>
void Places(Looks& looks, const ReduceProblem& problem, const T* x, std::int64_t* y) {
  using In = std::conditional_t<std::is_same_v<T, Bool>, std::uint8_t, Compute<T>>;
  using Op = std::conditional_t<kMax, Eigen::internal::scalar_max_op<In, In, Eigen::PropagateNaN>,
                                Eigen::internal::scalar_min_op<In, In, Eigen::PropagateNaN>>;
  const CanonicalReduce reduce = Canonicalize(problem);
  const auto is_nan = [](In value) { return value != value; };  // NOLINT(misc-redundant-expression)
  const auto is_better = [&](In value, In best) {
    return (kMax ? value > best : value < best) || (is_nan(value) && !is_nan(best));
  };
  // Each byte of a bool but 0 is true.
  const auto number = [](In value) { return std::is_same_v<T, Bool> ? static_cast<In>(value != 0) : value; };
  const auto extreme = [&](const auto& run) {
    if constexpr (!std::is_integral_v<In>) return run.redux(Op());
    In best = number(run[0]);
    for (Eigen::Index i = 1; i < run.size(); ++i) {
      best = kMax ? std::max(best, number(run[i])) : std::min(best, number(run[i]));
    }
    return best;
  };
  ForEachResult(
      looks, reduce, x,
      [&](const T* from, std::int64_t o) {
        In best{};
        std::int64_t place = -1, at = 0;
        ForEachRun<In>(looks, reduce, from, [&](const auto& run) {
          const In found = extreme(run);
          if (place < 0 || is_better(found, best)) {
            best = found;
            Eigen::Index i = 0;
            while (number(run[i]) != best && !(is_nan(run[i]) && is_nan(best))) ++i;
            place = at + i;
          }
          at += run.size();
        });
        y[o] = place;
      },
      [&](const T* from, std::int64_t o, std::int64_t n) {
        Array<In> best = Array<In>::Zero(n);
        std::int64_t at = 0;
        ForEachRow<In>(looks, reduce, from, n, [&](const auto& run) {
          for (Eigen::Index i = 0; i < n; ++i) {
            const In value = number(run[i]);
            if (at > 0 && !is_better(value, best[i])) continue;
            best[i] = value;
            y[o + i] = at;
          }
          ++at;
        });
      });
}

bool IsCount(ReduceOp op) {
  return op == ReduceOp::kCountNonzero || op == ReduceOp::kAny || op == ReduceOp::kAll;
}

}  // namespace

bool ReducePassesSupports(const ReduceProblem& problem, const DeviceTraits&) {
  const bool known =
      problem.op == ReduceOp::kVar || problem.op == ReduceOp::kStd || problem.op == ReduceOp::kLogSumExp;
  const bool is_place = problem.op == ReduceOp::kArgmin || problem.op == ReduceOp::kArgmax;
  if (!IsCount(problem.op) && !is_place && !(known && IsFloat(problem.dtype))) return false;
  if (problem.OutDType() != DefaultOutDType(problem.op, problem.dtype)) return false;
  if (problem.ReducedCount() == 0) return false;
  const CanonicalReduce reduce = Canonicalize(problem);
  return reduce.InnermostReduced() || reduce.reduced.rank == 0 || IsAcross(reduce);
}

void ReducePasses(const ReduceProblem& problem, const Operands& operands) {
  VisitReal(problem.dtype, [&]<typename T>(std::type_identity<T>) {
    const T* x = static_cast<const T*>(operands.in[0]);
    Looks looks(operands.interest);
    if (IsCount(problem.op)) return Count(looks, problem, x, operands.out);
    if (problem.op == ReduceOp::kArgmax) {
      return Places<T, true>(looks, problem, x, static_cast<std::int64_t*>(operands.out));
    }
    if (problem.op == ReduceOp::kArgmin) {
      return Places<T, false>(looks, problem, x, static_cast<std::int64_t*>(operands.out));
    }
    if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double> || std::is_same_v<T, Float16> ||
                  std::is_same_v<T, BFloat16>) {
      if (problem.op == ReduceOp::kLogSumExp)
        return LogSumExp(looks, problem, x, static_cast<T*>(operands.out));
      Variance(looks, problem, x, static_cast<T*>(operands.out));
    }
  });
}

}  // namespace warpline::cpu
