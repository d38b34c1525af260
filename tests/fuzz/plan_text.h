// A plan as text, to compare two.
#ifndef WARPLINE_TESTS_FUZZ_PLAN_TEXT_H_
#define WARPLINE_TESTS_FUZZ_PLAN_TEXT_H_

#include <string>

#include "server/plan/plan.h"

namespace warpline::testing {

// All of it: two plans that have the same text treat every payload, scalar and tensor in the same way.
std::string Describe(const Plan& plan);

// What must hold of every plan, whatever the request: each tensor lies within its area, tensors that exist at
// the same time lie apart, steps read only what is there, and every number of a payload, scalar, integer or
// reference is below how many of them the message has. Empty if it does, else what does not.
struct MessageCounts {
  std::size_t payloads = 0, scalars = 0, integers = 0, references = 0;
};
std::string FindFlaw(const Plan& plan, const MessageCounts& counts);

}  // namespace warpline::testing

#endif  // WARPLINE_TESTS_FUZZ_PLAN_TEXT_H_
