// The results of a ladder: plain numbers, for the table, the JSON and the articles' figures.
#ifndef WARPLINE_KERNELS_BENCH_REPORT_RESULT_H_
#define WARPLINE_KERNELS_BENCH_REPORT_RESULT_H_

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/bench/harness/clocks.h"
#include "kernels/bench/harness/timing.h"
#include "kernels/bench/suites/cases.h"

namespace warpline::bench {

struct Row {
  std::string name;
  std::string summary;
  bool is_baseline = false;  // not of the variant table
  bool is_failure = false;   // wrong, or an error
  std::string status;        // empty: measured. Otherwise why it was not.
  Timing timing;
  double rate = 0;            // bytes or operations a second
  double roof_ratio = 0;      // of the rate to the roof; 0: no roof
  double baseline_ratio = 0;  // of the baseline's time to ours; 0: no baseline

  bool measured() const { return status.empty(); }
};

struct CaseResult {
  Problem problem;
  std::string buffers;  // "warm": one set, stays in the L2; "rotating": `slots` sets, each cold at its turn
  int slots = 1;
  double l2_times = 0;  // how many times the sets would fill the L2; tiny or huge problems have too few
  double bytes = 0, flops = 0;  // the least that must move; the arithmetic
  double roof = 0;
  std::string roof_name;
  std::string baseline;  // name of the row that ratios refer to; empty: none
  ClockSummary clocks;
  std::vector<Row> rows;

  bool counts_flops() const { return std::holds_alternative<GemmProblem>(problem); }
  // Null if there is no such measured row.
  const Row* Find(std::string_view name) const;
};

void Print(const CaseResult& result);
// Prints one line, for a case that measures the server's choice.
void PrintLine(const CaseResult& result);
nlohmann::ordered_json ToJson(const CaseResult& result);
nlohmann::ordered_json ToJson(const ClockSummary& clocks);

}  // namespace warpline::bench

#endif  // WARPLINE_KERNELS_BENCH_REPORT_RESULT_H_
