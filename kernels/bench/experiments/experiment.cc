#include "kernels/bench/experiments/experiment.h"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_format.h"

namespace warpline::bench {

void Print(const Experiment& experiment) {
  std::printf("\n%s\n%s\n", experiment.name.c_str(), experiment.note.c_str());
  std::vector<std::vector<std::string>> lines = {experiment.columns};
  for (const auto& row : experiment.rows) {
    std::vector<std::string>& line = lines.emplace_back();
    for (const Experiment::Cell& cell : row) {
      const auto* text = std::get_if<std::string>(&cell);
      line.push_back(text != nullptr ? *text : absl::StrFormat("%.4g", std::get<double>(cell)));
    }
  }
  std::vector<std::size_t> widths(experiment.columns.size());
  for (const auto& line : lines) {
    for (std::size_t i = 0; i < line.size(); ++i) widths[i] = std::max(widths[i], line[i].size());
  }
  for (const auto& line : lines) {
    for (std::size_t i = 0; i < line.size(); ++i)
      std::printf("%-*s  ", static_cast<int>(widths[i]), line[i].c_str());
    std::printf("\n");
  }
  std::fflush(stdout);
}

nlohmann::ordered_json ToJson(const Experiment& experiment) {
  nlohmann::ordered_json json;
  json["name"] = experiment.name;
  json["note"] = experiment.note;
  std::vector<nlohmann::ordered_json> rows;
  for (const auto& row : experiment.rows) {
    nlohmann::ordered_json& at = rows.emplace_back();
    for (std::size_t i = 0; i < row.size(); ++i) {
      std::visit([&](const auto& value) { at[experiment.columns[i]] = value; }, row[i]);
    }
  }
  json["rows"] = std::move(rows);
  return json;
}

}  // namespace warpline::bench
