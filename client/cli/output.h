// The text that the commands print.
#ifndef WARPLINE_CLIENT_CLI_OUTPUT_H_
#define WARPLINE_CLIENT_CLI_OUTPUT_H_

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/time/time.h"
#include "kernels/dtype.h"
#include "kernels/shape.h"
#include "warpline/tensor.h"
#include "warpline/v1/warpline.pb.h"

namespace warpline::client {

// The timing of one request, for --timings.
struct Timing {
  struct Array {
    std::string name;  // empty for the only result of an operation
    DType dtype = DType::kF32;
    Shape shape;
  };
  std::string_view op;
  std::vector<Array> arrays;  // the results that came back
  // How each operand and result travelled: "inline", "shm" or "stream"; "resident" if it did not travel.
  std::vector<std::string_view> ways;
  absl::Duration wall;
  v1::Execution execution;
};

// Formats one line of text, or one line with a JSON object, with a newline at the end. Each way is named
// once. Times are in milliseconds in text, in seconds in JSON.
std::string FormatTiming(const Timing& timing, bool json);

// Formats JSON without spaces, with a newline at the end.
std::string JsonLine(const nlohmann::ordered_json& json);

// Formats a table, or a JSON array of objects.
std::string FormatTensors(std::span<const TensorInfo> tensors, bool json);

// Formats the progress of a transfer: "put x.npy: 12.0 of 64.0 MiB, 350.5 MiB/s".
std::string FormatProgress(std::string_view what, std::size_t bytes, std::size_t total,
                           absl::Duration elapsed);

std::string FormatInfo(const v1::GetInfoResponse& info);

}  // namespace warpline::client

#endif  // WARPLINE_CLIENT_CLI_OUTPUT_H_
