#include "server/rpc/codec/program_builder.h"

#include <algorithm>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "kernels/status_macros.h"
#include "proto/rules/views.h"
#include "server/base/errors.h"
#include "server/rpc/codec/convert_options.h"
#include "server/rpc/codec/request_options.h"

namespace warpline {

absl::Status ProgramBuilder::TakeOptions(const v1::RequestOptions& options, const TokenValues& values) {
  conversion_.reproducible = options.reproducible();
  conversion_.reports = options.report();
  ASSIGN_OR_RETURN(sinks_, ReadSinks(options, values));
  return absl::OkStatus();
}

Operand ProgramBuilder::AddInput(std::string field, const CheckedTensor& tensor) {
  Program& program = conversion_.program;
  const int index = program.num_inputs++;
  program.tensors.push_back(tensor.spec);
  conversion_.sources.push_back(tensor.source);
  return RowsOperand(std::move(field), index, tensor.spec.dtype, tensor.spec.shape, tensor.row_stride);
}

int ProgramBuilder::AddStep(ConvertedStep converted, const std::string& variant) {
  Program& program = conversion_.program;
  const auto next = static_cast<int>(program.tensors.size());
  if (converted.step.output < 0) converted.step.output = next;
  const int index = converted.step.output;
  if (variant != "auto") converted.step.variant = variant;
  for (const ReadScalars& scalars : converted.scalars) {
    conversion_.scalars.push_back(
        {Planned(scalars.alpha), Planned(scalars.beta), scalars.integers, scalars.integer});
  }
  program.steps.push_back(std::move(converted.step));
  if (index == next) program.tensors.push_back(std::move(converted.output));
  for (TensorSpec& further : converted.further) program.tensors.push_back(std::move(further));
  return index;
}

absl::Status ProgramBuilder::AddOutput(std::string_view field, std::string_view name, int tensor,
                                       const Shape& shape, const Limits& limits, int count_tensor) {
  Program& program = conversion_.program;
  TensorSpec& spec = program.tensors[tensor];
  spec.shape = shape;
  conversion_.output_names.emplace_back(name);
  const auto sink = std::find_if(sinks_.begin(), sinks_.end(),
                                 [&](const RequestedSink& candidate) { return candidate.output == name; });
  OutputPlace& place = conversion_.sinks.emplace_back();
  if (sink != sinks_.end()) {
    sink->used = true;
    place = std::move(sink->place);
  }
  program.outputs.push_back(tensor);
  conversion_.count_tensors.push_back(count_tensor);
  if (place.sink != PlannedOutput::kInline || count_tensor >= 0) return absl::OkStatus();
  output_bytes_ += spec.bytes;  // no overflow: each fits in 63 bits, and an error ends the sum below
  if (output_bytes_ <= static_cast<std::size_t>(limits.max_inline_bytes)) return absl::OkStatus();
  return FieldError(
      field,
      absl::StrCat(
          "the result, ", std::string(Name(spec.dtype)), " ", ToString(spec.shape), ", takes ", spec.bytes,
          " bytes",
          output_bytes_ == spec.bytes ? "" : absl::StrCat(", ", output_bytes_, " with those before it"),
          "; the limit is ", limits.max_inline_bytes, " (the server's --max-inline-bytes)"));
}

absl::Status ProgramBuilder::CheckSinksUsed() const {
  for (const RequestedSink& sink : sinks_) {
    if (sink.used) continue;
    // A name that is not ASCII is escaped, and a long one is cut.
    const std::string name = absl::Utf8SafeCEscape(sink.output.substr(0, 64));
    return FieldError(sink.field + ".output", name.empty()
                                                  ? std::string("missing; it must be one of program.outputs")
                                                  : absl::StrCat("\"", name, "\" is the name of no output"));
  }
  return absl::OkStatus();
}

}  // namespace warpline
