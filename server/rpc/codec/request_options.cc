#include "server/rpc/codec/request_options.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/status_macros.h"
#include "proto/rules/program_rules.h"
#include "server/base/errors.h"
#include "server/rpc/codec/convert_options.h"

namespace warpline {
namespace {

absl::StatusOr<OutputPlace> ReadPlace(const std::string& field, int index, const v1::Sink& sink,
                                      const TokenValues& values) {
  OutputPlace place;
  if (sink.place_case() == v1::Sink::PLACE_NOT_SET) return place;
  place.sink = index;
  if (sink.has_region()) {
    ASSIGN_OR_RETURN(place.slice, ReadSlice(field + ".region", sink.region(), values));
  } else if (sink.has_stream()) {
    place.streamed = true;
  } else if (sink.resident().ttl_seconds() != 0) {
    ASSIGN_OR_RETURN(const Scalar ttl,
                     ScalarOf("ttl_seconds", sink.resident().ttl_seconds(), values.scalars));
    place.ttl = Planned(ttl);
  }
  return place;
}

}  // namespace

absl::StatusOr<std::vector<RequestedSink>> ReadSinks(const v1::RequestOptions& options,
                                                     const TokenValues& values) {
  constexpr int kMaxSinks = kMaxOutputs;  // of a program
  if (options.sinks_size() > kMaxSinks) {
    return FieldError("options.sinks",
                      absl::StrCat(options.sinks_size(), " are above the limit of ", kMaxSinks));
  }
  std::vector<RequestedSink> sinks;
  for (int i = 0; i < options.sinks_size(); ++i) {
    const v1::Sink& sink = options.sinks(i);
    const std::string field = absl::StrCat("options.sinks[", i, "]");
    ASSIGN_OR_RETURN(OutputPlace place, ReadPlace(field, i, sink, values));
    const bool is_second = std::any_of(sinks.begin(), sinks.end(), [&](const RequestedSink& other) {
      return other.output == sink.output();
    });
    if (is_second) {
      return FieldError(field + ".output", "a sink before it is for the same output");
    }
    sinks.push_back({.field = field, .output = sink.output(), .place = std::move(place)});
  }
  return sinks;
}

}  // namespace warpline
