#include "server/device/cut_ranges.h"

#include <algorithm>

namespace warpline {

std::vector<Range> EvenRanges(std::int64_t length, std::int64_t wanted, std::int64_t align) {
  constexpr std::int64_t kSeveral = 4;
  const std::int64_t count = std::max<std::int64_t>(1, (length + wanted / 2) / wanted);
  if (length < kSeveral * align * count) align = 1;
  std::vector<Range> ranges;
  std::int64_t begin = 0;
  for (std::int64_t i = 1; i <= count; ++i) {
    // length * i would overflow for the longest tensors; the quotient and the rest do not.
    std::int64_t end = length / count * i + length % count * i / count;
    if (i < count) end -= end % align;
    if (end > begin) ranges.push_back({begin, end - begin});
    begin = end;
  }
  return ranges;
}

std::vector<Range> GrowingParts(Range range, int share, std::int64_t least) {
  std::vector<Range> parts;
  while (share > 1 && range.size / share < least) share /= 2;
  std::int64_t rest = range.size;
  std::int64_t begin = range.begin;
  std::int64_t size = share > 1 ? range.size / share : rest;
  for (int i = 0; rest > 0; ++i) {
    if (2 * size > rest + rest / 4) size = rest;  // the last part also gets the rest of rounding
    parts.push_back({begin, size});
    begin += size;
    rest -= size;
    if (i > 0) size *= 2;
    size = std::min(size, rest);
  }
  return parts;
}

std::vector<Range> ShrinkingParts(Range range, int share, std::int64_t least) {
  std::vector<Range> parts = GrowingParts({0, range.size}, share, least);
  std::reverse(parts.begin(), parts.end());
  for (Range& part : parts) part.begin = range.begin + range.size - part.begin - part.size;
  return parts;
}

}  // namespace warpline
