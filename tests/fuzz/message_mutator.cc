#include "tests/fuzz/message_mutator.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <iterator>
#include <limits>

#include "proto/rules/tensor_rules.h"
#include "warpline/v1/warpline.pb.h"

namespace warpline::testing {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

// Longer content stays as it is: a mutated message should be small.
constexpr std::size_t kMaxFitted = 2048;

void Collect(Message& message, std::vector<Message*>& all) {
  all.push_back(&message);
  const Reflection* const reflection = message.GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reflection->ListFields(message, &fields);
  for (const FieldDescriptor* field : fields) {
    if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) continue;
    if (!field->is_repeated()) {
      Collect(*reflection->MutableMessage(&message, field), all);
      continue;
    }
    for (int i = 0; i < reflection->FieldSize(message, field); ++i) {
      Collect(*reflection->MutableRepeatedMessage(&message, field, i), all);
    }
  }
}

std::vector<Message*> AllWithin(Message& root) {
  std::vector<Message*> all;
  Collect(root, all);
  return all;
}

// The place of an element that is yet to be added, and of a field that is not repeated.
constexpr int kNew = -1;

}  // namespace

std::int64_t MessageMutator::Integer(std::int64_t near) {
  constexpr std::array kBorders = {std::numeric_limits<std::int64_t>::max(),
                                   std::numeric_limits<std::int64_t>::min(),
                                   std::int64_t{1} << 62,
                                   std::int64_t{1} << 56,
                                   std::int64_t{1} << 53,
                                   std::int64_t{1} << 40,
                                   std::int64_t{1} << 32,
                                   (std::int64_t{1} << 31) - 1,
                                   -(std::int64_t{1} << 31),
                                   std::int64_t{65536},
                                   std::int64_t{4096},
                                   std::int64_t{1024},
                                   std::int64_t{256},
                                   std::int64_t{-1}};
  switch (Below(8)) {
    case 0:
      return kBorders[Below(kBorders.size())];
    case 1:
      return static_cast<std::int64_t>(static_cast<std::uint64_t>(near) + Below(5) - 2);
    case 2:
      return static_cast<std::int64_t>(std::uint64_t{1} << Below(64));
    case 3:
      return static_cast<std::int64_t>(Below(70));
    default:
      return static_cast<std::int64_t>(Below(9));
  }
}

double MessageMutator::Double() {
  constexpr double kValues[] = {0,
                                -0.0,
                                1,
                                -3,
                                0.5,
                                1e-300,
                                1e300,
                                std::numeric_limits<double>::infinity(),
                                -std::numeric_limits<double>::infinity(),
                                std::numeric_limits<double>::quiet_NaN(),
                                2147483647,
                                2147483648,
                                -2147483648,
                                9007199254740992,
                                9223372036854775808.0,
                                -1e-60,
                                5e-324,
                                3600,
                                86400};
  return OneIn(4) ? static_cast<double>(Integer(0)) : kValues[Below(std::size(kValues))];
}

std::string MessageMutator::Text() {
  // Names of inputs and steps, of variants, and of what the fuzzed server holds under these names.
  static constexpr const char* kTexts[] = {
      "",   "a",  "b",         "c",       "d",        "x",
      "y",  "z",  "bias",      "product", "openblas", "eigen",
      "t0", "t1", "t2",        "t3",      "t4",       "t5",
      "t6", "t7", "t8",        "t9",      "late",     "half",
      "r0", "r1", "r2",        "gone",    "0",        "1",
      "2",  "3",  "reference", "tiled",   "\xff\xfe", "00000000-00000000000000000000000000000000"};
  if (OneIn(32)) return std::string(Below(600), 'n');
  return kTexts[Below(std::size(kTexts))];
}

