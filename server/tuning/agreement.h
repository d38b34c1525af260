// How far results of two variants may be from each other on random operands.
#ifndef WARPLINE_SERVER_TUNING_AGREEMENT_H_
#define WARPLINE_SERVER_TUNING_AGREEMENT_H_

#include "kernels/problem.h"

namespace warpline {

// |x - y| <= absolute + relative * |y|.
struct Agreement {
  double absolute = 0, relative = 0;
};

// For operands of standard normal numbers (gpu::FillNumbers). Sums of n numbers in another order differ by
// what n roundings of partial sums, whose size is about sqrt(n), come to: about sqrt(n) * sqrt(n) units of
// roundoff, and 16 times that in none of 10^9 results. It is there to find variants that compute something
// else; what variants owe their users is for the conformance tests.
Agreement AgreementOf(const Problem& problem);

}  // namespace warpline

#endif  // WARPLINE_SERVER_TUNING_AGREEMENT_H_
