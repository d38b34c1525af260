// Divides lengths into ranges: the arithmetic that CutProgram uses.
#ifndef WARPLINE_SERVER_DEVICE_CUT_RANGES_H_
#define WARPLINE_SERVER_DEVICE_CUT_RANGES_H_

#include <cstdint>
#include <vector>

namespace warpline {

struct Range {
  std::int64_t begin = 0, size = 0;
  friend bool operator==(const Range&, const Range&) = default;
};

// Divides [0, length) into ranges of about `wanted`, equal except for rounding, because a short rest at the
// end would cost as much as a full range. They begin at multiples of `align` if they are several times as
// long as `align`. `wanted` and `align` are at least 1.
std::vector<Range> EvenRanges(std::int64_t length, std::int64_t wanted, std::int64_t align);

// Divides a range into parts that grow: the first has about size / share elements, the last about half of
// them. For share = 4 the parts are 1/4, 1/4 and 1/2. If parts would have fewer than `least` elements, there
// are fewer parts.
std::vector<Range> GrowingParts(Range range, int share, std::int64_t least);
// The same parts in reverse order.
std::vector<Range> ShrinkingParts(Range range, int share, std::int64_t least);

}  // namespace warpline

#endif  // WARPLINE_SERVER_DEVICE_CUT_RANGES_H_
