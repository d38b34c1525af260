#include "kernels/bench/report/json.h"

#include <fstream>
#include <nlohmann/json.hpp>

#include "kernels/bench/harness/check.h"

namespace warpline::bench {

void WriteFile(const nlohmann::ordered_json& json, const std::string& path) {
  std::ofstream file(path, std::ios::trunc);
  file << json.dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) << '\n';
  file.close();
  if (!file) throw Failure("cannot write " + path);
}

}  // namespace warpline::bench
