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

// One request, as --timings tells it.
struct Timing {
  struct Array {
    std::string name;  // empty: the only result of an operation
    DType dtype = DType::kF32;
    Shape shape;
  };
  std::string_view op;
  std::vector<Array> arrays;  // that came back
  // How operands and results travelled, one by one: "inline", "shm", "stream"; "resident" if they did not.
  std::vector<std::string_view> ways;
  absl::Duration wall;
  v1::Execution execution;
};

// One line, or one JSON object on a line of its own; with a newline at the end. Each way is named once. Times
// are in milliseconds in the line, in seconds in JSON.
std::string FormatTiming(const Timing& timing, bool json);

// Without spaces, with a newline at the end.
std::string JsonLine(const nlohmann::ordered_json& json);

// A table, or a JSON array of objects.
std::string FormatTensors(std::span<const TensorInfo> tensors, bool json);

// How far a transfer is: "put x.npy: 12.0 of 64.0 MiB, 350.5 MiB/s".
std::string FormatProgress(std::string_view what, std::size_t bytes, std::size_t total,
                           absl::Duration elapsed);

std::string FormatInfo(const v1::GetInfoResponse& info);

}  // namespace warpline::client

#endif  // WARPLINE_CLIENT_CLI_OUTPUT_H_
