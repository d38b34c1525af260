#include "server/rpc/result_sinks.h"

#include "absl/strings/str_cat.h"
#include "kernels/status_macros.h"
#include "server/base/errors.h"

namespace warpline {

absl::StatusOr<ResultSinks> SinksOf(const Plan& plan, const ScannedMessage& message,
                                    const TensorStore& tensors) {
  ResultSinks sinks;
  for (const PlannedOutput& output : plan.outputs) {
    if (output.is_inline()) continue;
    ResultSink& sink = sinks.emplace_back();
    if (output.slice.has_value()) {
      sink.slice.set_id(message.references[output.slice->reference].text);
      sink.slice.set_offset(output.slice->offset.Value(message.integers));
      sink.slice.set_call(output.slice->call.Value(message.integers));
      continue;
    }
    const absl::StatusOr<absl::Duration> ttl = tensors.Ttl(ValueOf(output.ttl, message.scalars));
    RETURN_IF_ERROR(
        InField(absl::StrCat("options.sinks[", output.sink, "].resident.ttl_seconds"), ttl.status()));
    sink.lease = *ttl;
  }
  return sinks;
}

}  // namespace warpline
