#include "tests/testing/shapes.h"

#include <algorithm>
#include <numeric>
#include <sstream>

namespace warpline::testing {
namespace {

void AddTranspose(std::vector<TransposeProblem>& to, DType dtype, const Shape& shape,
                  const std::vector<int>& perm) {
  TransposeProblem problem{dtype, shape, {}};
  for (int i = 0; i < shape.rank; ++i) problem.perm[i] = static_cast<std::int8_t>(perm[i]);
  problem.row_stride = PaddedRow(shape, to.size());
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

std::int64_t PaddedRow(const Shape& shape, std::size_t number) {
  if (number % 3 != 1) return 0;
  if (shape.rank == 0) return 1;  // the server gives scalars the row stride of their one row
  return shape[shape.rank - 1] + (number % 2 == 0 ? 3 : 16);
}

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
  for (const Shape& shape : {Shape{}, Shape{}, Shape{0}, Shape{1}, Shape{1031}, Shape{0, 5}, Shape{3, 0, 5},
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
  AddAllTransposes(all, dtype, {4, 8, 3, 12, 5});
  // Whole 16-byte vectors of small elements that do not fill tiles.
  for (std::int64_t rows : {4, 12, 36, 68, 100, 132}) {
    for (std::int64_t cols : {4, 12, 36, 68, 100, 132}) AddTranspose(all, dtype, {rows, cols}, {1, 0});
  }
  for (const Shape& shape : {Shape{5, 36, 68}, Shape{3, 20, 2, 44}}) AddAllTransposes(all, dtype, shape);
  for (std::int64_t narrow = 2; narrow < 10; ++narrow) {
    AddTranspose(all, dtype, {narrow, 10007}, {1, 0});
    AddTranspose(all, dtype, {10007, narrow}, {1, 0});
    AddTranspose(all, dtype, {narrow, 10008}, {1, 0});
    AddTranspose(all, dtype, {10008, narrow}, {1, 0});
  }
  // Pixels whose planes are whole vectors, of which the last CTA has one.
  for (std::int64_t channels : {2, 3, 4, 8, 16}) {
    constexpr std::int64_t kPixels = 8208;
    all.push_back({dtype, {channels, kPixels}, {1, 0}});
    all.push_back({dtype, {kPixels, channels}, {1, 0}});
    all.push_back({dtype, {2, channels, kPixels}, {0, 2, 1}});
    all.push_back({dtype, {2, kPixels, channels}, {0, 2, 1}});
    all.push_back({dtype, {channels, kPixels}, {1, 0}, /*row_stride=*/kPixels + 16});
  }
  // Any number of channels, unaligned planes, and ends that fill none.
  for (std::int64_t channels : {23, 62, 131}) {
    constexpr std::int64_t kPixels = 2052;
    all.push_back({dtype, {channels, kPixels - 1}, {1, 0}});
    all.push_back({dtype, {kPixels, channels}, {1, 0}});
    all.push_back({dtype, {kPixels - 1, channels}, {1, 0}});
    all.push_back({dtype, {2, channels, kPixels}, {0, 2, 1}});
    all.push_back({dtype, {2, kPixels, channels}, {0, 2, 1}});
    all.push_back({dtype, {3, channels, kPixels - 1}, {0, 2, 1}});
    all.push_back({dtype, {3, kPixels - 1, channels}, {0, 2, 1}});
    all.push_back({dtype, {channels, kPixels - 1}, {1, 0}, /*row_stride=*/kPixels + 2});
  }
  for (std::int64_t channels : {188, 190}) {
    all.push_back({dtype, {channels, 1031}, {1, 0}});
    all.push_back({dtype, {1031, channels}, {1, 0}});
  }
  // Few channels in unaligned matrices: pieces of 512 words, and few of a warp's.
  all.push_back({dtype, {3, 5, 9863}, {0, 2, 1}});
  all.push_back({dtype, {3, 9863, 5}, {0, 2, 1}});
  all.push_back({dtype, {3, 5, 515}, {0, 2, 1}});
  // There are so many channels that threads share those of a word.
  for (std::int64_t pixels : {2048, 2056}) {
    all.push_back({dtype, {pixels, 92}, {1, 0}});
    all.push_back({dtype, {92, pixels}, {1, 0}});
  }
  // Sides of several axes, of which tiles have the end of one and the beginning of the next.
  for (const Shape& shape : {Shape{13, 18, 7, 300}, Shape{40, 11, 26, 31}}) {
    AddSomeTransposes(all, dtype, shape);
  }
  all.push_back({dtype, {2, 10, 25, 3, 125}, {0, 4, 3, 2, 1}});
  all.push_back({dtype, {10, 25, 2, 3, 125}, {4, 3, 2, 1, 0}});
  all.push_back({dtype, {2, 10, 25, 3, 125}, {0, 4, 3, 2, 1}, /*row_stride=*/127});
  all.push_back({dtype, {2, 67, 5, 31, 9}, {0, 4, 3, 2, 1}});
  all.push_back({dtype, {64, 8, 80, 48}, {3, 2, 1, 0}});
  // Rows that stay rows, of which vectors of the result reach into the next one, along several axes.
  for (const Shape& shape : {Shape{3, 4, 5, 61}, Shape{2, 3, 2, 3, 58}}) AddSomeTransposes(all, dtype, shape);
  all.push_back({dtype, {3, 4, 5, 61}, {2, 1, 0, 3}, /*row_stride=*/67});
  all.push_back({dtype, {2, 3, 2, 3, 58}, {3, 1, 0, 2, 4}});
  // Batches of matrices that fill tiles and whose rows are unaligned.
  for (const Shape& shape : {Shape{3, 127, 131}, Shape{2, 129, 3, 254}}) AddAllTransposes(all, dtype, shape);
  AddTranspose(all, dtype, {997, 1009}, {1, 0});
  AddTranspose(all, dtype, {1031, 517}, {1, 0});
  AddTranspose(all, dtype, {512, 1024}, {1, 0});
  return all;
}

std::vector<TransposeProblem> SmallMatrices(DType dtype) {
  constexpr std::int64_t kLargest = 64;
  std::vector<TransposeProblem> all;
  for (std::int64_t rows = 1; rows <= kLargest; ++rows) {
    for (std::int64_t cols = 1; cols <= kLargest; ++cols) {
      all.push_back({dtype, {rows, cols}, {1, 0}});
    }
  }
  return all;
}

namespace {

// Operands broadcast along some axes and not along others, in ways that one stride can and cannot express.
std::vector<GemmBatch> AwkwardBatches() {
  std::vector<GemmBatch> all(5);
  all[0].Append(3, 1, 0, 1);                             // one B for all
  all[1].Append(3, 0, 1, 0);                             // one A and one C for all
  all[2].Append(2, 0, 3, 1), all[2].Append(3, 1, 1, 0);  // A repeats, C too, along different axes
  all[3].Append(2, 1, 0, 3), all[3].Append(3, 0, 1, 1);  // every A with every B
  all[4].Append(2, 0, 1, 0), all[4].Append(2, 1, 0, 1), all[4].Append(2, 0, 2, 2);
  return all;
}

// All that the end of a product can do, by turns.
void VaryEpilogue(GemmProblem& p, std::size_t number) {
  const bool half = p.dtype == DType::kF16 || p.dtype == DType::kBF16;
  if (half && number % 4 == 2) p.out_dtype = DType::kF32;
  if (p.dtype == DType::kI8 && number % 4 == 2) p.out_dtype = DType::kI8;
  if (!IsFloat(p.dtype)) return;
  p.has_bias = number % 5 == 1 || number % 5 == 3;
  if (number % 7 == 2 || number % 7 == 3) p.activation = Activation::kRelu;
  if (number % 7 == 5) p.activation = Activation::kGelu;
}

}  // namespace

std::vector<GemmProblem> AwkwardGemms(DType dtype) {
  std::vector<GemmProblem> all;
  const auto add = [&](const GemmSize& size, int choice) {  // `choice` has a bit for each property
    // Both an odd padding and one that keeps the alignment of rows.
    const std::int64_t padding = choice & 4 ? (choice & 8 ? 8 : 3) : 0;
    GemmProblem p = MakeGemm(dtype, size.m, size.n, size.k, padding);
    p = WithTranspositions(p, choice & 1, choice & 2);
    p.has_c = choice & 16;
    if (choice & 32) p.batch = GemmBatch::Dense(3);
    VaryEpilogue(p, all.size());
    all.push_back(p);
  };
  for (int choice = 0; choice < 64; ++choice) {
    for (const GemmSize& size : {GemmSize{33, 65, 31}, GemmSize{32, 64, 32}, GemmSize{25, 48, 21}}) {
      add(size, choice);
    }
  }
  for (const GemmBatch& batch : AwkwardBatches()) {
    for (int choice = 0; choice < 32; choice += 3) {
      add({17, 24, 40}, choice);
      all.back().batch = batch;
    }
  }
  int choice = 0;
  for (const GemmSize& size : GemmSizes()) {
    for (int i = 0; i < 3; ++i) add(size, choice = (choice + 5) % 64);  // meets all, 5 and 64 being coprime
  }
  // Rows that are multiples of 16 bytes: several tiles each way, and more of them than a GPU has
  // multiprocessors.
  for (int trans = 0; trans < 4; ++trans) {
    add({136, 264, 328}, trans);
    add({8, 16, 264}, trans);
    all.back().batch = GemmBatch::Dense(300);
  }
  // Rows that begin at multiples of 16 bytes and end within 16, for loads that are cut there.
  const auto rounded = [](std::int64_t columns) { return (columns + 15) / 16 * 16; };
  for (int trans = 0; trans < 4; ++trans) {
    for (const std::int64_t more : {0, 16}) {
      add({133, 261, 45}, trans);
      GemmProblem& p = all.back();
      p.lda = rounded(p.trans_a ? p.m : p.k) + more;
      p.ldb = rounded(p.trans_b ? p.k : p.n) + more;
    }
  }
  if (SizeOf(dtype) == 2) {
    all.push_back(MakeGemm(dtype, 2200, 520, 8));  // more than 16 tiles down, and several across
    // Rows of D that begin at each element of a word, in whole tiles and in those at its end, of operands
    // whose copies have long rows.
    for (int trans = 0; trans < 4; ++trans) {
      add({523, 1031, 9}, trans);
      all.back().out_dtype.reset();
    }
    add({16, 262, 8}, 0);
    all.back().out_dtype.reset();
    // The same with C, and more tiles than a GPU has multiprocessors.
    GemmProblem many = MakeGemm(dtype, 136, 263, 80);
    many.ldb = rounded(many.n);
    many.has_c = many.has_bias = true;
    many.batch = GemmBatch::Dense(80);
    all.push_back(many);
  }
  all.push_back(MakeGemm(dtype, 257, 130, 300));  // several tiles each way
  all.push_back(MakeGemm(dtype, 256, 128, 512));
  all.push_back(MakeGemm(dtype, 1, 1, 20011));  // one long sum
  all.push_back(MakeGemm(dtype, 2, 3, 4));
  all.back().batch = GemmBatch::Dense(kBeyondGrid);
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

std::vector<MapProblem> AwkwardPairs(PairOp op, DType dtype) {
  std::vector<PairMap> all;
  const auto add = [&](const Shape& shape, std::uint32_t broadcast_x, std::uint32_t broadcast_y) {
    PairMap p{.op = op, .dtype = dtype, .out_dtype = dtype, .shape = shape};
    const auto strides = [&](std::uint32_t broadcast, std::int64_t row_stride) {
      Shape own = shape;
      for (int axis = 0; axis < shape.rank; ++axis) own[axis] = broadcast >> axis & 1 ? 1 : shape[axis];
      if (RowSize(own) == 1) row_stride = 0;
      Strides result = RowMajorStrides(own, row_stride);
      for (int axis = 0; axis < shape.rank; ++axis) result[axis] = own[axis] == 1 ? 0 : result[axis];
      return result;
    };
    p.x_strides = strides(broadcast_x, PaddedRow(shape, all.size()));
    if (ReadsY(op)) p.y_strides = strides(broadcast_y, 0);
    all.push_back(p);
  };
  const Shape shapes[] = {
      {}, {0}, {3, 0}, {1}, {1023}, {7, 129}, {3, 33, 65}, {2, 3, 2, 3, 2, 3, 2, 3}, {kBeyondGrid}};
  for (int repeat = 0; repeat < 3; ++repeat) {  // meets both kinds of padding
    for (const Shape& shape : shapes) add(shape, 0, 0);
  }
  if (ReadsY(op)) {
    for (std::uint32_t x = 0; x < 8; ++x) {
      for (std::uint32_t y = 0; y < 8; ++y) add({5, 7, 33}, x & ~y, y);
    }
    for (std::uint32_t y = 0; y < 16; ++y) {
      add({3, 2, 5, 19}, 0, y);
      add({3, 2, 5, 32}, ~y & 5, y);
    }
  }
  std::vector<MapProblem> maps;
  if (op != PairOp::kCast) {
    for (const PairMap& pair : all) maps.push_back(ToMap(pair));
    return maps;
  }
  for (DType to : kAllDTypes) {
    if (!IsReal(to)) continue;
    for (std::size_t i = 0; i < all.size(); i += 1 + maps.size() % 4) {
      PairMap cast = all[i];
      cast.out_dtype = to;
      maps.push_back(ToMap(cast));
    }
  }
  return maps;
}

namespace {

// Describes those of the problems that Describe does not know itself.
template <typename ProblemT>
void DescribeMore(const ProblemT&, std::ostringstream&) {}

void DescribeStrides(const char* name, const Strides& strides, int rank, std::ostringstream& text) {
  text << ' ' << name << '@';
  for (int i = 0; i < rank; ++i) text << (i == 0 ? "" : ",") << strides[i];
}
void DescribeMore(const TakeProblem& p, std::ostringstream& text) {
  text << ' ' << Name(p.index_dtype) << ' ' << ToString(p.shape) << " axis=" << p.axis_size << '@'
       << p.axis_stride;
  DescribeStrides("x", p.x_strides, p.shape.rank, text);
  DescribeStrides("indices", p.index_strides, p.shape.rank, text);
}
void DescribeMore(const PutProblem& p, std::ostringstream& text) {
  text << ' ' << Name(p.index_dtype) << ' ' << ToString(p.shape) << " axis=" << p.axis << ' '
       << ToString(p.index_shape);
  DescribeStrides("indices", p.index_strides, p.shape.rank, text);
  DescribeStrides("values", p.value_strides, p.shape.rank, text);
}
void DescribeMore(const CompressProblem& p, std::ostringstream& text) {
  text << ' ' << p.rows << 'x' << p.width;
}
void DescribeMore(const ScanProblem& p, std::ostringstream& text) {
  text << ' ' << Name(p.op) << ' ' << p.outer << 'x' << p.count << 'x' << p.inner
       << (p.exclusive ? " exclusive" : "") << (p.reverse ? " reverse" : "");
}
void DescribeMore(const SortProblem& p, std::ostringstream& text) {
  text << ' ' << p.rows << 'x' << p.count << " taken=" << p.taken << (p.descending ? " descending" : "")
       << (p.nan_first ? " nan_first" : "") << (p.values ? " values" : "") << (p.indices ? " indices" : "");
  for (const std::int64_t k : p.Kth()) text << " kth=" << k;
}
void DescribeMore(const SearchProblem& p, std::ostringstream& text) {
  text << ' ' << p.count << " needles=" << p.needles << (p.right ? " right" : "")
       << (p.has_sorter ? " sorter" : "");
}

}  // namespace

std::string Describe(const Problem& problem) {
  std::ostringstream text;
  text << Name(OpOf(problem)) << ' ' << Name(DTypeOf(problem));
  if (const auto* t = std::get_if<TransposeProblem>(&problem)) {
    text << ' ' << ToString(t->shape) << " perm=";
    for (int i = 0; i < t->shape.rank; ++i) text << (i == 0 ? "" : ",") << int{t->perm[i]};
    text << " rows=" << t->row_stride;
  } else if (const auto* g = std::get_if<GemmProblem>(&problem)) {
    text << " m=" << g->m << " n=" << g->n << " k=" << g->k << " batch=" << g->batch.Count()
         << " lda=" << g->lda << " ldb=" << g->ldb << " ldc=" << g->ldc << (g->trans_a ? " T" : " N")
         << (g->trans_b ? "T" : "N") << (g->has_c ? " +C" : "") << (g->has_bias ? " +bias" : "")
         << (g->precision == Precision::kTf32 ? " tf32" : "")
         << " activation=" << static_cast<int>(g->activation) << " out=" << Name(g->OutDType());
  } else if (const auto* r = std::get_if<ReduceProblem>(&problem)) {
    text << ' ' << Name(r->op) << ' ' << ToString(r->shape) << " axes=";
    for (int axis = 0; axis < r->shape.rank; ++axis) {
      if (r->IsReduced(axis)) text << axis << ' ';
    }
    text << "rows=" << r->row_stride << " ddof=" << r->ddof << " out=" << Name(r->OutDType());
  } else if (const auto* m = std::get_if<MapProblem>(&problem)) {
    text << ' ' << ToString(m->shape);
    for (const MapInput& input : m->inputs) {
      text << ' ' << Name(input.dtype) << '@';
      for (int i = 0; i < m->shape.rank; ++i) text << (i == 0 ? "" : ",") << input.strides[i];
    }
    text << " out@";
    for (int i = 0; i < m->shape.rank; ++i) text << (i == 0 ? "" : ",") << m->OutStrides()[i];
    for (const MapNode& node : m->nodes) {
      text << ' ' << Name(node.op) << ':' << Name(node.dtype) << '(' << node.operands[0] << ','
           << node.operands[1] << ',' << node.operands[2] << ')';
    }
  }
  std::visit([&](const auto& p) { DescribeMore(p, text); }, problem);
  return text.str();
}

}  // namespace warpline::testing
