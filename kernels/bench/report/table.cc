#include "kernels/bench/report/table.h"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_format.h"

namespace warpline::bench {

void Print(const Table& table) {
  std::printf("\n%s\n%s\n", table.name.c_str(), table.note.c_str());
  std::vector<std::vector<std::string>> lines = {table.columns};
  for (const auto& row : table.rows) {
    std::vector<std::string>& line = lines.emplace_back();
    for (const Table::Cell& cell : row) {
      const auto* text = std::get_if<std::string>(&cell);
      line.push_back(text != nullptr ? *text : absl::StrFormat("%.4g", std::get<double>(cell)));
    }
  }
  std::vector<std::size_t> widths(table.columns.size());
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

nlohmann::ordered_json ToJson(const Table& table) {
  nlohmann::ordered_json json;
  json["name"] = table.name;
  json["note"] = table.note;
  std::vector<nlohmann::ordered_json> rows;
  for (const auto& row : table.rows) {
    nlohmann::ordered_json& at = rows.emplace_back();
    for (std::size_t i = 0; i < row.size(); ++i) {
      std::visit([&](const auto& value) { at[table.columns[i]] = value; }, row[i]);
    }
  }
  json["rows"] = std::move(rows);
  return json;
}

}  // namespace warpline::bench