void MessageMutator::SetValue(Message& message, const FieldDescriptor* field, int index) {
  const Reflection* const reflection = message.GetReflection();
  const bool repeated = field->is_repeated(), add = index == kNew;
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32: {
      const auto value = static_cast<std::int32_t>(
          Integer(repeated ? add ? 0 : reflection->GetRepeatedInt32(message, field, index)
                           : reflection->GetInt32(message, field)));
      if (!repeated) return reflection->SetInt32(&message, field, value);
      return add ? reflection->AddInt32(&message, field, value)
                 : reflection->SetRepeatedInt32(&message, field, index, value);
    }
    case FieldDescriptor::CPPTYPE_INT64: {
      const std::int64_t value =
          Integer(repeated ? add ? 0 : reflection->GetRepeatedInt64(message, field, index)
                           : reflection->GetInt64(message, field));
      if (!repeated) return reflection->SetInt64(&message, field, value);
      return add ? reflection->AddInt64(&message, field, value)
                 : reflection->SetRepeatedInt64(&message, field, index, value);
    }
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return reflection->SetDouble(&message, field, Double());
    case FieldDescriptor::CPPTYPE_BOOL:
      return reflection->SetBool(&message, field, OneIn(2));
    case FieldDescriptor::CPPTYPE_ENUM:
      return reflection->SetEnumValue(
          &message, field,
          OneIn(16)
              ? static_cast<int>(Integer(0))
              : static_cast<int>(Below(static_cast<std::uint64_t>(field->enum_type()->value_count()) + 1)));
    case FieldDescriptor::CPPTYPE_STRING: {
      std::string text = field->type() == FieldDescriptor::TYPE_BYTES ? std::string(Below(70), '\1') : Text();
      if (!repeated) return reflection->SetString(&message, field, std::move(text));
      return add ? reflection->AddString(&message, field, std::move(text))
                 : reflection->SetRepeatedString(&message, field, index, std::move(text));
    }
    case FieldDescriptor::CPPTYPE_MESSAGE: {
      Message* const within = !repeated ? reflection->MutableMessage(&message, field)
                              : add     ? reflection->AddMessage(&message, field)
                                        : reflection->MutableRepeatedMessage(&message, field, index);
      const int fields = within->GetDescriptor()->field_count();
      for (std::uint64_t i = Below(4); i > 0 && fields > 0; --i) {
        SetOrAdd(*within,
                 within->GetDescriptor()->field(static_cast<int>(Below(static_cast<std::uint64_t>(fields)))));
      }
      return;
    }
    default:
      return;  // the API has no other types
  }
}

void MessageMutator::SetOrAdd(Message& message, const FieldDescriptor* field) {
  const int count = field->is_repeated() ? message.GetReflection()->FieldSize(message, field) : 0;
  SetValue(message, field,
           count == 0 || OneIn(3) ? kNew : static_cast<int>(Below(static_cast<std::uint64_t>(count))));
}

void MessageMutator::ChangeRepeated(Message& message, const FieldDescriptor* field) {
  const Reflection* const reflection = message.GetReflection();
  const int count = reflection->FieldSize(message, field);
  const auto any = [&] { return static_cast<int>(Below(static_cast<std::uint64_t>(count))); };
  if (count == 0) return SetValue(message, field, kNew);
  switch (Below(3)) {
    case 0:
      return reflection->SwapElements(&message, field, any(), any());
    case 1:
      reflection->SwapElements(&message, field, any(), count - 1);
      return reflection->RemoveLast(&message, field);
    default:
      if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) return SetValue(message, field, kNew);
      const int from = any();
      Message* const copy = reflection->AddMessage(&message, field);
      return copy->CopyFrom(reflection->GetRepeatedMessage(message, field, from));
  }
}

void MessageMutator::Change(Message& root) {
  const std::vector<Message*> all = AllWithin(root);
  Message& message = *all[Below(all.size())];
  const int fields = message.GetDescriptor()->field_count();
  if (fields == 0) return;
  const FieldDescriptor* const field =
      message.GetDescriptor()->field(static_cast<int>(Below(static_cast<std::uint64_t>(fields))));
  const Reflection* const reflection = message.GetReflection();
  if (OneIn(8)) return reflection->ClearField(&message, field);
  if (field->is_repeated() && OneIn(2)) return ChangeRepeated(message, field);
  if (OneIn(4)) {
    std::vector<const Message*> others;
    for (const Message* other : all) {
      if (other->GetDescriptor() == message.GetDescriptor() && other != &message) others.push_back(other);
    }
    // A copy, since one may lie within the other.
    if (!others.empty()) {
      const std::unique_ptr<Message> copy(others[Below(others.size())]->New());
      copy->CopyFrom(*others[Below(others.size())]);
      return message.CopyFrom(*copy);
    }
  }
  SetOrAdd(message, field);
}

void MessageMutator::FitElements(Message& message) {
  for (Message* within : AllWithin(message)) {
    auto* const tensor = dynamic_cast<v1::Tensor*>(within);
    if (tensor == nullptr || tensor->has_region() || tensor->has_resident() || tensor->has_upload()) continue;
    const absl::StatusOr<DType> dtype = CheckDataType("", tensor->data_type());
    const absl::StatusOr<Shape> shape = CheckShape("", tensor->shape());
    if (!dtype.ok() || !shape.ok() || tensor->row_stride() < 0) continue;
    const absl::StatusOr<std::size_t> bytes = StorageBytes("", *dtype, *shape, tensor->row_stride());
    if (!bytes.ok() || *bytes > kMaxFitted || *bytes == tensor->inline_().size()) continue;
    std::string elements(*bytes, '\0');
    for (char& byte : elements) byte = static_cast<char>(random_());
    tensor->set_inline_(std::move(elements));
  }
}

void MessageMutator::Mutate(Message& message) {
  for (std::uint64_t i = 1 + Below(4); i > 0; --i) Change(message);
  if (!OneIn(4)) FitElements(message);
}

}  // namespace warpline::testing
