#include "kernels/transpose/canonical.h"

namespace warpline {

Strides CanonicalTranspose::OutputStrides() const {
  Strides strides{};
  std::int64_t stride = 1;
  for (int i = rank - 1; i >= 0; --i) {
    strides[perm[i]] = stride;
    stride *= dims[perm[i]];
  }
  return strides;
}

CanonicalTranspose Canonicalize(const TransposeProblem& problem) {
  // A run is a maximal sequence of output axes that are consecutive input axes, ignoring unit axes. run_at[a]
  // is the position in the output of the run that begins with input axis a; -1: no run begins there.
  PerAxis<int> run_at{};
  PerAxis<std::int64_t> run_size{};
  Strides run_stride{};  // of the innermost axis of the run
  const Strides strides = RowMajorStrides(problem.shape, problem.row_stride);
  run_at.fill(-1);

  auto next_axis = [&](int axis) {  // the input axis after `axis`, ignoring unit axes
    do ++axis;
    while (axis < problem.shape.rank && problem.shape[axis] == 1);
    return axis;
  };

  int runs = 0;
  int previous = -1;
  for (int i = 0; i < problem.shape.rank; ++i) {
    const int axis = problem.perm[i];
    if (problem.shape[axis] == 1) continue;
    // Padded rows separate the last axis from the one before it.
    if (runs > 0 && axis == next_axis(previous) &&
        run_stride[runs - 1] == strides[axis] * problem.shape[axis]) {
      run_size[runs - 1] *= problem.shape[axis];
      run_stride[runs - 1] = strides[axis];
    } else {
      run_at[axis] = runs;
      run_stride[runs] = strides[axis];
      run_size[runs++] = problem.shape[axis];
    }
    previous = axis;
  }

  CanonicalTranspose canonical;
  for (int position : run_at) {
    if (position < 0) continue;
    canonical.perm[position] = canonical.rank;
    canonical.in_strides[canonical.rank] = run_stride[position];
    canonical.dims[canonical.rank++] = run_size[position];
  }
  return canonical;
}

CanonicalTranspose WithWiderElements(const CanonicalTranspose& transpose, std::int64_t factor) {
  CanonicalTranspose wider = transpose;
  const int inner = transpose.rank - 1;
  for (int axis = 0; axis < inner; ++axis) wider.in_strides[axis] /= factor;
  wider.dims[inner] /= factor;
  if (wider.dims[inner] > 1) return wider;
  // The axis now has one element. It is the last in both orders, so the other axes keep their positions.
  wider.dims[inner] = 0;
  wider.in_strides[inner] = 0;
  wider.perm[inner] = 0;
  wider.rank = inner;
  return wider;
}

}  // namespace warpline
