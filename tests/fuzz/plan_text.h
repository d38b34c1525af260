// A plan as text, to compare two.
#ifndef WARPLINE_TESTS_FUZZ_PLAN_TEXT_H_
#define WARPLINE_TESTS_FUZZ_PLAN_TEXT_H_

#include <string>

#include "server/plan/plan.h"

namespace warpline::testing {

// All of it: two plans that have the same text treat every payload, scalar and tensor in the same way.
std::string Describe(const Plan& plan);

// Checks what must hold for every plan, whatever the request. Each tensor lies within its area. Tensors that
// exist at the same time lie apart. Steps read only what is there. Every number of a payload, scalar, integer
// or reference is below the message's count of them. Returns an empty string if all holds, else what does
// not.
struct MessageCounts {
  std::size_t payloads = 0, scalars = 0, integers = 0, references = 0;
};
std::string FindFlaw(const Plan& plan, const MessageCounts& counts);

}  // namespace warpline::testing

#endif  // WARPLINE_TESTS_FUZZ_PLAN_TEXT_H_
