// The rates that one thread of this machine reaches. The cost of programs on the CPU is estimated from them.
#ifndef WARPLINE_SERVER_DEVICE_CPU_RATES_H_
#define WARPLINE_SERVER_DEVICE_CPU_RATES_H_

#include "server/plan/cost.h"

namespace warpline {

// Measures on the calling thread: a copy of 16 MiB into fresh memory; for each data type that can be
// multiplied, a product of two matrices of 192 x 192 by the variant that the server chooses; and a sum of
// 65536 elements by the plainest loop. Takes about 0.05 s and 32 MiB of memory. Time during which other
// threads had the core does not count.
DeviceRates MeasureCpuRates();

}  // namespace warpline

#endif  // WARPLINE_SERVER_DEVICE_CPU_RATES_H_
