// The arrays of a call that are too large for its messages, and travel in ranges.
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

// The operands and results of a call, by their places, that do not travel in its messages.
struct LargeArrays {
  std::vector<std::size_t> operands, results;
  std::size_t operand_bytes = 0, result_bytes = 0;  // with the small ones
  std::size_t streamed_result_bytes = 0;            // without them
  std::size_t inline_limit = kMaxMessageBytes;      // of either in a message

  bool any() const { return !operands.empty() || !results.empty(); }
  // True if they could travel in messages all the same.
  bool may_be_inline() const { return operand_bytes <= inline_limit && result_bytes <= inline_limit; }
};

// The largest operands, and results, that must be left out until the others have fewer than
// `stream_from_bytes` together. None if that is 0. `regions`: arrays in these do not travel.
LargeArrays LargeArraysOf(const RunArgs& args, const ResultTypes& types, const CallOptions& options,
                          const RegionTable& regions, std::size_t stream_from_bytes);

// The destination of a result; the default for one without an entry.
Destination DestinationOf(const RunArgs& args, std::size_t result);

// True if a result is written to memory of an operand.
bool OverlapsOperands(const RunArgs& args);

}  // namespace warpline::client

#endif  // WARPLINE_CLIENT_SRC_LARGE_ARRAYS_H_
