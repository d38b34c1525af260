// A small table that an experiment of the pipeline fills in.
#ifndef WARPLINE_KERNELS_BENCH_EXPERIMENTS_EXPERIMENT_H_
#define WARPLINE_KERNELS_BENCH_EXPERIMENTS_EXPERIMENT_H_

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <variant>
#include <vector>

namespace warpline::bench {

struct Experiment {
  using Cell = std::variant<std::string, double>;

  std::string name;
  std::string note;  // what is measured, how, and what was verified
  std::vector<std::string> columns;
  std::vector<std::vector<Cell>> rows;
};

void Print(const Experiment& experiment);
// The rows are objects whose keys are the columns.
nlohmann::ordered_json ToJson(const Experiment& experiment);

}  // namespace warpline::bench

#endif  // WARPLINE_KERNELS_BENCH_EXPERIMENTS_EXPERIMENT_H_
