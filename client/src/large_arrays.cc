#include "client/src/large_arrays.h"

#include <numeric>
#include <optional>

#include "client/src/streaming.h"

namespace warpline::client {
namespace {

std::size_t BytesOf(const Operand& operand) {
  // An invalid operand is reported later, when it is encoded.
  return ByteSize({.dtype = operand.dtype, .shape = operand.shape}).value_or(0);
}

}  // namespace

LargeArrays LargeArraysOf(const RunArgs& args, const ResultTypes& types, const CallOptions& options,
                          const RegionTable& regions, std::size_t stream_from_bytes) {
  LargeArrays large;
  if (stream_from_bytes == 0) return large;
  // Most calls are small, and end here.
  std::size_t most = 0, most_of_results = 0;
  for (const auto& [name, operand] : args.inputs) most += BytesOf(operand);
  for (const std::optional<ArrayType>& type : types) most_of_results += type.has_value() ? type->bytes : 0;
  if (most < stream_from_bytes && most_of_results < stream_from_bytes) return large;
  const auto is_in_region = [&](const void* data) {
    return data != nullptr && regions.Find(data, 0) != nullptr;
  };
  std::vector<std::size_t> bytes;
  for (const auto& [name, operand] : args.inputs) {
    const bool travels = operand.resident.empty() && !is_in_region(operand.data);
    bytes.push_back(travels ? BytesOf(operand) : 0);
  }
  large.operands = LargestOf(bytes, stream_from_bytes, kMaxUploads);
  large.operand_bytes = std::accumulate(bytes.begin(), bytes.end(), std::size_t{0});
  bytes.clear();
  for (std::size_t i = 0; i < types.size(); ++i) {
    const Destination to = DestinationOf(args, i);
    const bool travels = types[i].has_value() && !to.keep && to.region == nullptr && !is_in_region(to.data);
    // If a destination is too small, do not stream, so that the error is the same as without streaming.
    bytes.push_back(travels && (to.data == nullptr || to.bytes >= types[i]->bytes) ? types[i]->bytes : 0);
  }
  // The call must not free tensors before its results have arrived.
  if (options.free_after.empty()) large.results = LargestOf(bytes, stream_from_bytes);
  for (const std::size_t i : large.results) large.streamed_result_bytes += bytes[i];
  large.result_bytes = std::accumulate(bytes.begin(), bytes.end(), std::size_t{0});
  return large;
}

Destination DestinationOf(const RunArgs& args, std::size_t result) {
  return result < args.destinations.size() ? args.destinations[result] : Destination();
}

bool OverlapsOperands(const RunArgs& args) {
  for (const Destination& to : args.destinations) {
    if (to.data == nullptr) continue;
    const auto* const begin = static_cast<const std::byte*>(to.data);
    for (const auto& [name, operand] : args.inputs) {
      if (!operand.resident.empty() || operand.data == nullptr) continue;
      const auto* const data = static_cast<const std::byte*>(operand.data);
      if (data < begin + to.bytes && begin < data + ByteSize(operand.AsArray()).value_or(0)) return true;
    }
  }
  return false;
}

}  // namespace warpline::client
