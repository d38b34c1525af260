#include "kernels/bench/suites/articles.h"

#include <string>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "kernels/bench/report/labels.h"

namespace warpline::bench {
namespace {

constexpr char kTransposes[] =
    "RTX 5060, XOR swizzle with float4: 84 % of the bandwidth at 8192x2048, 81 % at 8192x8192, torch 31 %. "
    "H200, 8192x8192, GB/s: naive 1078, padded 3427-3487, swizzle with float4 3516-3568, "
    "cublasSgeam 3695, memcpy 4068, torch 1106";
constexpr char kConflicts[] =
    "A column of an unpadded 32x32 tile is one bank: 32 times as many passes through shared memory. "
    "Padding or swizzling removes all of them; RTX 3090: 1.10 ms with conflicts, 0.92 ms swizzled, "
    "1.20 times as fast";
constexpr char kCopies[] =
    "A tiled transposition comes close to a copy through shared memory, and that to a plain copy; in the L2, "
    "against copies there";
constexpr char kGemm[] =
    "Each step reads less for every multiply-add: tiles, wider loads, 8x8 results a thread, loads ahead of "
    "the arithmetic; all steps together 94 % of cuBLAS (RTX A6000), 98-103 % (RTX 3090, tuned)";
constexpr char kReduce[] =
    "One launch instead of two saves 2-3 us. H200: CUB 10.6 us and torch 17.1 us as stream calls; 7.1 us for "
    "CUB's own benchmark";

constexpr const char* kGemmSteps[] = {"naive",          "shared",          "unrolled", "vectorized",
                                      "register_tiled", "double_buffered", "cublas"};

bool Is(const CaseResult& result, std::string_view op, std::string_view shape) {
  return OpName(result.problem) == op && ShapeName(result.problem) == shape;
}

// "padded 153.2 us (0.830 of memcpy); ..."
std::string RowsOf(const CaseResult& result) {
  std::string text;
  for (const Row& row : result.rows) {
    if (!row.measured()) continue;
    absl::StrAppend(&text, text.empty() ? "" : "; ", row.name, " ",
                    absl::StrFormat("%.1f us", row.timing.median * 1e6));
    if (row.baseline_ratio > 0 && row.name != result.baseline) {
      absl::StrAppendFormat(&text, " (%.3f of %s)", row.baseline_ratio, result.baseline);
    }
  }
  return text;
}

// "padded is 1.210 times as fast as shared; ...", for the rows that were measured.
std::string ConflictsOf(const CaseResult& result) {
  const Row* shared = result.Find("shared");
  std::string text;
  for (const char* name : {"padded", "swizzled"}) {
    const Row* row = result.Find(name);
    if (shared == nullptr || row == nullptr) continue;
    absl::StrAppendFormat(&text, "%s%s %.1f us, %.3f times as fast as shared (%.1f us)",
                          text.empty() ? "" : "; ", name, row->timing.median * 1e6,
                          shared->timing.median / row->timing.median, shared->timing.median * 1e6);
  }
  return text;
}

}  // namespace

std::vector<Case> ArticleCases() {
  return {{MakeTranspose(DType::kF32, 8192, 2048), {}},
          {MakeTranspose(DType::kF32, 8192, 8192), {}},
          {MakeTranspose(DType::kF32, 2048, 2048), {}},
          {MakeTranspose(DType::kF64, 2048, 2048), {}},
          {MakeGemm(DType::kF32, 2048, 2048, 2048), {std::begin(kGemmSteps), std::end(kGemmSteps)}},
          {MakeSum(DType::kF32, {std::int64_t{1} << 20}, 1), {}}};
}

Table ArticleTable(std::span<const CaseResult> results) {
  Table table{.name = "the articles' figures",
              .note = "Times are medians of this run; ratios to torch are added by torch_column.py.",
              .columns = {"case", "promise", "measured"}};
  for (const CaseResult& result : results) {
    const bool transpose = OpName(result.problem) == "transpose";
    const bool resident = Is(result, "transpose", "2048x2048");
    const std::string name = absl::StrCat(Label(result.problem), ", ", result.buffers);
    const char* promise = resident                ? kCopies
                          : transpose             ? kTransposes
                          : result.counts_flops() ? kGemm
                                                  : kReduce;
    table.rows.push_back({name, promise, RowsOf(result)});
    if (Is(result, "transpose", "8192x8192")) {
      table.rows.push_back({absl::StrCat(name, ": bank conflicts"), kConflicts, ConflictsOf(result)});
    }
  }
  return table;
}

}  // namespace warpline::bench
