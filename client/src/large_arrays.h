// Arrays that are too large for the messages of a call. They travel in ranges.
#ifndef WARPLINE_CLIENT_SRC_LARGE_ARRAYS_H_
#define WARPLINE_CLIENT_SRC_LARGE_ARRAYS_H_

#include <cstddef>
#include <vector>

#include "client/src/codec.h"
#include "client/src/region_table.h"
#include "client/src/result_type.h"
#include "warpline/options.h"
#include "warpline/requests.h"

namespace warpline::client {

// The indices of a call's operands and results that do not travel in its messages.
struct LargeArrays {
  std::vector<std::size_t> operands, results;
  std::size_t operand_bytes = 0, result_bytes = 0;  // including the small arrays
  std::size_t streamed_result_bytes = 0;            // excluding the small arrays
  std::size_t inline_limit = kMaxMessageBytes;      // for all operands, or all results, in one message

  bool any() const { return !operands.empty() || !results.empty(); }
  // True if all arrays could also travel in messages.
  bool may_be_inline() const { return operand_bytes <= inline_limit && result_bytes <= inline_limit; }
};

// Leaves out the largest operands until the others have fewer than `stream_from_bytes` in total. Results are
// handled in the same way. Leaves out nothing if `stream_from_bytes` is 0. Arrays in `regions` do not travel.
LargeArrays LargeArraysOf(const RunArgs& args, const ResultTypes& types, const CallOptions& options,
                          const RegionTable& regions, std::size_t stream_from_bytes);

// Returns the destination of a result, or the default if it has no entry.
Destination DestinationOf(const RunArgs& args, std::size_t result);

// True if a result is written over memory of an operand.
bool OverlapsOperands(const RunArgs& args);

}  // namespace warpline::client

#endif  // WARPLINE_CLIENT_SRC_LARGE_ARRAYS_H_
