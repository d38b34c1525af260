#include "tests/testing/wire_agreement.h"

#include <algorithm>
#include <memory>

#include "absl/strings/str_cat.h"
#include "proto/wire/tensor_field.h"
#include "warpline/v1/warpline.pb.h"

namespace warpline::testing {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

std::string Gather(Slices slices, const PayloadRange& range) {
  std::string bytes;
  ForEachPiece(slices, range, [&](std::span<const std::byte> piece) {
    bytes.append(reinterpret_cast<const char*>(piece.data()), piece.size());
  });
  return bytes;
}

std::string Flatten(Slices slices) {
  std::string bytes;
  for (const auto& slice : slices) bytes.append(reinterpret_cast<const char*>(slice.data()), slice.size());
  return bytes;
}

// Scalar fields whose presence can be told, and one whose presence cannot, in messages and in nested
// messages.
std::vector<const FieldDescriptor*> ScalarFields() {
  return {v1::GemmRequest::descriptor()->FindFieldByName("alpha"),
          v1::GemmRequest::descriptor()->FindFieldByName("beta"),
          v1::GemmStep::descriptor()->FindFieldByName("alpha"),
          v1::ScaleStep::descriptor()->FindFieldByName("factor"),
          v1::ResidentSink::descriptor()->FindFieldByName("ttl_seconds")};
}

std::vector<const FieldDescriptor*> IntegerFields() {
  return {v1::RegionSlice::descriptor()->FindFieldByName("offset"),
          v1::RegionSlice::descriptor()->FindFieldByName("call")};
}

std::vector<const FieldDescriptor*> ReferenceFields() {
  return {v1::ResidentTensor::descriptor()->FindFieldByName("id"),
          v1::RegionSlice::descriptor()->FindFieldByName("id")};
}

}  // namespace

void SubstituteTokens(Message& message, Slices slices, const ScannedMessage& scanned) {
  if (auto* tensor = dynamic_cast<v1::Tensor*>(&message); tensor != nullptr && tensor->has_inline_()) {
    const std::optional<std::size_t> index = PayloadIndex(tensor->inline_());
    const bool is_token = index.has_value() && *index < scanned.payloads.size();
    tensor->set_inline_(is_token ? Gather(slices, scanned.payloads[*index]) : "not a token");
  }
  const google::protobuf::Reflection* reflection = message.GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reflection->ListFields(message, &fields);
  const std::vector<const FieldDescriptor*> scalars = ScalarFields(), integers = IntegerFields(),
                                            references = ReferenceFields();
  for (const FieldDescriptor* field : fields) {
    if (const auto found = std::find(references.begin(), references.end(), field);
        found != references.end()) {
      const std::optional<std::size_t> index = ReferenceIndex(reflection->GetString(message, field));
      const bool is_token = index.has_value() && *index < scanned.references.size() &&
                            scanned.references[*index].field == found - references.begin();
      reflection->SetString(&message, field, is_token ? scanned.references[*index].text : "not a token");
    }
    if (std::find(integers.begin(), integers.end(), field) != integers.end()) {
      const std::optional<std::size_t> index = IntegerIndex(reflection->GetInt64(message, field));
      const bool is_token = index.has_value() && *index < scanned.integers.size();
      reflection->SetInt64(&message, field, is_token ? scanned.integers[*index] : -77);
    }
    if (std::find(scalars.begin(), scalars.end(), field) != scalars.end()) {
      const std::optional<std::size_t> index = ScalarIndex(reflection->GetDouble(message, field));
      const bool is_token = index.has_value() && *index < scanned.scalars.size();
      reflection->SetDouble(&message, field, is_token ? scanned.scalars[*index] : 0.125);
    }
    if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) continue;
    if (!field->is_repeated()) {
      SubstituteTokens(*reflection->MutableMessage(&message, field), slices, scanned);
      continue;
    }
    for (int i = 0; i < reflection->FieldSize(message, field); ++i) {
      SubstituteTokens(*reflection->MutableRepeatedMessage(&message, field, i), slices, scanned);
    }
  }
}

Agreement CompareWithProtobuf(const Message& prototype, Slices slices) {
  const std::string bytes = Flatten(slices);
  const std::unique_ptr<Message> direct(prototype.New());
  Agreement agreement;
  agreement.accepted = direct->ParseFromString(bytes);

  // Room for the worst growth: of 2 bytes, tag and length of an empty message, to 6.
  const ScanLimits limits{
      .header_bytes = 4 * bytes.size() + 64, .payloads = bytes.size() + 1, .references = bytes.size() + 1};
  const ScanSchema schema = ScanSchema::For(prototype.GetDescriptor(), {.payload = InlineField(),
                                                                        .scalars = ScalarFields(),
                                                                        .integers = IntegerFields(),
                                                                        .references = ReferenceFields()});
  const auto scanned = ScanMessage(schema, slices, limits);
  const std::unique_ptr<Message> through(prototype.New());
  const bool accepted = scanned.ok() && through->ParseFromString(scanned->header);
  if (accepted != agreement.accepted) {
    agreement.difference = absl::StrCat("protobuf ", agreement.accepted ? "accepts" : "rejects",
                                        "; scan: ", scanned.status().ToString(), ", then the header is ",
                                        accepted ? "accepted" : "rejected");
    return agreement;
  }
  if (!accepted) return agreement;
  SubstituteTokens(*through, slices, *scanned);
  // Not MessageDifferencer: to it, NaN differs from NaN.
  if (through->SerializeAsString() != direct->SerializeAsString()) {
    agreement.difference = absl::StrCat("protobuf has {", direct->ShortDebugString(), "}, the scanner {",
                                        through->ShortDebugString(), "}");
  }
  return agreement;
}

std::vector<std::span<const std::byte>> Slice(std::string_view bytes, std::span<const std::size_t> sizes) {
  std::vector<std::span<const std::byte>> slices;
  std::span<const std::byte> rest = std::as_bytes(std::span(bytes));
  while (!rest.empty()) {
    const std::size_t size = std::min(sizes[slices.size() % sizes.size()], rest.size());
    slices.push_back(rest.first(size));
    rest = rest.subspan(size);
  }
  return slices;
}

}  // namespace warpline::testing
