#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>

#include "tests/testing/map_reference.h"
#include "tests/testing/random_tensor.h"

namespace warpline::testing {
namespace {

// Steps of an operand of this shape whose axes are 1 where `broadcast` has a bit. 0 padding: dense.
Strides StridesOf(const Shape& shape, std::uint32_t broadcast, std::int64_t padding) {
  Shape own = shape;
  for (int axis = 0; axis < shape.rank; ++axis) own[axis] = broadcast >> axis & 1 ? 1 : shape[axis];
  const bool pads = padding != 0 && own.rank > 0 && own[own.rank - 1] > 1;
  Strides strides = RowMajorStrides(own, pads ? own[own.rank - 1] + padding : 0);
  for (int axis = 0; axis < shape.rank; ++axis) {
    if (own[axis] == 1) strides[axis] = 0;
  }
  return strides;
}

// Puts a map together, node by node.
class MapBuilder {
 public:
  explicit MapBuilder(const Shape& shape) { map_.shape = shape; }

  std::int16_t Input(DType dtype, std::uint32_t broadcast = 0, std::int64_t padding = 0) {
    map_.inputs.push_back({dtype, StridesOf(map_.shape, broadcast, padding)});
    types_.push_back(dtype);
    return Last();
  }
  std::int16_t Constant(DType dtype) {
    map_.nodes.push_back({MapOp::kConstant, dtype, {constants_++}});
    types_.push_back(dtype);
    return Last();
  }
  std::int16_t Cast(DType dtype, std::int16_t x) {
    map_.nodes.push_back({MapOp::kCast, dtype, {x}});
    types_.push_back(dtype);
    return Last();
  }
  std::int16_t Node(MapOp op, std::int16_t x, std::int16_t y = 0, std::int16_t z = 0) {
    const DType from = types_[static_cast<std::size_t>(op == MapOp::kWhere ? y : x)];
    map_.nodes.push_back({op, ResultOf(op, from), {x, y, z}});
    for (int k = RowOf(op).operands; k < 3; ++k) map_.nodes.back().operands[static_cast<std::size_t>(k)] = 0;
    types_.push_back(map_.nodes.back().dtype);
    return Last();
  }
  // Reversed along the axes of `backward`.
  std::int16_t Reversed(DType dtype, std::uint32_t backward, std::uint32_t broadcast = 0) {
    const std::int16_t input = Input(dtype, broadcast, 1);
    Reverse(map_.inputs.back().strides, backward);
    return input;
  }
  std::int16_t Index(DType dtype, int axis) {
    map_.nodes.push_back({MapOp::kIndex, dtype, {static_cast<std::int16_t>(axis)}});
    types_.push_back(dtype);
    return Last();
  }
  // Every `step`-th element of each row of a larger result, with `more` elements at the end of its rows,
  // reversed along the axes of `backward`.
  void Spread(std::int64_t step, std::uint32_t backward, std::int64_t more = 3) {
    Shape whole = map_.shape;
    whole[whole.rank - 1] = whole[whole.rank - 1] * step + more;
    map_.out_strides = RowMajorStrides(whole);
    (*map_.out_strides)[whole.rank - 1] = step;
    Reverse(*map_.out_strides, backward);
  }
  DType TypeOf(std::int16_t value) const { return types_[static_cast<std::size_t>(value)]; }
  std::int16_t Last() const { return static_cast<std::int16_t>(types_.size() - 1); }
  MapProblem Build() {
    map_.dtype = map_.inputs.empty() ? map_.OutDType() : map_.inputs[0].dtype;
    return map_;
  }

 private:
  void Reverse(Strides& strides, std::uint32_t backward) const {
    for (int axis = 0; axis < map_.shape.rank; ++axis) {
      if (backward >> axis & 1) strides[axis] = -strides[axis];
    }
  }

