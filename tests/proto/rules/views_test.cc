// Views, against indices that are computed one by one.
#include "proto/rules/views.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include "proto/rules/tensor_rules.h"
#include "tests/testing/status_matchers.h"

namespace warpline {
namespace {

using testing::ElementsAre;
using testing::IsOk;
using Elements = std::vector<std::int64_t>;

Operand Dense(const Shape& shape) { return RowsOperand("inputs[0]", 0, DType::kF32, shape, 0); }

// Returns the places in its tensor of the elements of a view, in row-major order.
Elements ElementsOf(const Operand& x) {
  Elements found;
  PerAxis<std::int64_t> index{};
  for (std::int64_t element = 0; element < x.shape.Count(); ++element) {
    std::int64_t at = x.offset;
    for (int axis = 0; axis < x.shape.rank; ++axis) {
      at += index[static_cast<std::size_t>(axis)] * x.strides[axis];
    }
    found.push_back(at);
    for (int axis = x.shape.rank - 1; axis >= 0; --axis) {
      if (++index[static_cast<std::size_t>(axis)] < x.shape[axis]) break;
      index[static_cast<std::size_t>(axis)] = 0;
    }
  }
  return found;
}

v1::SliceStep Slice(const std::vector<std::int64_t>& starts, const std::vector<std::int64_t>& ends,
                    const std::vector<int>& axes = {}, const std::vector<std::int64_t>& steps = {}) {
  v1::SliceStep slice;
  slice.mutable_starts()->Assign(starts.begin(), starts.end());
  slice.mutable_ends()->Assign(ends.begin(), ends.end());
  slice.mutable_axes()->Assign(axes.begin(), axes.end());
  slice.mutable_steps()->Assign(steps.begin(), steps.end());
  return slice;
}

// The indices that Python's slice takes, one by one.
Elements PythonRange(std::int64_t size, std::int64_t start, std::int64_t end, std::int64_t step) {
  const auto place = [&](std::int64_t index, std::int64_t least, std::int64_t most) {
    if (index < 0) index += size;
    return index < least ? least : index > most ? most : index;
  };
  Elements taken;
  if (step > 0) {
    for (std::int64_t i = place(start, 0, size); i < place(end, 0, size); i += step) taken.push_back(i);
  } else {
    for (std::int64_t i = place(start, -1, size - 1); i > place(end, -1, size - 1); i += step) {
      taken.push_back(i);
    }
  }
  return taken;
}

TEST(ViewsTest, ASliceTakesWhatPythonsDoes) {
  constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min(), kMost = -(kLeast + 1);
  for (const std::int64_t size : {0, 1, 5}) {
    for (const std::int64_t step : {1LL, 2LL, 7LL, -1LL, -2LL, -9LL}) {
      for (std::int64_t start = -7; start <= 7; ++start) {
        for (std::int64_t end = -7; end <= 7; ++end) {
          const auto view = SliceView(Dense({size}), Slice({start}, {end}, {}, {step}));
          ASSERT_THAT(view, IsOk());
          EXPECT_EQ(ElementsOf(*view), PythonRange(size, start, end, step))
              << size << " [" << start << ":" << end << ":" << step << "]";
        }
      }
    }
    const auto all = SliceView(Dense({size}), Slice({kLeast}, {kMost}, {}, {1}));
    EXPECT_EQ(all->shape, Shape{size});
    const auto backward = SliceView(Dense({size}), Slice({kMost}, {kLeast}, {}, {-1}));
    EXPECT_EQ(backward->shape, Shape{size});
    for (const std::int64_t step : {kLeast, kMost}) {
      const auto one = SliceView(Dense({size}),
                                 Slice({step > 0 ? kLeast : kMost}, {step > 0 ? kMost : kLeast}, {}, {step}));
      EXPECT_EQ(one->shape, Shape{std::min<std::int64_t>(size, 1)});
    }
  }
}

TEST(ViewsTest, SlicesAreOfTheAxesThatAreNamed) {
  const auto view = SliceView(Dense({3, 4, 5}), Slice({1, -1}, {3, -9}, {-1, 0}, {1, -2}));
  ASSERT_THAT(view, IsOk());
  EXPECT_EQ(view->shape, (Shape{2, 4, 2}));
  EXPECT_EQ(ElementsOf(*view)[0], 2 * 20 + 1);
  EXPECT_EQ(view->strides[0], -40);
}

// Reshapes of every view of a small array, against the order of its elements.
TEST(ViewsTest, AReshapeKeepsTheOrderOrNeedsACopy) {
  const Operand x = Dense({2, 3, 4});
  std::vector<Operand> views = {x, PermuteView(x, {0, 2, 1}), PermuteView(x, {2, 0, 1}),
                                PermuteView(x, {2, 1, 0})};
  views.push_back(*SliceView(x, Slice({0}, {4}, {2}, {2})));
  views.push_back(*SliceView(x, Slice({1}, {3}, {1})));
  views.push_back(*SliceView(x, Slice({-1, -1}, {-9, -9}, {0, 1}, {-1, -1})));
  v1::BroadcastStep wide;
  for (const int size : {2, 2, 3, 4}) wide.add_shape(size);
  views.push_back(*BroadcastView(x, wide));
  int copies = 0;
  for (const Operand& view : views) {
    const std::int64_t count = view.shape.Count();
    for (std::int64_t a = 1; a <= count; ++a) {
      for (std::int64_t b = 1; count % a == 0 && b <= count / a; ++b) {
        if (count / a % b != 0) continue;
        const auto reshaped = ReshapeView(view, {a, 1, b, count / a / b});
        if (!reshaped.has_value()) {
          ++copies;
          continue;
        }
        EXPECT_EQ(ElementsOf(*reshaped), ElementsOf(view)) << a << " " << b;
      }
    }
  }
  EXPECT_GT(copies, 0);
  EXPECT_TRUE(ReshapeView(x, {6, 4}).has_value());
  EXPECT_TRUE(ReshapeView(PermuteView(x, {2, 0, 1}), {4, 6}).has_value());
  EXPECT_FALSE(ReshapeView(PermuteView(x, {0, 2, 1}), {24}).has_value());
}

TEST(ViewsTest, DiagonalsAreThoseOfTheAxesThatAreNamed) {
  for (std::int64_t offset = -5; offset <= 5; ++offset) {
    v1::DiagonalStep step;
    step.set_offset(offset);
    const auto view = DiagonalView(Dense({3, 4}), step);
    ASSERT_THAT(view, IsOk());
    Elements want;
    for (std::int64_t row = 0; row < 3; ++row) {
      const std::int64_t column = row + offset;
      if (column >= 0 && column < 4) want.push_back(row * 4 + column);
    }
    EXPECT_EQ(ElementsOf(*view), want) << offset;
  }
  v1::DiagonalStep outer;
  outer.set_axis1(0);
  outer.set_axis2(1);
  const auto view = DiagonalView(Dense({2, 2, 3}), outer);
  EXPECT_EQ(view->shape, (Shape{3, 2}));
  EXPECT_THAT(ElementsOf(*view), ElementsAre(0, 9, 1, 10, 2, 11));
}

TEST(ViewsTest, RowsAreFoundWhateverTheStridesOfAxesOfSizeOne) {
  EXPECT_EQ(RowStrideOf(Dense({2, 3})), 3);
  EXPECT_EQ(RowStrideOf(RowsOperand("x", 0, DType::kF32, {2, 3}, 7)), 7);
  EXPECT_EQ(RowStrideOf(RowsOperand("x", 0, DType::kF32, {2, 1, 3}, 7)), 7);
  EXPECT_EQ(RowStrideOf(*SliceView(Dense({4, 6}), Slice({1, 2}, {3, 5}))), 6);
  EXPECT_EQ(RowStrideOf(*SliceView(Dense({4, 6}), Slice({2}, {3}, {1}))), 6);  // a column
  EXPECT_EQ(RowStrideOf(*SliceView(Dense({4, 6}), Slice({0}, {6}, {1}, {2}))), std::nullopt);
  EXPECT_EQ(RowStrideOf(*SliceView(Dense({4, 3, 6}), Slice({0}, {2}, {1}))), std::nullopt);
  EXPECT_EQ(RowStrideOf(Swapped(Dense({2, 3}))), std::nullopt);
  EXPECT_TRUE(IsMatrices(Swapped(Dense({5, 2, 3}))));
  EXPECT_FALSE(IsMatrices(PermuteView(Dense({5, 2, 3}), {1, 0, 2})));
  EXPECT_TRUE(ReadsAcross(Swapped(Dense({5, 2, 3}))));
  EXPECT_FALSE(ReadsAcross(PermuteView(Dense({5, 2, 3}), {1, 0, 2})));
}

TEST(ViewsTest, ACopyIsATransposeWhereOneGivesTheElements) {
  const auto transpose = CopyOf(PermuteView(Dense({5, 2, 3}), {2, 0, 1}));
  ASSERT_TRUE(std::holds_alternative<TransposeProblem>(transpose.step.problem));
  const auto& problem = std::get<TransposeProblem>(transpose.step.problem);
  EXPECT_EQ(problem.shape, (Shape{5, 2, 3}));
  EXPECT_EQ(problem.OutputShape(), (Shape{3, 5, 2}));

  const auto reversed = CopyOf(*SliceView(Dense({4, 6}), Slice({-1}, {-9}, {0}, {-1})));
  ASSERT_TRUE(std::holds_alternative<MapProblem>(reversed.step.problem));
  const auto& map = std::get<MapProblem>(reversed.step.problem);
  EXPECT_EQ(map.dtype, DType::kU32);
  EXPECT_EQ(map.inputs[0].strides, (Strides{-6, 1}));
  EXPECT_THAT(reversed.step.input_offsets, ElementsAre(18 * sizeof(float)));
}

TEST(ViewsTest, RefusesWhatMakesNoSenseAndSaysWhere) {
  const auto error = [](const absl::Status& status) {
    return std::string(status.message().data(), status.message().size());
  };
  const Operand x = Dense({2, 3});
  const auto reshape = [&](const std::vector<std::int64_t>& sizes) {
    v1::ReshapeStep step;
    step.mutable_shape()->Assign(sizes.begin(), sizes.end());
    return error(CheckReshape(x, step).status());
  };
  EXPECT_EQ(reshape({4}), "shape: does not have the 6 elements of inputs[0], [2,3]");
  EXPECT_EQ(reshape({4, -1}), "shape: does not have the 6 elements of inputs[0], [2,3]");
  EXPECT_EQ(reshape({0, -1}), "shape: does not have the 6 elements of inputs[0], [2,3]");
  EXPECT_EQ(reshape({-1, -1}), "shape: is -1 along more than one axis");
  EXPECT_EQ(reshape({-2, 3}), "shape: axis 0 has size -2; the least is 0");
  EXPECT_EQ(reshape({std::int64_t{1} << 62, std::int64_t{1} << 62}),
            "shape: f32 [4611686018427387904,4611686018427387904] takes more than 2^56 bytes");
  EXPECT_EQ(error(SliceView(x, Slice({0}, {1, 2})).status()), "ends: has 2 entries, but starts has 1");
  EXPECT_EQ(error(SliceView(x, Slice({0}, {1}, {2})).status()), "axes[0]: 2 is outside of [-2, 2)");
  EXPECT_EQ(error(SliceView(x, Slice({0, 0}, {1, 1}, {0, -2})).status()), "axes: axis 0 is named twice");
  EXPECT_EQ(error(SliceView(x, Slice({0}, {1}, {}, {0})).status()), "steps[0]: 0; it must be another number");
  EXPECT_EQ(error(SliceView(x, Slice({0, 0, 0}, {1, 1, 1})).status()),
            "starts: has 3 entries; inputs[0] has rank 2");
  v1::BroadcastStep narrow;
  narrow.add_shape(3);
  EXPECT_EQ(error(BroadcastView(x, narrow).status()),
            "shape: [3]; inputs[0] is [2,3], of which only axes of size 1 are broadcast");
  v1::DiagonalStep same;
  same.set_axis2(0);
  EXPECT_EQ(error(DiagonalView(x, same).status()), "axis2: is axis 0, as axis1 is");
  EXPECT_EQ(error(DiagonalView(Dense({6}), {}).status()), "inputs[0].shape: rank 1; at least 2 is needed");
  const Operand y = RowsOperand("inputs[1]", 1, DType::kF32, {2, 4}, 0);
  EXPECT_EQ(error(JoinedOf({&x, &y}, 0).status()),
            "inputs[1].shape: [2,4], but inputs[0] is [2,3]; they may differ along axis 0 only");
  EXPECT_EQ(JoinedOf({&x, &y}, -1)->whole.shape, (Shape{2, 7}));
  EXPECT_EQ(error(JoinedOf({&x, &y}, 2).status()), "axis: 2 is outside of [-2, 2)");
}

}  // namespace
}  // namespace warpline
