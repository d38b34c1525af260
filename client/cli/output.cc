#include "client/cli/output.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "warpline/array.h"

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

// A run of types that are shown as one when all of them are there.
struct TypeGroup {
  const char* name;
  std::vector<DType> dtypes;
};

// "u8-u64 i8 f32"; "all types".
template <typename DataTypes>
std::string TypeNames(const DataTypes& data_types) {
  static const std::vector<TypeGroup> kGroups = {
      {"all types", {kAllDTypes.begin(), kAllDTypes.end()}},
      {"u8-u64", {DType::kU8, DType::kU16, DType::kU32, DType::kU64}},
      {"i8-i64", {DType::kI8, DType::kI16, DType::kI32, DType::kI64}}};
  std::set<int> left(data_types.begin(), data_types.end());
  std::vector<std::string> names;
  while (!left.empty()) {
    const int first = *left.begin();
    const auto group = std::find_if(kGroups.begin(), kGroups.end(), [&](const TypeGroup& g) {
      return ToProto(g.dtypes[0]) == first && std::all_of(g.dtypes.begin(), g.dtypes.end(), [&](DType dtype) {
               return left.count(ToProto(dtype)) > 0;
             });
    });
    if (group != kGroups.end()) {
      names.emplace_back(group->name);
      for (DType dtype : group->dtypes) left.erase(ToProto(dtype));
      continue;
    }
    const std::optional<DType> dtype = FromProto(static_cast<v1::DataType>(first));
    // A newer server may have types that we have not.
    names.push_back(dtype ? std::string(Name(*dtype)) : absl::StrCat("#", first));
    left.erase(first);
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
  std::vector<std::string> arrays, stages;
  std::vector<std::string> ways;
  for (std::string_view way : timing.ways) {
    const std::string shown = json ? JsonString(way) : std::string(way);
    if (std::find(ways.begin(), ways.end(), shown) == ways.end()) ways.push_back(shown);
  }
  if (json) {
    std::vector<std::string> variants;
    for (const std::string& variant : execution.variants()) variants.push_back(JsonString(variant));
    for (const auto& [name, seconds] : Stages(execution.stage_times())) {
      stages.push_back(absl::StrFormat("\"%s\":%.9f", name, seconds));
    }
    for (const Timing::Array& array : timing.arrays) {
      arrays.push_back(
          absl::StrFormat("\"dtype\":%s,\"shape\":%s", JsonString(Name(array.dtype)), ToString(array.shape)));
      if (!array.name.empty())
        arrays.back() = absl::StrCat("{\"name\":", JsonString(array.name), ",", arrays.back(), "}");
    }
    std::string result = absl::StrJoin(arrays, ",");
    // The one array of an operation needs no list.
    if (result.empty() || result[0] == '{') result = absl::StrCat("\"outputs\":[", result, "]");
    return absl::StrFormat(
        "{\"op\":%s,%s,\"backend\":%s,\"device\":%d,\"variants\":[%s],\"transports\":[%s],"
        "\"request_id\":%s,\"wall_seconds\":%.9f,\"stage_seconds\":{%s}}\n",
        JsonString(timing.op), result, JsonString(execution.backend()), execution.device(),
        absl::StrJoin(variants, ","), absl::StrJoin(ways, ","), JsonString(execution.request_id()), wall,
        absl::StrJoin(stages, ","));
  }
  for (const Timing::Array& array : timing.arrays) {
    arrays.push_back(absl::StrCat(array.name, array.name.empty() ? "" : "=", std::string(Name(array.dtype)),
                                  ToString(array.shape)));
  }
  for (const auto& [name, seconds] : Stages(execution.stage_times())) {
    stages.push_back(absl::StrCat(name, " ", Milliseconds(seconds)));
  }
  return absl::StrCat(std::string(timing.op), " ", absl::StrJoin(arrays, " "), " ", execution.backend(), ":",
                      execution.device(), " ", absl::StrJoin(execution.variants(), "+"), " ",
                      absl::StrJoin(ways, "+"), " ", Milliseconds(wall), " ms (", absl::StrJoin(stages, ", "),
                      ") id ", execution.request_id(), "\n");
}

std::string FormatTensors(std::span<const TensorInfo> tensors, bool json) {
  std::vector<std::string> lines;
  std::size_t id_width = 0, array_width = 0;
  for (const TensorInfo& tensor : tensors) {
    id_width = std::max(id_width, tensor.id.size());
    array_width = std::max(array_width, Name(tensor.dtype).size() + ToString(tensor.shape).size());
  }
  for (const TensorInfo& tensor : tensors) {
    const double ttl = absl::ToDoubleSeconds(tensor.ttl);
    if (json) {
      lines.push_back(absl::StrFormat(
          "{\"id\":%s,\"dtype\":%s,\"shape\":%s,\"device\":%d,\"size_bytes\":%d,\"missing_bytes\":%d,"
          "\"ttl_seconds\":%.3f}",
          JsonString(tensor.id), JsonString(Name(tensor.dtype)), ToString(tensor.shape), tensor.device,
          tensor.bytes, tensor.missing_bytes, ttl));
      continue;
    }
    lines.push_back(absl::StrFormat(
        "%-*s  %-*s  device %d  %d bytes%s  %.0f s left\n", static_cast<int>(id_width), tensor.id,
        static_cast<int>(array_width), absl::StrCat(std::string(Name(tensor.dtype)), ToString(tensor.shape)),
        tensor.device, tensor.bytes,
        tensor.missing_bytes == 0 ? "" : absl::StrCat(", ", tensor.missing_bytes, " still to come"), ttl));
  }
  if (!json) return absl::StrJoin(lines, "");
  return absl::StrCat("[", absl::StrJoin(lines, ",\n "), "]\n");
}

std::string FormatProgress(std::string_view what, std::size_t bytes, std::size_t total,
                           absl::Duration elapsed) {
  constexpr double kMiB = 1 << 20;
  const double seconds = std::max(absl::ToDoubleSeconds(elapsed), 1e-3);
  return absl::StrFormat("%s: %.1f of %.1f MiB, %.1f MiB/s", std::string(what),
                         static_cast<double>(bytes) / kMiB, static_cast<double>(total) / kMiB,
                         static_cast<double>(bytes) / kMiB / seconds);
}

namespace {

std::string Configurations(const v1::Variant& variant) {
  const auto& names = variant.configurations();
  if (names.empty()) return "";
  return absl::StrCat(" [also ", names[0],
                      names.size() > 1 ? absl::StrCat(" to ", names[names.size() - 1]) : "", "]");
}

}  // namespace

std::string FormatInfo(const v1::GetInfoResponse& info) {
  std::string text =
      absl::StrFormat("version    %s (%s)\nbackend    %s\n", info.version(), info.revision(), info.backend());
  for (const v1::Device& device : info.devices()) {
    absl::StrAppendFormat(&text, "device %-3d %s, %d lanes", device.ordinal(), device.name(), device.lanes());
    if (!device.compute_capability().empty()) {
      absl::StrAppend(&text, ", compute capability ", device.compute_capability());
    }
    if (device.memory_bytes() > 0) absl::StrAppend(&text, ", ", MiB(device.memory_bytes()));
    absl::StrAppend(&text, ", ", MiB(device.resident_bytes()), " for resident tensors");
    text += '\n';
  }
  const v1::Limits& limits = info.limits();
  absl::StrAppendFormat(&text, "limits     %s a request, rank %d; %d requests and %s at one time\n",
                        MiB(limits.max_inline_bytes()), limits.max_rank(), limits.max_jobs(),
                        MiB(limits.max_job_bytes()));
  if (limits.max_region_bytes() > 0) {
    absl::StrAppendFormat(&text, "regions    %s of shared memory\n", MiB(limits.max_region_bytes()));
  }
  for (const v1::Operation& operation : info.operations()) {
    const std::string types = TypeNames(operation.data_types());
    absl::StrAppendFormat(&text, "%s (%s)\n", operation.name(), types);
    std::size_t width = 0;
    for (const v1::Variant& variant : operation.variants()) width = std::max(width, variant.name().size());
    for (const v1::Variant& variant : operation.variants()) {
      const std::string own = TypeNames(variant.data_types());
      absl::StrAppendFormat(
          &text, "  %-*s  %s%s%s\n", static_cast<int>(width), variant.name(), variant.summary(),
          own == types ? "" : absl::StrCat(" (", own, ")"),
          absl::StrCat(variant.reproducible() ? "" : " [not reproducible]", Configurations(variant)));
    }
  }
  return text;
}

}  // namespace warpline::client
