#include "server/rpc/codec/codec.h"

#include <algorithm>
#include <cstdint>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/align.h"
#include "kernels/status_macros.h"
#include "proto/rules/known_fields.h"
#include "proto/rules/scalar_class.h"
#include "proto/wire/tensor_field.h"
#include "server/base/errors.h"

namespace warpline {
namespace {

template <typename RequestProto>
absl::StatusOr<Conversion> Decode(const ScannedMessage& message, const References& references,
                                  const Limits& limits) {
  RequestProto request;
  if (!request.ParseFromString(message.header)) {
    return absl::InvalidArgumentError("the request is not a valid protobuf message of its type");
  }
  ASSIGN_OR_RETURN(
      Conversion conversion,
      FromProto(request, {message.payloads, message.scalars, message.integers, references}, limits));
  // An unknown option must not be ignored. Errors in the known fields are reported first.
  RETURN_IF_ERROR(CheckAllKnown(request));
  return conversion;
}

// The fields whose values reach kernels as StepScalars. A plan depends only on the class of each value.
std::vector<const google::protobuf::FieldDescriptor*> ScalarFields() {
  const auto field = [](const google::protobuf::Descriptor* message, int number) {
    return message->FindFieldByNumber(number);
  };
  return {field(v1::GemmRequest::descriptor(), v1::GemmRequest::kAlphaFieldNumber),
          field(v1::GemmRequest::descriptor(), v1::GemmRequest::kBetaFieldNumber),
          field(v1::GemmStep::descriptor(), v1::GemmStep::kAlphaFieldNumber),
          field(v1::GemmStep::descriptor(), v1::GemmStep::kBetaFieldNumber),
          field(v1::ScaleStep::descriptor(), v1::ScaleStep::kFactorFieldNumber),
          field(v1::MapNode::descriptor(), v1::MapNode::kRealFieldNumber),
          field(v1::MapNode::descriptor(), v1::MapNode::kImagFieldNumber),
          // No kernel reads this field, but a plan does not depend on it either.
          field(v1::ResidentSink::descriptor(), v1::ResidentSink::kTtlSecondsFieldNumber)};
}

std::vector<const google::protobuf::FieldDescriptor*> SliceFields() {
  return {v1::RegionSlice::descriptor()->FindFieldByNumber(v1::RegionSlice::kOffsetFieldNumber),
          v1::RegionSlice::descriptor()->FindFieldByNumber(v1::RegionSlice::kCallFieldNumber)};
}

// In the order of ReferenceKind.
std::vector<const google::protobuf::FieldDescriptor*> ReferenceFields() {
  return {v1::ResidentTensor::descriptor()->FindFieldByNumber(v1::ResidentTensor::kIdFieldNumber),
          v1::RegionSlice::descriptor()->FindFieldByNumber(v1::RegionSlice::kIdFieldNumber)};
}

const google::protobuf::FieldDescriptor* FreedField() {
  return v1::RequestOptions::descriptor()->FindFieldByNumber(v1::RequestOptions::kFreeAfterFieldNumber);
}

std::vector<std::string> EncodeOne(const ResponseParts& parts) { return {ResponseHeader(parts)}; }

template <typename RequestProto>
Codec MakeCodec(RequestKind kind, std::string_view method, std::string_view whole,
                decltype(Codec::encode) encode) {
  return {kind,
          method,
          whole,
          ScanSchema::For(RequestProto::descriptor(), {.payload = InlineField(),
                                                       .scalars = ScalarFields(),
                                                       .integers = SliceFields(),
                                                       .references = ReferenceFields(),
                                                       .extra = FreedField(),
                                                       .extra_path = "options.free_after"}),
          &Decode<RequestProto>,
          encode};
}

bool IsCounted(const Conversion& conversion) {
  return std::any_of(conversion.count_tensors.begin(), conversion.count_tensors.end(),
                     [](int tensor) { return tensor >= 0; });
}

OwnMemory OwnMemoryOf(const Conversion& conversion) {
  OwnMemory own;
  for (std::size_t i = 0; i < conversion.sources.size(); ++i) {
    const CheckedTensor::Source& source = conversion.sources[i];
    if (source.reference.has_value() || source.upload.has_value())
      own.resident.push_back(static_cast<int>(i));
    if (source.slice.has_value()) own.shared.push_back(static_cast<int>(i));
  }
  const bool is_counted = IsCounted(conversion);
  for (std::size_t i = 0; i < conversion.sinks.size(); ++i) {
    const int tensor = conversion.program.outputs[i];
    if (is_counted) {
      own.resident.push_back(tensor);
    } else if (conversion.sinks[i].slice.has_value()) {
      own.shared.push_back(tensor);
    } else if (conversion.sinks[i].sink != PlannedOutput::kInline) {
      own.resident.push_back(tensor);
    }
  }
  return own;
}

}  // namespace

std::vector<Codec> KernelCodecs() {
  return {MakeCodec<v1::TransposeRequest>(RequestKind::kTranspose, "Transpose", "x", &EncodeOne),
          // The first operand of a product is named in the error if the request is too large.
          MakeCodec<v1::GemmRequest>(RequestKind::kGemm, "Gemm", "a", &EncodeOne),
          MakeCodec<v1::ReduceRequest>(RequestKind::kReduce, "Reduce", "x", &EncodeOne),
          MakeCodec<v1::RunRequest>(RequestKind::kRun, "Run", "program", &RunResponseHeaders)};
}

RequestKind KindOf(const Codec& codec, const ScannedMessage& message) {
  v1::RunRequest request;
  if (codec.kind != RequestKind::kRun || !request.ParseFromString(message.header)) return codec.kind;
  return KindOf(request.program());
}

std::string PlanKey(RequestKind kind, const ScannedMessage& message, const References& references) {
  const std::size_t payloads = message.payloads.size(), scalars = message.scalars.size();
  constexpr std::size_t kReferenceBytes = 2 + (1 + kMaxRank) * sizeof(std::uint64_t);
  std::string key;
  key.reserve(1 + (1 + payloads) * sizeof(std::uint64_t) + scalars + message.header.size() +
              kReferenceBytes * references.size());
  const auto append = [&key](std::uint64_t number) {
    key.append(reinterpret_cast<const char*>(&number), sizeof(number));
  };
  key.push_back(static_cast<char>(kind));
  // The counts come first. Without them the lengths in one request could be read as the header of another. A
  // header has room for less than 2^21 of each.
  append(std::uint64_t{payloads} << 42 | std::uint64_t{scalars} << 21 | references.size());
  for (const PayloadRange& payload : message.payloads) append(payload.length);
  for (const double scalar : message.scalars) key.push_back(static_cast<char>(ClassOf(scalar)));
  for (const absl::StatusOr<TensorSpec>& reference : references) {
    key.push_back(static_cast<char>(reference.ok() ? reference->shape.rank : -1));
    if (!reference.ok()) continue;
    key.push_back(static_cast<char>(reference->dtype));
    for (int i = 0; i < reference->shape.rank; ++i) append(static_cast<std::uint64_t>(reference->shape[i]));
  }
  key += message.header;
  return key;
}

// Returns the number of uploads of the inputs. Upload numbers must have no gaps.
absl::StatusOr<std::size_t> CountUploads(std::span<const PlannedInput> inputs) {
  std::set<std::size_t> numbers;
  for (const PlannedInput& input : inputs) {
    if (input.upload != PlannedInput::kNone) numbers.insert(input.upload);
  }
  if (numbers.empty() || *numbers.rbegin() + 1 == numbers.size()) return numbers.size();
  std::size_t missing = 0;
  while (numbers.count(missing) > 0) ++missing;
  return FieldError("upload.number", absl::StrCat("there is an upload ", *numbers.rbegin(),
                                                  ", but none has the number ", missing));
}

absl::StatusOr<DecodedPlan> DecodePlan(const Codec& codec, const ScannedMessage& message,
                                       const References& references, const Limits& limits) {
  ASSIGN_OR_RETURN(Conversion conversion, codec.decode(message, references, limits));
  DecodedPlan decoded;
  const OwnMemory own = OwnMemoryOf(conversion);
  const std::size_t outputs = conversion.program.outputs.size();
  const std::vector<int>& counts = conversion.count_tensors;
  if (IsCounted(conversion)) {
    for (const int tensor : counts) {
      if (tensor >= 0) conversion.program.outputs.push_back(tensor);
    }
  }
  decoded.plan = MakePlan(std::move(conversion.program), own);
  decoded.plan.outputs.resize(outputs);
  if (IsCounted(conversion)) {
    for (std::size_t i = 0; i < outputs; ++i) {
      decoded.plan.counts.push_back(
          counts[i] < 0 ? Plan::kNoCount
                        : decoded.plan.memory.tensors[static_cast<std::size_t>(counts[i])].offset);
      if (!conversion.sinks[i].streamed) continue;
      return InField(
          absl::StrCat("options.sinks[", conversion.sinks[i].sink, "].stream"),
          absl::UnimplementedError("not implemented for programs with compress; a resident sink is"));
    }
  }
  for (std::size_t i = 0; i < decoded.plan.outputs.size(); ++i) {
    PlannedOutput& output = decoded.plan.outputs[i];
    output.name = std::move(conversion.output_names[i]);
    output.sink = conversion.sinks[i].sink;
    output.ttl = conversion.sinks[i].ttl;
    output.slice = std::move(conversion.sinks[i].slice);
    output.streamed = conversion.sinks[i].streamed;
    if (!decoded.plan.IsCounted() || !output.is_inline()) continue;
    decoded.plan.copied_bytes += AlignUp(output.spec.bytes, kTensorAlignment);
  }
  // Results above the limit are refused.
  decoded.plan.copied_bytes =
      std::min(decoded.plan.copied_bytes, static_cast<std::size_t>(limits.max_inline_bytes) +
                                              decoded.plan.outputs.size() * kTensorAlignment);
  for (CheckedTensor::Source& source : conversion.sources) {
    PlannedInput& input = decoded.plan.inputs.emplace_back();
    input.slice = std::move(source.slice);
    input.payload = source.payload.value_or(PlannedInput::kNone);
    input.reference = source.reference.value_or(PlannedInput::kNone);
    input.upload = source.upload.value_or(PlannedInput::kNone);
  }
  ASSIGN_OR_RETURN(decoded.plan.num_uploads, CountUploads(decoded.plan.inputs));
  decoded.plan.scalars = std::move(conversion.scalars);
  decoded.plan.kind = conversion.kind;
  decoded.plan.reports = conversion.reports || decoded.plan.program.num_parts == 1;
  decoded.reproducible = conversion.reproducible;
  decoded.step_names = std::move(conversion.step_names);
  return decoded;
}

}  // namespace warpline
