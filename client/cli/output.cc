#include "client/cli/output.h"

#include <algorithm>
#include <nlohmann/json.hpp>
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

// Returns each name once, in the order of first occurrence.
std::vector<std::string> Distinct(const std::vector<std::string_view>& names) {
  std::vector<std::string> distinct;
  for (std::string_view name : names) {
    if (std::find(distinct.begin(), distinct.end(), name) == distinct.end()) distinct.emplace_back(name);
  }
  return distinct;
}

std::string Milliseconds(double seconds) { return absl::StrFormat("%.3f", seconds * 1e3); }

// A group of types that is shown as one name if all of its types are present.
struct TypeGroup {
  const char* name;
  std::vector<DType> dtypes;
};

// Formats types, such as "u8-u64 i8 f32" or "all types".
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
    // A newer server may have types that this client does not know.
    names.push_back(dtype ? std::string(Name(*dtype)) : absl::StrCat("#", first));
    left.erase(first);
  }
  return absl::StrJoin(names, " ");
}

// Shows KiB if that is more precise: limits may be small.
std::string MiB(std::int64_t bytes) {
  const bool is_small = bytes % (1 << 20) != 0 && bytes < 16 << 20;
  return is_small ? absl::StrFormat("%d KiB", bytes >> 10) : absl::StrFormat("%d MiB", bytes >> 20);
}

std::vector<std::int64_t> Sizes(const Shape& shape) {
  return {shape.dims.begin(), shape.dims.begin() + shape.rank};
}

nlohmann::ordered_json ToJson(const Timing& timing) {
  const v1::Execution& execution = timing.execution;
  nlohmann::ordered_json json = {{"op", timing.op}};
  if (timing.arrays.size() == 1 && timing.arrays[0].name.empty()) {
    // The single array of an operation needs no list.
    json["dtype"] = Name(timing.arrays[0].dtype);
    json["shape"] = Sizes(timing.arrays[0].shape);
  } else {
    json["outputs"] = nlohmann::ordered_json::array();
    for (const Timing::Array& array : timing.arrays) {
      json["outputs"].push_back(
          {{"name", array.name}, {"dtype", Name(array.dtype)}, {"shape", Sizes(array.shape)}});
    }
  }
  json["backend"] = execution.backend();
  json["device"] = execution.device();
  json["peer_bytes"] = execution.peer_bytes();
  json["variants"] = execution.variants();
  json["transports"] = Distinct(timing.ways);
  json["request_id"] = execution.request_id();
  json["wall_seconds"] = absl::ToDoubleSeconds(timing.wall);
  for (const auto& [name, seconds] : Stages(execution.stage_times())) json["stage_seconds"][name] = seconds;
  return json;
}

nlohmann::ordered_json ToJson(const TensorInfo& tensor) {
  return {{"id", tensor.id},
          {"dtype", Name(tensor.dtype)},
          {"shape", Sizes(tensor.shape)},
          {"device", tensor.device},
          {"replicas", tensor.replicas},
          {"size_bytes", tensor.bytes},
          {"missing_bytes", tensor.missing_bytes},
          {"ttl_seconds", absl::ToDoubleSeconds(tensor.ttl)}};
}

}  // namespace

std::string JsonLine(const nlohmann::ordered_json& json) {
  // Text that is not UTF-8 must not prevent the output: invalid bytes are replaced.
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + '\n';
}

std::string FormatTiming(const Timing& timing, bool json) {
  if (json) return JsonLine(ToJson(timing));
  const v1::Execution& execution = timing.execution;
  std::vector<std::string> arrays, stages;
  for (const Timing::Array& array : timing.arrays) {
    arrays.push_back(absl::StrCat(array.name, array.name.empty() ? "" : "=", std::string(Name(array.dtype)),
                                  ToString(array.shape)));
  }
  for (const auto& [name, seconds] : Stages(execution.stage_times())) {
    stages.push_back(absl::StrCat(name, " ", Milliseconds(seconds)));
  }
  if (execution.peer_bytes() > 0) {
    stages.push_back(absl::StrCat(execution.peer_bytes(), " bytes from other devices"));
  }
  return absl::StrCat(std::string(timing.op), " ", absl::StrJoin(arrays, " "), " ", execution.backend(), ":",
                      execution.device(), " ", absl::StrJoin(execution.variants(), "+"), " ",
                      absl::StrJoin(Distinct(timing.ways), "+"), " ",
                      Milliseconds(absl::ToDoubleSeconds(timing.wall)), " ms (", absl::StrJoin(stages, ", "),
                      ") id ", execution.request_id(), "\n");
}

std::string FormatTensors(std::span<const TensorInfo> tensors, bool json) {
  if (json) {
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    for (const TensorInfo& tensor : tensors) list.push_back(ToJson(tensor));
    return JsonLine(list);
  }
  std::string lines;
  std::size_t id_width = 0, array_width = 0;
  for (const TensorInfo& tensor : tensors) {
    id_width = std::max(id_width, tensor.id.size());
    array_width = std::max(array_width, Name(tensor.dtype).size() + ToString(tensor.shape).size());
  }
  for (const TensorInfo& tensor : tensors) {
    absl::StrAppendFormat(
        &lines, "%-*s  %-*s  device %d%s  %d bytes%s  %.0f s left\n", static_cast<int>(id_width), tensor.id,
        static_cast<int>(array_width), absl::StrCat(std::string(Name(tensor.dtype)), ToString(tensor.shape)),
        tensor.device,
        tensor.replicas.empty() ? "" : absl::StrCat(", replicas on ", absl::StrJoin(tensor.replicas, ",")),
        tensor.bytes,
        tensor.missing_bytes == 0 ? "" : absl::StrCat(", ", tensor.missing_bytes, " still to come"),
        absl::ToDoubleSeconds(tensor.ttl));
  }
  return lines;
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
    if (device.replica_bytes() > 0)
      absl::StrAppend(&text, ", ", MiB(device.replica_bytes()), " for replicas");
    text += '\n';
  }
  const v1::Limits& limits = info.limits();
  absl::StrAppendFormat(&text, "limits     %s a request, rank %d; %d requests and %s at one time\n",
                        MiB(limits.max_inline_bytes()), limits.max_rank(), limits.max_jobs(),
                        MiB(limits.max_job_bytes()));
  if (limits.max_upload_bytes() > 0) {
    absl::StrAppendFormat(&text, "uploads    %s in ranges, in one request\n", MiB(limits.max_upload_bytes()));
  }
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
