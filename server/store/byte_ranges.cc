#include "server/store/byte_ranges.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/str_cat.h"

namespace warpline {

std::string ToString(const ByteRange& range) {
  if (range.size() == 0) return absl::StrCat("no bytes at ", range.begin);
  return absl::StrCat("bytes ", range.begin, " to ", range.end - 1);
}

std::optional<ByteRange> ByteRanges::FirstCommon(const ByteRange& range) const {
  if (range.size() == 0) return std::nullopt;
  auto next = ranges_.upper_bound(range.begin);
  if (next != ranges_.begin() && std::prev(next)->second > range.begin) --next;
  if (next == ranges_.end() || next->first >= range.end) return std::nullopt;
  return ByteRange{std::max(range.begin, next->first), std::min(range.end, next->second)};
}

std::optional<ByteRange> ByteRanges::FirstMissing(std::size_t size) const {
  const auto first = ranges_.begin();
  const std::size_t begin = first != ranges_.end() && first->first == 0 ? first->second : 0;
  if (begin >= size) return std::nullopt;
  const auto next = ranges_.upper_bound(begin);
  return ByteRange{begin, next == ranges_.end() ? size : std::min(size, next->first)};
}

void ByteRanges::Add(const ByteRange& range) {
  if (range.size() == 0) return;
  bytes_ += range.size();
  std::size_t begin = range.begin, end = range.end;
  if (const auto after = ranges_.find(end); after != ranges_.end()) {
    end = after->second;
    ranges_.erase(after);
  }
  const auto next = ranges_.lower_bound(begin);
  if (next != ranges_.begin() && std::prev(next)->second == begin) {
    std::prev(next)->second = end;
  } else {
    ranges_.emplace_hint(next, begin, end);
  }
}

std::size_t ByteRanges::AddMissing(ByteRange range) {
  const std::size_t before = bytes_;
  while (range.size() > 0) {
    const std::optional<ByteRange> common = FirstCommon(range);
    Add({range.begin, common.has_value() ? common->begin : range.end});
    range.begin = common.has_value() ? common->end : range.end;
  }
  return bytes_ - before;
}

bool ByteRanges::Touches(const ByteRange& range) const {
  const auto next = ranges_.lower_bound(range.begin);
  if (next != ranges_.end() && next->first <= range.end) return true;
  return next != ranges_.begin() && std::prev(next)->second >= range.begin;
}

}  // namespace warpline
