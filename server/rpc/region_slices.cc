#include "server/rpc/region_slices.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "absl/strings/str_cat.h"
#include "kernels/status_macros.h"
#include "server/base/errors.h"

namespace warpline {
namespace {

absl::StatusOr<Buffer> UseSlice(const PlannedSlice& slice, const TensorSpec& spec,
                                const ScannedMessage& message, OwnerId owner, RegionStore& regions) {
  const std::int64_t offset = slice.offset.Value(message.integers);
  if (offset % static_cast<std::int64_t>(SizeOf(spec.dtype)) != 0) {
    return FieldError(slice.field + ".offset", absl::StrCat(offset, " is no multiple of the element size, ",
                                                            SizeOf(spec.dtype), " bytes"));
  }
  const std::string& id = message.references[slice.reference].text;
  absl::StatusOr<Buffer> used =
      regions.Use(owner, id, offset, spec.bytes, slice.call.Value(message.integers));
  if (used.ok()) return used;
  const std::string_view text(used.status().message().data(), used.status().message().size());
  switch (used.status().code()) {
    case absl::StatusCode::kOutOfRange:
      return FieldError(slice.field + ".offset", text);
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kAborted:
      return InField(slice.field + ".call", used.status());
    default:
      return InField(slice.field + ".id", used.status());
  }
}

bool Overlap(std::span<const std::byte> a, std::span<const std::byte> b) {
  return !a.empty() && !b.empty() && a.data() < b.data() + b.size() && b.data() < a.data() + a.size();
}

const PlannedSlice& SliceOf(const Plan& plan, const Binding& binding) {
  if (binding.tensor < plan.program.num_inputs) {
    return *plan.inputs[static_cast<std::size_t>(binding.tensor)].slice;
  }
  const auto output = std::find(plan.program.outputs.begin(), plan.program.outputs.end(), binding.tensor);
  return *plan.outputs[static_cast<std::size_t>(output - plan.program.outputs.begin())].slice;
}

// A result must not overlap any other slice.
absl::Status CheckApart(const Plan& plan, const Bindings& bindings) {
  for (const Binding& sink : bindings) {
    if (sink.tensor < plan.program.num_inputs || sink.staged.area != Area::kShared) continue;
    for (const Binding& other : bindings) {
      if (&other == &sink || other.staged.area != Area::kShared) continue;
      if (!Overlap(sink.memory.bytes(), other.memory.bytes())) continue;
      return FieldError(SliceOf(plan, sink).field,
                        absl::StrCat("the slice overlaps ", SliceOf(plan, other).field));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status BindSlices(const Plan& plan, const ScannedMessage& message, OwnerId owner, RegionStore& regions,
                        Bindings& bindings) {
  for (Binding& binding : bindings) {
    if (binding.staged.area != Area::kShared) continue;
    const TensorSpec& spec = plan.program.tensors[static_cast<std::size_t>(binding.tensor)];
    ASSIGN_OR_RETURN(binding.memory, UseSlice(SliceOf(plan, binding), spec, message, owner, regions));
  }
  return CheckApart(plan, bindings);
}

}  // namespace warpline
