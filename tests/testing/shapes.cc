#include "tests/testing/shapes.h"

#include <algorithm>
#include <numeric>
#include <sstream>

namespace warpline::testing {
namespace {

// More than the 65535 blocks that a launch grid can have in y and z.
constexpr std::int64_t kBeyondGrid = 70001;

void AddTranspose(std::vector<TransposeProblem>& to, DType dtype, const Shape& shape,
                  const std::vector<int>& perm) {
  TransposeProblem problem{dtype, shape, {}};
  for (int i = 0; i < shape.rank; ++i) problem.perm[i] = static_cast<std::int8_t>(perm[i]);
  to.push_back(problem);
}

void AddAllTransposes(std::vector<TransposeProblem>& to, DType dtype, const Shape& shape) {
  std::vector<int> perm(shape.rank);
  std::iota(perm.begin(), perm.end(), 0);
  do {
    AddTranspose(to, dtype, shape, perm);
  } while (std::next_permutation(perm.begin(), perm.end()));
}

// For ranks with too many permutations: the reversal and all rotations.
void AddSomeTransposes(std::vector<TransposeProblem>& to, DType dtype, const Shape& shape) {
  std::vector<int> perm(shape.rank);
  std::iota(perm.rbegin(), perm.rend(), 0);
  AddTranspose(to, dtype, shape, perm);
  std::reverse(perm.begin(), perm.end());
  for (int i = 0; i < shape.rank; ++i) {
    AddTranspose(to, dtype, shape, perm);
    std::rotate(perm.begin(), perm.begin() + 1, perm.end());
  }
}

struct GemmSize {
  std::int64_t m, n, k;
};

std::vector<GemmSize> GemmSizes() {
  std::vector<GemmSize> sizes = {{0, 5, 7}, {5, 0, 7}, {5, 7, 0}, {0, 0, 0}, {7, 13, 251}, {251, 7, 13}};
  for (std::int64_t size : AwkwardSizes()) {
    sizes.push_back({size, 64, 32});
    sizes.push_back({64, size, 32});
    sizes.push_back({33, 64, size});
  }
  for (std::int64_t m : {1, 33, 128}) {
    for (std::int64_t n : {1, 33, 128}) {
      for (std::int64_t k : {1, 33, 128}) sizes.push_back({m, n, k});
    }
  }
  return sizes;
}

}  // namespace

std::vector<std::int64_t> AwkwardSizes() { return {1, 2, 7, 31, 32, 33, 63, 64, 65, 127, 128, 129, 251}; }

GemmProblem WithTranspositions(GemmProblem p, bool trans_a, bool trans_b) {
  const std::int64_t padding = p.ldc - std::max<std::int64_t>(p.n, 1);
  p.trans_a = trans_a;
  p.trans_b = trans_b;
  p.lda = std::max<std::int64_t>(trans_a ? p.m : p.k, 1) + padding;
  p.ldb = std::max<std::int64_t>(trans_b ? p.k : p.n, 1) + padding;
  return p;
}

GemmProblem MakeGemm(DType dtype, std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t padding) {
  GemmProblem p;
  p.dtype = dtype;
  p.m = m;
  p.n = n;
  p.k = k;
  p.ldc = std::max<std::int64_t>(n, 1) + padding;
  return WithTranspositions(p, false, false);
}

std::vector<TransposeProblem> AwkwardTransposes(DType dtype) {
  std::vector<TransposeProblem> all;
  for (const Shape& shape : {Shape{}, Shape{0}, Shape{1}, Shape{1031}, Shape{0, 5}, Shape{3, 0, 5},
                             Shape{3, 33, 65}, Shape{32, 1, 128}, Shape{2, 64, 64}, Shape{5, 7, 129},
                             Shape{2, 3, 33, 17}, Shape{4, 1, 32, 8}, Shape{1, 1, 1, 1}}) {
    AddAllTransposes(all, dtype, shape);
  }
  for (std::int64_t rows : AwkwardSizes()) {
    for (std::int64_t cols : AwkwardSizes()) AddTranspose(all, dtype, {rows, cols}, {1, 0});
  }
  for (const Shape& shape : {Shape{3, 4, 5, 6, 7}, Shape{2, 3, 4, 5, 6, 33}, Shape{2, 3, 2, 5, 1, 7, 4},
                             Shape{2, 3, 2, 5, 3, 2, 7, 3}, Shape{1, 3, 1, 32, 1, 33, 1, 2},
                             Shape{2, 0, 2, 5, 3, 2, 7, 3}, Shape{1, 1, 1, 1, 1, 1, 1, 1}}) {
    AddSomeTransposes(all, dtype, shape);
  }
  for (const Shape& shape : {Shape{kBeyondGrid, 2, 3}, Shape{2, kBeyondGrid, 3}, Shape{2, 3, kBeyondGrid}}) {
    AddAllTransposes(all, dtype, shape);
  }
  AddTranspose(all, dtype, {1031, 517}, {1, 0});
  AddTranspose(all, dtype, {512, 1024}, {1, 0});
  return all;
}

std::vector<GemmProblem> AwkwardGemms(DType dtype) {
  std::vector<GemmProblem> all;
  const auto add = [&](const GemmSize& size, int choice) {  // `choice` has a bit for each property
    // Both an odd padding and one that keeps the alignment of rows.
    const std::int64_t padding = choice & 4 ? (choice & 8 ? 8 : 3) : 0;
    GemmProblem p = MakeGemm(dtype, size.m, size.n, size.k, padding);
    p = WithTranspositions(p, choice & 1, choice & 2);
    p.has_c = choice & 16;
    p.batch = choice & 32 ? 3 : 1;
    all.push_back(p);
  };
  for (int choice = 0; choice < 64; ++choice) {
    for (const GemmSize& size : {GemmSize{33, 65, 31}, GemmSize{32, 64, 32}}) add(size, choice);
  }
  int choice = 0;
  for (const GemmSize& size : GemmSizes()) {
    for (int i = 0; i < 3; ++i) add(size, choice = (choice + 5) % 64);  // meets all, 5 and 64 being coprime
  }
  all.push_back(MakeGemm(dtype, 257, 130, 300));  // several tiles each way
  all.push_back(MakeGemm(dtype, 256, 128, 512));
  all.push_back(MakeGemm(dtype, 1, 1, 20011));  // one long sum
  all.push_back(MakeGemm(dtype, 2, 3, 4));
  all.back().batch = kBeyondGrid;
  all.push_back(MakeGemm(dtype, kBeyondGrid, 2, 3));
  all.push_back(MakeGemm(dtype, 2, kBeyondGrid, 3));
  if (dtype == DType::kF32) {
    for (std::size_t i = 0, count = all.size(); i < count; i += 2) {
      all.push_back(all[i]);
      all.back().precision = Precision::kTf32;
    }
  }
  return all;
}

std::vector<ReduceProblem> AwkwardReductions(ReduceOp op, DType dtype) {
  std::vector<ReduceProblem> all;
  const auto add_all = [&](const Shape& shape) {  // all sets of axes but none, except at rank 0
    for (std::uint32_t mask = shape.rank == 0 ? 0 : 1; mask < 1u << shape.rank; ++mask) {
      all.push_back({op, dtype, shape, mask});
    }
  };
  for (const Shape& shape : {Shape{},
                             Shape{0},
                             Shape{0, 3},
                             Shape{3, 0},
                             Shape{4, 0, 5},
                             Shape{1023},
                             Shape{1025},
                             Shape{4097},
                             Shape{100003},
                             Shape{3, 33, 65},
                             Shape{5, 1, 129},
                             Shape{2, 64, 7},
                             Shape{3, 4, 5, 33},
                             Shape{7, 1031},
                             Shape{1031, 7},
                             Shape{521, 257},
                             Shape{kBeyondGrid, 2},
                             Shape{2, kBeyondGrid},
                             Shape{2, 3, 2, 3, 2, 3, 2, 3},
                             Shape{1, 3, 1, 32, 1, 33, 1, 2}}) {
    add_all(shape);
  }
  all.push_back({op, dtype, {2, kBeyondGrid, 2}, 0b010});
  for (std::int64_t size : AwkwardSizes()) {
    add_all({size});
    add_all({size, 65});
    add_all({65, size});
  }
  if (op != ReduceOp::kSum && op != ReduceOp::kMean) {
    std::erase_if(all, [](const ReduceProblem& p) {
      return p.ReducedCount() == 0 && p.OutputShape(false).Count() != 0;
    });
  }
  return all;
}

std::string Describe(const Problem& problem) {
  std::ostringstream text;
  text << Name(OpOf(problem)) << ' ' << Name(DTypeOf(problem));
  if (const auto* t = std::get_if<TransposeProblem>(&problem)) {
    text << ' ' << ToString(t->shape) << " perm=";
    for (int i = 0; i < t->shape.rank; ++i) text << (i == 0 ? "" : ",") << int{t->perm[i]};
  } else if (const auto* g = std::get_if<GemmProblem>(&problem)) {
    text << " m=" << g->m << " n=" << g->n << " k=" << g->k << " batch=" << g->batch << " lda=" << g->lda
         << " ldb=" << g->ldb << " ldc=" << g->ldc << (g->trans_a ? " T" : " N") << (g->trans_b ? "T" : "N")
         << (g->has_c ? " +C" : "") << (g->precision == Precision::kTf32 ? " tf32" : "");
  } else if (const auto* r = std::get_if<ReduceProblem>(&problem)) {
    text << ' ' << Name(r->op) << ' ' << ToString(r->shape) << " axes=";
    for (int axis = 0; axis < r->shape.rank; ++axis) {
      if (r->IsReduced(axis)) text << axis << ' ';
    }
  }
  return text.str();
}

}  // namespace warpline::testing
