// Changes messages field by field, so that what comes out still has the form of a request.
#ifndef WARPLINE_TESTS_FUZZ_MESSAGE_MUTATOR_H_
#define WARPLINE_TESTS_FUZZ_MESSAGE_MUTATOR_H_

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "google/protobuf/message.h"

namespace warpline::testing {

// Same seed, same changes.
class MessageMutator {
 public:
  explicit MessageMutator(std::uint64_t seed) : random_(seed) {}

  // Makes one to four changes, each to one field of the message or of one within it: set to a value that
  // decides something somewhere (borders of integer types, names that requests use), cleared, added, removed,
  // exchanged with a neighbour, or replaced by a message of the same type from elsewhere in it. Three times
  // out of four inline elements then get as many bytes as the shape next to them needs, as without that
  // hardly a changed message would pass the first check.
  void Mutate(google::protobuf::Message& message);

  // Returns a random number in [0, bound).
  std::uint64_t Below(std::uint64_t bound) { return random_() % bound; }
  bool OneIn(std::uint64_t n) { return Below(n) == 0; }

 private:
  using Field = google::protobuf::FieldDescriptor;

  void Change(google::protobuf::Message& root);
  void ChangeRepeated(google::protobuf::Message& message, const Field* field);
  void SetOrAdd(google::protobuf::Message& message, const Field* field);
  // A value for the field's element `index`, or for a new one behind the last, or for the field itself.
  void SetValue(google::protobuf::Message& message, const Field* field, int index);
  std::int64_t Integer(std::int64_t near);
  double Double();
  std::string Text();
  // Inline elements of all tensors in the message.
  void FitElements(google::protobuf::Message& message);

  std::mt19937_64 random_;
};

}  // namespace warpline::testing

#endif  // WARPLINE_TESTS_FUZZ_MESSAGE_MUTATOR_H_
