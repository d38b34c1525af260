#include "tests/testing/random_wire.h"

#include <algorithm>
#include <cstddef>

namespace warpline::testing {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;

constexpr std::size_t kTagBytesMax = 5;
constexpr std::size_t kLengthBytesMax = 5;
constexpr std::size_t kVarintBytesMax = 10;

}  // namespace

std::string ShortestVarint(std::uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes.push_back(static_cast<char>(value | 0x80));
  bytes.push_back(static_cast<char>(value));
  return bytes;
}

std::string ShortestTag(std::uint32_t number, int wire_type) {
  return ShortestVarint(static_cast<std::uint64_t>(number) << 3 | static_cast<std::uint64_t>(wire_type));
}

// One in 8 is longer than needed, and rarely longer than allowed.
std::string RandomWire::Varint(std::uint64_t value, std::size_t bytes_max) {
  std::string bytes = ShortestVarint(value);
  if (!OneIn(8)) return bytes;
  const std::size_t size = OneIn(64) ? bytes_max + 1 : bytes.size() + Below(bytes_max);
  while (bytes.size() < std::min(size, bytes_max + (OneIn(64) ? 1 : 0))) {
    bytes.back() = static_cast<char>(bytes.back() | 0x80);
    bytes.push_back('\0');
  }
  return bytes;
}

std::string RandomWire::Tag(std::uint32_t number, int wire_type) {
  std::uint64_t tag = static_cast<std::uint64_t>(number) << 3 | static_cast<std::uint64_t>(wire_type);
  if (OneIn(64)) tag |= Below(8) << 32;  // bits that parsers drop
  return Varint(tag, kTagBytesMax);
}

std::string RandomWire::Prefixed(const std::string& content) {
  const std::uint64_t wrong = OneIn(400) ? Below(1 << 5) : 0;
  return Varint(content.size() + wrong, kLengthBytesMax) + content;
}

std::string RandomWire::Bytes(std::size_t size_bound) {
  std::string bytes(Below(size_bound), '\0');
  for (char& byte : bytes) byte = static_cast<char>(Below(OneIn(4) ? 256 : 128));
  return bytes;
}

std::uint64_t RandomWire::Integer() {
  const std::uint64_t any = random_();
  return OneIn(2) ? any % 16 : any >> (any % 64);
}

std::string RandomWire::Value(int wire_type, std::uint32_t number, int depth) {
  switch (wire_type) {
    case 0:
      return Varint(Integer(), kVarintBytesMax);
    case 1:
      return Bytes(2).append(8, '\x7f').substr(0, 8);
    case 2:
      return Prefixed(Bytes(40));
    case 3: {
      std::string content;
      // Rarely about as deep as parsers go.
      if (OneIn(200)) {
        const std::size_t nesting = 90 + Below(14);
        for (std::size_t i = 0; i < nesting; ++i) content += ShortestTag(9, 3);
        for (std::size_t i = 0; i < nesting; ++i) content += ShortestTag(9, 4);
      }
      for (std::uint64_t i = Below(3); i > 0 && depth < 6; --i) content += Unknown(nullptr, depth + 1);
      return content + Tag(OneIn(300) ? number + 1 : number, 4);
    }
    case 5:
      return std::string("\x01\x02\x03\x04");
    default:
      return "";
  }
}

std::string RandomWire::Unknown(const Descriptor* type, int depth) {
  constexpr int kWireTypes[] = {0, 1, 2, 3, 5};
  int wire_type = kWireTypes[Below(5)];
  if (OneIn(400)) wire_type = static_cast<int>(Below(8));
  std::uint32_t number = static_cast<std::uint32_t>(OneIn(4) ? 1 + Below((1u << 29) - 1) : 1 + Below(20));
  // With a known number: a wire type that may be the wrong one.
  if (type != nullptr && type->field_count() > 0 && OneIn(3)) {
    number = static_cast<std::uint32_t>(type->field(static_cast<int>(Below(type->field_count())))->number());
  }
  if (OneIn(1000)) number = 0;
  return Tag(number, wire_type) + Value(wire_type, number, depth);
}

std::string RandomWire::Known(const FieldDescriptor* field, int depth) {
  const auto number = static_cast<std::uint32_t>(field->number());
  switch (field->type()) {
    case FieldDescriptor::TYPE_MESSAGE:
      return Tag(number, 2) + Prefixed(Message(field->message_type(), depth + 1));
    case FieldDescriptor::TYPE_BYTES:
      return Tag(number, 2) + Prefixed(Bytes(OneIn(10) ? 500 : 20));
    case FieldDescriptor::TYPE_STRING:
      return Tag(number, 2) + Prefixed(OneIn(20) ? Bytes(8) : "naive");
    case FieldDescriptor::TYPE_DOUBLE:
      return Tag(number, 1) + Value(1, number, depth);
    default:
      break;
  }
  if (!field->is_repeated() || OneIn(2)) return Tag(number, 0) + Varint(Integer(), kVarintBytesMax);
  std::string packed;
  for (std::uint64_t i = Below(5); i > 0; --i) packed += Varint(Integer(), kVarintBytesMax);
  return Tag(number, 2) + Prefixed(packed);
}

std::string RandomWire::Message(const Descriptor* type, int depth) {
  std::string bytes;
  for (std::uint64_t i = Below(8); i > 0; --i) {
    const int fields = type->field_count();
    bytes += fields == 0 || OneIn(5) ? Unknown(type, depth)
                                     : Known(type->field(static_cast<int>(Below(fields))), depth);
  }
  return bytes;
}

void RandomWire::Damage(std::string& bytes) {
  for (std::uint64_t i = 1 + Below(3); i > 0 && !bytes.empty(); --i) {
    const std::size_t at = Below(bytes.size());
    switch (Below(5)) {
      case 0:
        bytes[at] = static_cast<char>(Below(256));
        break;
      case 1:
        bytes[at] = static_cast<char>(bytes[at] ^ (1 << Below(8)));
        break;
      case 2:
        bytes.insert(at, 1, static_cast<char>(Below(256)));
        break;
      case 3:
        bytes.insert(at, bytes.substr(at, 1 + Below(8)));
        break;
      default:
        bytes.erase(at, OneIn(2) ? 1 : bytes.size());
        break;
    }
  }
}

}  // namespace warpline::testing
