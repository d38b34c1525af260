// Cutting a length into ranges: the arithmetic below CutProgram.
#ifndef WARPLINE_SERVER_DEVICE_CUT_RANGES_H_
#define WARPLINE_SERVER_DEVICE_CUT_RANGES_H_

#include <cstdint>
#include <vector>

namespace warpline {

struct Range {
  std::int64_t begin = 0, size = 0;
  friend bool operator==(const Range&, const Range&) = default;
};

// [0, length) in ranges of about `wanted`, all alike but for rounding: a sliver at the end would cost as much
// as a whole. They begin at multiples of `align` if they are several times as long. Both are at least 1.
std::vector<Range> EvenRanges(std::int64_t length, std::int64_t wanted, std::int64_t align);

// A range in parts that grow from the first, of about size / share elements, to the last, of about half: the
// shares are 1/4, 1/4, 1/2 for 4. No part has less than `least` elements; then there are fewer parts.
std::vector<Range> GrowingParts(Range range, int share, std::int64_t least);
// The same parts the other way round.
std::vector<Range> ShrinkingParts(Range range, int share, std::int64_t least);

}  // namespace warpline

#endif  // WARPLINE_SERVER_DEVICE_CUT_RANGES_H_
