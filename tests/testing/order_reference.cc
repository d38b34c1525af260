#include "tests/testing/order_reference.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "tests/testing/random_tensor.h"
#include "tests/testing/tolerance.h"

namespace warpline::testing {
namespace {

// Returns whether a comes before b in ascending order, NaN last, zeros equal.
bool Before(long double a, long double b) { return std::isnan(b) ? !std::isnan(a) : a < b; }

// The places of a row's elements in the order of the problem.
std::vector<std::int64_t> Order(const SortProblem& p, const std::vector<long double>& row) {
  std::vector<std::int64_t> places(row.size());
  std::iota(places.begin(), places.end(), 0);
  std::stable_sort(places.begin(), places.end(), [&](std::int64_t a, std::int64_t b) {
    const long double x = row[a], y = row[b];
    if (std::isnan(x) != std::isnan(y)) return std::isnan(x) == p.nan_first;
    if (std::isnan(x)) return false;
    if (x == 0 && y == 0 && !p.indices && IsFloat(p.dtype) && std::signbit(x) != std::signbit(y)) {
      return std::signbit(x) != p.descending;
    }
    return p.descending ? y < x : x < y;
  });
  return places;
}

// The positive quiet NaN of a type.
Bytes QuietNaN(DType dtype) {
  std::uint64_t bits = 0;
  if (dtype == DType::kF16) bits = 0x7e00;
  if (dtype == DType::kBF16) bits = 0x7fc0;
  if (dtype == DType::kF32) bits = 0x7fc0'0000;
  if (dtype == DType::kF64) bits = 0x7ff8'0000'0000'0000;
  Bytes bytes(SizeOf(dtype));
  std::memcpy(bytes.data(), &bits, bytes.size());
  return bytes;
}

void Append(Bytes& to, std::span<const std::byte> bytes) { to.insert(to.end(), bytes.begin(), bytes.end()); }

Bytes Elements(DType dtype, std::int64_t rows, std::int64_t count, std::uint64_t seed) {
  const std::int64_t total = rows * count;
  Bytes data =
      seed % 4 == 3 ? RandomTensor(dtype, total, seed) : RandomTensorWithSpecials(dtype, total, seed);
  if (seed % 4 == 1) {  // few different ones
    for (std::int64_t i = 0; i < total; ++i) {
      const long double value = Load(dtype, data, i);
      Store(dtype, std::isfinite(value) && value > 0 ? 1 : 0, data, i);
    }
  }
  if (seed % 4 == 2) {
    std::vector<long double> values = Unpack(dtype, data);
    for (std::int64_t row = 0; row < rows; ++row) {
      std::sort(values.begin() + row * count, values.begin() + (row + 1) * count, Before);
    }
    data = Pack(dtype, values);
  }
  return data;
}

}  // namespace

Reference Scan(const ScanProblem& p, std::span<const std::byte> x) {
  const bool integers = !IsFloat(p.dtype);
  const std::int64_t total = p.outer * p.count * p.inner;
  Reference y{p.dtype, std::vector<long double>(total), std::vector<long double>(total)};
  for (std::int64_t column = 0; column < p.outer * p.inner; ++column) {
    const std::int64_t first = column / p.inner * p.count * p.inner + column % p.inner;
    long double value = 0, magnitude = 0;
    std::uint64_t bits = p.op == ScanOp::kProd ? 1 : 0;
    if (p.op == ScanOp::kProd) value = 1;
    if (p.op == ScanOp::kMin) value = integers ? GreatestOf(p.dtype) : INFINITY;
    if (p.op == ScanOp::kMax) value = integers ? LeastOf(p.dtype) : -INFINITY;
    for (std::int64_t i = 0; i < p.count; ++i) {
      const std::int64_t at = first + (p.reverse ? p.count - 1 - i : i) * p.inner;
      const auto store = [&] { y.values[at] = value, y.magnitudes[at] = magnitude; };
      if (p.exclusive) store();
      const long double element = Load(p.dtype, x, at);
      magnitude += std::fabs(element);
      switch (p.op) {
        case ScanOp::kSum:
          value += element;
          if (integers) value = Wrapped(p.dtype, bits += BitsOf(p.dtype, x, at));
          break;
        case ScanOp::kProd:
          value *= element;
          if (integers) value = Wrapped(p.dtype, bits *= BitsOf(p.dtype, x, at));
          break;
        case ScanOp::kMin:
          if (!std::isnan(value) && (std::isnan(element) || element < value)) value = element;
          break;
        case ScanOp::kMax:
          if (!std::isnan(value) && (std::isnan(element) || element > value)) value = element;
          break;
      }
      if (!p.exclusive) store();
    }
  }
  return y;
}

std::vector<long double> Tolerance(const ScanProblem& p, const Reference& reference) {
  std::vector<long double> bounds(reference.values.size(), 0);
  if (!IsFloat(p.dtype) || p.op == ScanOp::kMin || p.op == ScanOp::kMax) return bounds;
  const long double gamma = Gamma(p.count, UnitRoundoff(p.dtype));
  // The most that products lose below the normal numbers.
  const long double lost =
      static_cast<long double>(p.count) * std::ldexp(1.0L, FormatOf(p.dtype).min_exponent);
  for (std::size_t i = 0; i < bounds.size(); ++i) {
    bounds[i] = p.op == ScanOp::kSum ? gamma * reference.magnitudes[i]
                                     : gamma * std::fabs(reference.values[i]) + lost;
  }
  return bounds;
}

std::vector<Bytes> Sort(const SortProblem& p, std::span<const std::byte> x) {
  const std::size_t size = SizeOf(p.dtype);
  Bytes values, indices;
  for (std::int64_t row = 0; row < p.rows; ++row) {
    const std::span<const std::byte> own =
        x.subspan(static_cast<std::size_t>(row * p.count) * size, static_cast<std::size_t>(p.count) * size);
    const std::vector<long double> elements = Unpack(p.dtype, own);
    const std::vector<std::int64_t> order = Order(p, elements);
    for (std::int64_t i = 0; i < p.taken; ++i) {
      const auto place = static_cast<std::size_t>(order[static_cast<std::size_t>(i)]);
      if (std::isnan(elements[place]) && !p.indices) {
        Append(values, QuietNaN(p.dtype));
      } else {
        Append(values, own.subspan(place * size, size));
      }
      const auto as_i64 = static_cast<std::int64_t>(place);
      Append(indices, std::as_bytes(std::span(&as_i64, 1)));
    }
  }
  std::vector<Bytes> results;
  if (p.values) results.push_back(values);
  if (p.indices) results.push_back(indices);
  return results;
}

void OrderBetweenKth(const SortProblem& p, std::vector<Bytes>& results) {
  if (p.kth_count == 0) return;
  for (std::int64_t row = 0; row < p.rows; ++row) {
    // The elements that all results have at each place.
    std::vector<std::vector<Bytes>> places(static_cast<std::size_t>(p.count));
    for (std::int64_t i = 0; i < p.count; ++i) {
      for (const Bytes& result : results) {
        const std::int64_t size = std::ssize(result) / (p.rows * p.count);
        const auto from = result.begin() + (row * p.count + i) * size;
        places[static_cast<std::size_t>(i)].emplace_back(from, from + size);
      }
    }
    auto begin = places.begin();
    for (const std::int64_t k : p.Kth()) {
      std::sort(begin, places.begin() + k);
      begin = places.begin() + k + 1;
    }
    std::sort(begin, places.end());
    for (std::size_t r = 0; r < results.size(); ++r) {
      const std::int64_t size = std::ssize(results[r]) / (p.rows * p.count);
      for (std::int64_t i = 0; i < p.count; ++i) {
        const Bytes& element = places[static_cast<std::size_t>(i)][r];
        std::copy(element.begin(), element.end(), results[r].begin() + (row * p.count + i) * size);
      }
    }
  }
}

Bytes Search(const SearchProblem& p, std::span<const Bytes> operands) {
  std::vector<long double> sorted = Unpack(p.dtype, operands[0]);
  if (p.has_sorter) {
    const std::vector<long double> given = sorted;
    for (std::int64_t i = 0; i < p.count; ++i) {
      const auto place = static_cast<std::int64_t>(Load(p.sorter_dtype, operands[2], i));
      sorted[i] = given[place < 0 ? place + p.count : place];
    }
  }
  Bytes places;
  for (const long double needle : Unpack(p.dtype, operands[1])) {
    const std::int64_t place = std::count_if(sorted.begin(), sorted.end(), [&](long double each) {
      return p.right ? !Before(needle, each) : Before(each, needle);
    });
    Append(places, std::as_bytes(std::span(&place, 1)));
  }
  return places;
}

std::vector<Bytes> OrderOperands(const ScanProblem& p, std::uint64_t seed) {
  const std::int64_t total = p.outer * p.count * p.inner;
  return {seed % 2 == 0 ? RandomTensor(p.dtype, total, seed)
                        : RandomTensorWithSpecials(p.dtype, total, seed)};
}

std::vector<Bytes> OrderOperands(const SortProblem& p, std::uint64_t seed) {
  return {Elements(p.dtype, p.rows, p.count, seed)};
}

std::vector<Bytes> OrderOperands(const SearchProblem& p, std::uint64_t seed) {
  std::vector<long double> values = Unpack(p.dtype, RandomTensorWithSpecials(p.dtype, p.count, seed));
  const Bytes given = Pack(p.dtype, values);
  const std::vector<long double> drawn =
      Unpack(p.dtype, RandomTensorWithSpecials(p.dtype, p.needles, seed + 1));
  std::vector<long double> needles = drawn;
  for (std::size_t i = 0; i < needles.size() && !values.empty(); i += 2)
    needles[i] = values[i % values.size()];
  if (!p.has_sorter) {
    std::stable_sort(values.begin(), values.end(), Before);
    return {Pack(p.dtype, values), Pack(p.dtype, needles)};
  }
  std::vector<std::int64_t> order(values.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::int64_t a, std::int64_t b) { return Before(values[a], values[b]); });
  std::vector<long double> sorter;
  for (std::size_t i = 0; i < order.size(); ++i) {
    sorter.push_back(static_cast<long double>(order[i] - (i % 3 == 0 ? p.count : 0)));
  }
  return {given, Pack(p.dtype, needles), Pack(p.sorter_dtype, sorter)};
}

