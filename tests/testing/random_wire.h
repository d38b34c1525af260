// Random messages on the level of the wire format, for the tests of what reads it.
#ifndef WARPLINE_TESTS_TESTING_RANDOM_WIRE_H_
#define WARPLINE_TESTS_TESTING_RANDOM_WIRE_H_

#include <cstdint>
#include <random>
#include <string>

#include "google/protobuf/descriptor.h"

namespace warpline::testing {

// Writes fields that a serializer of protobuf would never write, but which are valid: in any order, repeated
// where they are singular, sub-messages in parts, with varints of more bytes than needed, among unknown
// fields and groups; and now and then something that is not valid. Same seed, same messages.
class RandomWire {
 public:
  explicit RandomWire(std::uint64_t seed) : random_(seed) {}

  std::string Message(const google::protobuf::Descriptor* type, int depth = 0);
  // Changes, inserts, removes or repeats a few bytes, or cuts off the end.
  void Damage(std::string& bytes);

  // Returns a random number in [0, bound).
  std::uint64_t Below(std::uint64_t bound) { return random_() % bound; }
  bool OneIn(std::uint64_t n) { return Below(n) == 0; }

 private:
  std::string Varint(std::uint64_t value, std::size_t bytes_max);
  std::string Tag(std::uint32_t number, int wire_type);
  std::string Prefixed(const std::string& content);
  std::string Bytes(std::size_t size_bound);
  std::string Known(const google::protobuf::FieldDescriptor* field, int depth);
  std::string Unknown(const google::protobuf::Descriptor* type, int depth);
  std::string Value(int wire_type, std::uint32_t number, int depth);
  std::uint64_t Integer();

  std::mt19937_64 random_;
};

// Return a varint and a tag as protobuf writes them.
std::string ShortestVarint(std::uint64_t value);
std::string ShortestTag(std::uint32_t number, int wire_type);

}  // namespace warpline::testing

#endif  // WARPLINE_TESTS_TESTING_RANDOM_WIRE_H_
