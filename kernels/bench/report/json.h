// The file of all numbers that a run writes.
#ifndef WARPLINE_KERNELS_BENCH_REPORT_JSON_H_
#define WARPLINE_KERNELS_BENCH_REPORT_JSON_H_

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace warpline::bench {

// Writes `json` to `path`. Values that JSON has no number for (infinities, NaN) are null in the file. Throws
// Failure if it cannot write.
void WriteFile(const nlohmann::ordered_json& json, const std::string& path);

}  // namespace warpline::bench

#endif  // WARPLINE_KERNELS_BENCH_REPORT_JSON_H_
