// The figures of the articles that the kernels come from, beside what this GPU gives.
#ifndef WARPLINE_KERNELS_BENCH_SUITES_ARTICLES_H_
#define WARPLINE_KERNELS_BENCH_SUITES_ARTICLES_H_

#include <span>
#include <vector>

#include "kernels/bench/report/result.h"
#include "kernels/bench/report/table.h"
#include "kernels/bench/suites/cases.h"

namespace warpline::bench {

// Returns the cases that the articles measured. Rows that the tables do not have are left out.
std::vector<Case> ArticleCases();

// One line a figure: case, what the technique promises, what was measured. Ratios to torch come later, from
// torch_column.py.
Table ArticleTable(std::span<const CaseResult> results);

}  // namespace warpline::bench

#endif  // WARPLINE_KERNELS_BENCH_SUITES_ARTICLES_H_