std::vector<ScanProblem> AwkwardScans(DType dtype) {
  std::vector<ScanProblem> all;
  for (const auto& [outer, count, inner] : std::vector<std::array<std::int64_t, 3>>{
           {1, 1, 1},     {3, 7, 1},      {5, 33, 1},     {1, 1000, 1},    {2, 4097, 1},   {200, 128, 1},
           {70001, 3, 1}, {1, 100003, 1}, {3, 70001, 1},  {1, 5, 7},       {2, 33, 65},    {1, 1025, 3},
           {3, 2, 70001}, {1, 70001, 2},  {4, 0, 3},      {1, 1000003, 1}, {7, 300007, 1}, {17, 300, 256},
           {1, 8192, 16}, {1, 513, 4096}, {1000, 1025, 1}}) {
    for (const ScanOp op : kAllScanOps) {
      const std::size_t turn = all.size();
      // Each combination of flags meets each operation.
      all.push_back({.op = op,
                     .dtype = dtype,
                     .outer = outer,
                     .count = count,
                     .inner = inner,
                     .exclusive = (turn / 4 + turn) % 2 == 1,
                     .reverse = (turn / 4 + turn) % 4 > 1});
    }
  }
  return all;
}

std::vector<SortProblem> AwkwardSorts(DType dtype) {
  std::vector<SortProblem> all;
  for (const auto& [rows, count, taken] : std::vector<std::array<std::int64_t, 3>>{
           {1, 1, 1},       {3, 0, 0},        {0, 5, 5},       {3, 2, 2},         {5, 31, 31},
           {7, 33, 33},     {2, 128, 128},    {2, 255, 255},   {2, 256, 256},     {2, 257, 257},
           {3, 1000, 1000}, {2, 1024, 1024},  {2, 1025, 1025}, {2, 2049, 2049},   {1, 4096, 4096},
           {2, 4097, 4097}, {1, 8192, 8192},  {2, 8193, 8193}, {3, 20000, 20000}, {1, 100003, 100003},
           {70001, 3, 3},   {1000, 17, 17},   {4, 100, 1},     {4, 1000, 10},     {3, 5000, 50},
           {2, 8193, 128},  {1, 100003, 100}, {70001, 5, 2},   {2, 150001, 128},  {300, 300, 1},
           {3, 8192, 4096}, {1, 100003, 129}}) {
    for (int turn = 0; turn < 4; ++turn) {
      const std::size_t number = all.size();
      const int kind = static_cast<int>((number + number / 4) % 3);
      all.push_back({.dtype = dtype,
                     .rows = rows,
                     .count = count,
                     .taken = taken,
                     .descending = turn % 2 == 1,
                     .nan_first = taken < count && turn > 1,
                     .values = kind != 1,
                     .indices = kind != 0});
    }
  }
  const auto select = [&](std::int64_t rows, std::int64_t count, std::initializer_list<std::int64_t> kth) {
    for (int kind = 0; kind < 3; ++kind) {
      all.push_back({.dtype = dtype,
                     .rows = rows,
                     .count = count,
                     .taken = count,
                     .descending = all.size() % 2 == 1,
                     .values = kind != 1,
                     .indices = kind != 0,
                     .kth_count = kth.size()});
      std::copy(kth.begin(), kth.end(), all.back().kth.begin());
    }
  };
  select(1, 1, {0});
  select(70, 3, {1});
  select(3, 257, {0, 128, 256});
  select(3, 1000, {10});
  select(2, 8193, {8190, 8191, 8192});
  select(1, 100003, {0, 1, 2, 3, 4, 5, 99, 100, 4000, 50001, 50002, 50003, 60000, 70000, 100001, 100002});
  return all;
}

std::vector<SearchProblem> AwkwardSearches(DType dtype) {
  std::vector<SearchProblem> all;
  for (const auto& [count, needles] : std::vector<std::array<std::int64_t, 2>>{
           {1, 1}, {2, 5}, {31, 100}, {32, 33}, {1000, 77}, {0, 9}, {4097, 1000}}) {
    for (int turn = 0; turn < 6; ++turn) {
      all.push_back({.dtype = dtype,
                     .count = count,
                     .needles = needles,
                     .right = turn % 2 == 1,
                     .has_sorter = turn > 1,
                     .sorter_dtype = turn > 3 ? DType::kI32 : DType::kI64});
    }
  }
  return all;
}

}  // namespace warpline::testing
