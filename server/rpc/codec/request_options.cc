#include "server/rpc/codec/request_options.h"

#include "absl/strings/str_cat.h"
#include "server/base/errors.h"

namespace warpline {

absl::Status CheckRequestOptions(const v1::RequestOptions& options) {
  for (int i = 0; i < options.sinks_size(); ++i) {
    const std::string field = absl::StrCat("options.sinks[", i, "]");
    switch (options.sinks(i).place_case()) {
      case v1::Sink::kRegion:
        return UnimplementedField(field + ".region", "this server cannot write to shared memory yet");
      case v1::Sink::kResident:
        return UnimplementedField(field + ".resident", "this server cannot keep results yet");
      case v1::Sink::PLACE_NOT_SET:
        return UnimplementedField(field, "this server returns all results inline yet; leave it out");
    }
  }
  return absl::OkStatus();
}

}  // namespace warpline