  MapProblem map_;
  std::vector<DType> types_;
  std::int16_t constants_ = 0;
};

bool Takes(MapOp op, DType dtype) { return Has(RowOf(op).takes, dtype); }

bool IsExactOfComplex(MapOp op) {
  return op != MapOp::kDivide && WeightOf(op, DType::kC64) == MapWeight::kLight;
}

// Operations that give another value of the same type, exactly.
std::vector<MapOp> ExactOps(DType dtype) {
  std::vector<MapOp> ops;
  for (std::size_t i = 0; i < kMapOps.size(); ++i) {
    const auto op = static_cast<MapOp>(i);
    const MapOpRow& row = RowOf(op);
    if (row.result != MapResult::kSame || row.operands == 0 || !Takes(op, dtype)) continue;
    const bool exact = IsComplex(dtype) ? IsExactOfComplex(op) : !IsFloat(dtype) || row.max_ulp == 0;
    // The sign of a NaN, which copysign shows, is not promised.
    if (exact && op != MapOp::kWhere && op != MapOp::kCopySign) ops.push_back(op);
  }
  return ops;
}

// One node on operands of all kinds of layouts by turns.
void AppendOperations(DType dtype, std::vector<MapProblem>& all) {
  for (std::size_t i = 0; i < kMapOps.size(); ++i) {
    const auto op = static_cast<MapOp>(i);
    if (!Takes(op, dtype) || RowOf(op).operands == 0 || op == MapOp::kCast) continue;
    for (const Shape& shape : {Shape{1023}, Shape{7, 129}, Shape{3, 5, 64}}) {
      const auto turn = static_cast<std::uint32_t>(all.size());
      MapBuilder map(shape);
      const std::int16_t x = map.Input(dtype, 0, turn % 3),
                         y = RowOf(op).operands > 1 ? map.Input(dtype, turn % 4) : x;
      if (op == MapOp::kWhere) {
        map.Node(op, map.Input(DType::kBool, turn % 5), x, y);
      } else {
        map.Node(op, x, y, RowOf(op).operands > 2 ? map.Input(dtype, turn % 2) : y);
      }
      all.push_back(map.Build());
    }
  }
}

void AppendCasts(DType dtype, std::vector<MapProblem>& all) {
  for (DType to : kAllDTypes) {
    if (!Takes(MapOp::kCast, to) || (IsComplex(dtype) && !IsComplex(to) && to != DType::kBool)) continue;
    for (const Shape& shape : {Shape{2047}, Shape{5, 33}}) {
      MapBuilder map(shape);
      map.Cast(to, map.Input(dtype, 0, static_cast<std::int64_t>(all.size() % 2)));
      all.push_back(map.Build());
    }
  }
}

// x == y ? x : y of operands that are broadcast along every set of axes.
void AppendLayouts(DType dtype, std::vector<MapProblem>& all) {
  const auto add = [&](const Shape& shape, std::uint32_t x_broadcast, std::uint32_t y_broadcast) {
    MapBuilder map(shape);
    const std::int16_t x = map.Input(dtype, x_broadcast, static_cast<std::int64_t>(all.size() % 4));
    const std::int16_t y = map.Input(dtype, y_broadcast);
    map.Node(MapOp::kWhere, map.Node(MapOp::kEqual, x, y), x, y);
    all.push_back(map.Build());
  };
  for (const Shape& shape : {Shape{}, Shape{0}, Shape{3, 0}, Shape{1}, Shape{4096}, Shape{65537, 2},
                             Shape{2, 3, 2, 3, 2, 3, 2, 3}}) {
    add(shape, 0, 0);
    add(shape, 0, 1);
  }
  for (std::uint32_t x = 0; x < 8; ++x) {
    for (std::uint32_t y = 0; y < 8; ++y) add({5, 7, 33}, x, y);
  }
  for (std::uint32_t y = 0; y < 16; ++y) {
    add({3, 2, 5, 19}, 0, y);
    add({3, 2, 5, 32}, ~y & 5, y);
  }
}

// Copies of what is read backward, and to where the result is not dense, or runs backward.
void AppendViews(DType dtype, std::vector<MapProblem>& all) {
  for (const Shape& shape : {Shape{1000}, Shape{5, 64}, Shape{3, 4, 17}}) {
    for (std::uint32_t backward = 0; backward < 1u << shape.rank; ++backward) {
      MapBuilder copy(shape);
      copy.Cast(dtype, copy.Reversed(dtype, backward));
      if (backward % 3 != 0) copy.Spread(1 + backward % 2, backward / 2);
      all.push_back(copy.Build());
      MapBuilder choice(shape);
      const std::int16_t x = choice.Reversed(dtype, backward, 1), y = choice.Reversed(dtype, ~backward);
      choice.Node(MapOp::kWhere, choice.Node(MapOp::kNotEqual, x, y), x, y);
      if (backward % 2 == 1) choice.Spread(1 + backward % 3, backward);
      all.push_back(choice.Build());
    }
  }
}

// Copies of runs, to runs: of rows whose beginnings are aligned to all powers of two, and some more than fit
// into a block.
void AppendRuns(DType dtype, std::vector<MapProblem>& all) {
  for (const Shape& shape : {Shape{5, 64}, Shape{3, 7, 96}, Shape{2, 3, 2, 4, 65}, Shape{9, 8200}}) {
    for (const std::int64_t more : {1, 2, 4, 8, 16}) {
      for (const std::uint32_t broadcast : {0, 1, 2}) {
        MapBuilder copy(shape);
        copy.Cast(dtype, copy.Input(dtype, broadcast, more % 5));
        copy.Spread(1, broadcast == 2 ? 1 : 0, more);
        all.push_back(copy.Build());
      }
    }
  }
}

// Positions along each axis, with an input and without any.
void AppendIndices(DType dtype, std::vector<MapProblem>& all) {
  for (const Shape& shape : {Shape{1}, Shape{1000}, Shape{6, 50}, Shape{3, 1, 40, 2}}) {
    for (int axis = 0; axis < shape.rank; ++axis) {
      for (const DType type : {DType::kI32, DType::kI64}) {
        MapBuilder below(shape);  // the lower triangle, of matrices
        const std::int16_t x = below.Input(dtype, static_cast<std::uint32_t>(axis) & 1);
        const std::int16_t rows = below.Index(type, 0), columns = below.Index(type, axis);
        below.Node(MapOp::kWhere, below.Node(MapOp::kGreaterEqual, rows, columns), x, below.Constant(dtype));
        all.push_back(below.Build());
      }
      MapBuilder made(shape);
      made.Node(MapOp::kAdd,
                made.Node(MapOp::kMultiply, made.Index(DType::kI64, axis), made.Constant(DType::kI64)),
                made.Index(DType::kI64, 0));
      all.push_back(made.Build());
    }
  }
  MapBuilder filled({700});
  filled.Constant(dtype);
  all.push_back(filled.Build());
  MapBuilder cast({7, 100});
  cast.Cast(dtype, cast.Constant(dtype));
  cast.Spread(2, 0);
  all.push_back(cast.Build());
}

// The maximum numbers of inputs, nodes and live values.
void AppendLarge(DType dtype, std::vector<MapProblem>& all) {
  MapBuilder inputs({3, 77});
  for (int i = 0; i < kMaxMapInputs; ++i) inputs.Input(dtype, static_cast<std::uint32_t>(i % 4), i % 3);
  std::int16_t chosen = 0;
  for (std::int16_t i = 1; i < kMaxMapInputs; ++i) {
    chosen = inputs.Node(MapOp::kWhere, inputs.Node(MapOp::kEqual, chosen, i), i, chosen);
  }
  all.push_back(inputs.Build());

  // Each node of the first half is read only in the second half.
  MapBuilder live({1500});
  const std::int16_t x = live.Input(dtype), y = live.Input(dtype);
  const std::vector<MapOp> ops = ExactOps(dtype);
  std::vector<std::int16_t> values;
  for (int i = 0; i < 85; ++i) {
    const MapOp op = ops[static_cast<std::size_t>(i) % ops.size()];
    values.push_back(live.Node(op, i % 2 == 0 ? x : y, i % 3 == 0 ? x : y, x));
  }
  std::int16_t last = values[0];
  for (std::size_t i = 1; i < values.size(); ++i) {
    last = live.Node(MapOp::kWhere, live.Node(MapOp::kEqual, values[i], last), values[i], last);
  }
  all.push_back(live.Build());
}

// Expressions of exact operations and casts, drawn at random.
void AppendRandom(DType dtype, std::vector<MapProblem>& all) {
  std::mt19937 random(static_cast<unsigned>(dtype) + 1);
  const auto below = [&](std::size_t count) { return static_cast<std::int16_t>(random() % count); };
  for (int i = 0; i < 40; ++i) {
    MapBuilder map(i % 2 == 0 ? Shape{4, 123} : Shape{777});
    std::vector<std::int16_t> unread = {map.Input(dtype, random() % 3, random() % 2)};
    for (int k = below(4); k > 0; --k) unread.push_back(map.Input(dtype, random() % 3));
    std::vector<std::int16_t> alike = unread;  // values of the type
    for (int k = below(20); k > 0; --k) {
      const std::vector<MapOp> ops = ExactOps(dtype);
      const MapOp op = ops[static_cast<std::size_t>(below(ops.size()))];
      const auto take = [&] { return alike[static_cast<std::size_t>(below(alike.size()))]; };
      alike.push_back(random() % 4 == 0 ? map.Constant(dtype) : map.Node(op, take(), take(), take()));
    }
    // Everything is read: chosen by turns, through another type now and then.
    std::int16_t last = alike[0];
    for (const std::int16_t value : alike) {
      std::int16_t condition = map.Node(MapOp::kNotEqual, value, last);
      if (random() % 3 == 0) condition = map.Cast(DType::kBool, map.Cast(DType::kI16, condition));
      last = map.Node(MapOp::kWhere, condition, value, last);
    }
    if (random() % 2 == 0) map.Node(MapOp::kEqual, last, alike[0]);
    all.push_back(map.Build());
  }
}

// Several results of one pass: an input, a constant, what later nodes read and what they do not, of several
// types.
void AppendSeveralResults(DType dtype, std::vector<MapProblem>& all) {
  std::mt19937 random(static_cast<unsigned>(dtype) + 100);
  const std::vector<MapOp> ops = ExactOps(dtype);
  for (int i = 0; i < 20; ++i) {
    MapBuilder map(i % 2 == 0 ? Shape{5, 131} : Shape{2049});
    const std::int16_t x = map.Input(dtype, random() % 3), y = map.Input(dtype);
    map.Cast(dtype, x);
    map.Constant(dtype);
    map.Cast(DType::kBool, y);
    constexpr std::int16_t kUnread = 3;  // nodes
    std::int16_t last = x;
    for (int k = 0; k < 5; ++k) last = map.Node(ops[random() % ops.size()], last, y, x);
    if (i % 4 == 3) map.Cast(dtype, last);  // changes nothing, so two results may be one value
    MapProblem problem = map.Build();
    for (std::int16_t node = 0; node < 7; ++node) {
      if (node < kUnread || i == 0 || random() % 2 == 0) problem.further.push_back(node);
    }
    all.push_back(std::move(problem));
  }
}

}  // namespace

std::vector<MapProblem> AwkwardMaps(DType dtype) {
  std::vector<MapProblem> all;
  AppendOperations(dtype, all);
  AppendCasts(dtype, all);
  AppendLayouts(dtype, all);
  AppendViews(dtype, all);
  AppendRuns(dtype, all);
  AppendIndices(dtype, all);
  AppendLarge(dtype, all);
  AppendRandom(dtype, all);
  AppendSeveralResults(dtype, all);
  return all;
}

Bytes MapOperand(const MapProblem& problem, std::size_t index, std::uint64_t seed) {
  const DType dtype = problem.inputs[index].dtype;
  const std::int64_t count = StorageElements(problem.shape, problem.inputs[index].strides);
  const MapOp op = problem.nodes.back().op;
  if (IsComplex(dtype)) {
    // Complex quotients of infinities and zeros are not promised; for functions see FollowsAnnexG.
    const auto parts = IsExactOfComplex(op) ? RandomTensorWithSpecials : RandomTensor;
    return parts(PartOf(dtype), 2 * count, seed + index);
  }
  if (op == MapOp::kCast) return RandomWideTensor(dtype, count, seed + index);
  Bytes data = RandomTensorWithSpecials(dtype, count, seed + index);
  std::mt19937_64 random(seed + 7 * index);
  for (std::int64_t i = 0; i < count; ++i) {
    if (IsFloat(dtype)) {
      // Up to 64, which functions of both signs take to overflow and back.
      Store(dtype, std::ldexp(Load(dtype, data, i), static_cast<int>(random() % 7)), data, i);
    } else if (IsInteger(dtype) && random() % 2 == 0) {
      // Small numbers: shifts, powers, divisors, and operands that are equal.
      Store(dtype, static_cast<long double>(random() % 7) - (IsSigned(dtype) ? 2 : 0), data, i);
    }
  }
  return data;
}

std::vector<StepScalars> MapScalars(const MapProblem& problem, std::uint64_t seed) {
  std::vector<StepScalars> all;
  std::mt19937_64 random(seed);
  for (int i = 0; i < problem.ConstantCount(); ++i) {
    const double value = static_cast<double>(random() % 64) / 8 - 2;
    StepScalars& scalars = all.emplace_back();
    scalars.alpha_f64 = value, scalars.alpha_f32 = static_cast<float>(value);
    scalars.beta_f64 = -value, scalars.beta_f32 = static_cast<float>(-value);
    scalars.alpha_i64 = static_cast<std::int64_t>(random() % 100);
  }
  return all;
}

}  // namespace warpline::testing
