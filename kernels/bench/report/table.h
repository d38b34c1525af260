// A small table of text and numbers.
#ifndef WARPLINE_KERNELS_BENCH_REPORT_TABLE_H_
#define WARPLINE_KERNELS_BENCH_REPORT_TABLE_H_

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <variant>
#include <vector>

namespace warpline::bench {

struct Table {
  using Cell = std::variant<std::string, double>;

  std::string name;
  std::string note;  // what is measured, how, and what was verified
  std::vector<std::string> columns;
  std::vector<std::vector<Cell>> rows;
};

void Print(const Table& table);
// The rows are objects whose keys are the columns.
nlohmann::ordered_json ToJson(const Table& table);

}  // namespace warpline::bench

#endif  // WARPLINE_KERNELS_BENCH_REPORT_TABLE_H_
