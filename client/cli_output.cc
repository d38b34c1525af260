#include "client/cli_output.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "client/array.h"

namespace warpline::client {
namespace {

std::vector<std::pair<const char*, double>> Stages(const v1::StageTimes& times) {
  return {{"convert", times.convert()},
          {"admission", times.admission()},
          {"queue", times.queue()},
          {"stage", times.stage()},
          {"device", times.device()}};
}

std::string Milliseconds(double seconds) { return absl::StrFormat("%.3f", seconds * 1e3); }

template <typename DataTypes>
std::string TypeNames(const DataTypes& data_types) {
  std::vector<std::string> names;
  for (int data_type : data_types) {
    const std::optional<DType> dtype = FromProto(static_cast<v1::DataType>(data_type));
    // A newer server may have types that we have not.
    names.push_back(dtype ? std::string(Name(*dtype)) : absl::StrCat("#", data_type));
  }
  return absl::StrJoin(names, " ");
}

std::string MiB(std::int64_t bytes) { return absl::StrFormat("%d MiB", bytes >> 20); }

}  // namespace

std::string JsonString(std::string_view text) {
  std::string quoted = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') {
      quoted += '\\';
      quoted += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      absl::StrAppendFormat(&quoted, "\\u%04x", c);
    } else {
      quoted += c;
    }
  }
  return quoted + '"';
}

std::string FormatTiming(const Timing& timing, bool json) {
  const v1::Execution& execution = timing.execution;
  const double wall = absl::ToDoubleSeconds(timing.wall);
  std::string text;
  if (json) {
    std::vector<std::string> variants, stages;
    for (const std::string& variant : execution.variants()) variants.push_back(JsonString(variant));
    for (const auto& [name, seconds] : Stages(execution.stage_times())) {
      stages.push_back(absl::StrFormat("\"%s\":%.9f", name, seconds));
    }
    return absl::StrFormat(
        "{\"op\":%s,\"dtype\":%s,\"shape\":%s,\"backend\":%s,\"device\":%d,\"variants\":[%s],"
        "\"request_id\":%s,\"wall_seconds\":%.9f,\"stage_seconds\":{%s}}\n",
        JsonString(timing.op), JsonString(Name(timing.dtype)), ToString(timing.shape),
        JsonString(execution.backend()), execution.device(), absl::StrJoin(variants, ","),
        JsonString(execution.request_id()), wall, absl::StrJoin(stages, ","));
  }
  absl::StrAppend(&text, std::string(timing.op), " ", std::string(Name(timing.dtype)), ToString(timing.shape),
                  " ", execution.backend(), ":", execution.device(), " ",
                  absl::StrJoin(execution.variants(), "+"), " ", Milliseconds(wall), " ms (");
  const char* separator = "";
  for (const auto& [name, seconds] : Stages(execution.stage_times())) {
    absl::StrAppend(&text, std::exchange(separator, ", "), name, " ", Milliseconds(seconds));
  }
  return absl::StrCat(text, ") id ", execution.request_id(), "\n");
}

std::string FormatInfo(const v1::GetInfoResponse& info) {
  std::string text =
      absl::StrFormat("version    %s (%s)\nbackend    %s\n", info.version(), info.revision(), info.backend());
  for (const v1::Device& device : info.devices()) {
    absl::StrAppendFormat(&text, "device %-3d %s, %d lanes", device.ordinal(), device.name(), device.lanes());
    if (!device.compute_capability().empty()) {
      absl::StrAppend(&text, ", compute capability ", device.compute_capability());
    }
    if (device.memory_bytes() > 0) absl::StrAppend(&text, ", ", MiB(device.memory_bytes()));
    text += '\n';
  }
  const v1::Limits& limits = info.limits();
  absl::StrAppendFormat(&text, "limits     %s a request, rank %d; %d requests and %s at one time\n",
                        MiB(limits.max_inline_bytes()), limits.max_rank(), limits.max_jobs(),
                        MiB(limits.max_job_bytes()));
  for (const v1::Operation& operation : info.operations()) {
    absl::StrAppendFormat(&text, "%s (%s)\n", operation.name(), TypeNames(operation.data_types()));
    std::size_t width = 0;
    for (const v1::Variant& variant : operation.variants()) width = std::max(width, variant.name().size());
    for (const v1::Variant& variant : operation.variants()) {
      absl::StrAppendFormat(&text, "  %-*s  %s (%s)%s\n", static_cast<int>(width), variant.name(),
                            variant.summary(), TypeNames(variant.data_types()),
                            variant.reproducible() ? "" : " [not reproducible]");
    }
  }
  return text;
}

}  // namespace warpline::client
