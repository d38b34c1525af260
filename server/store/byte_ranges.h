// Ranges of bytes: which parts of a tensor have arrived while it is filled piece by piece.
#ifndef WARPLINE_SERVER_STORE_BYTE_RANGES_H_
#define WARPLINE_SERVER_STORE_BYTE_RANGES_H_

#include <cstddef>
#include <map>
#include <optional>
#include <string>

namespace warpline {

// The bytes from `begin` up to, but not including, `end`.
struct ByteRange {
  std::size_t begin = 0, end = 0;
  std::size_t size() const { return end - begin; }
  bool operator==(const ByteRange&) const = default;
};
std::string ToString(const ByteRange& range);  // "bytes 4096 to 8191", or "no bytes at 4096"

// A set of bytes. Adjacent ranges are merged, so that a tensor that is filled from several places at once has
// few ranges.
class ByteRanges {
 public:
  // Returns the first part of `range` that is in the set; nothing if none is.
  std::optional<ByteRange> FirstCommon(const ByteRange& range) const;
  // Returns the first part of [0, size) that is not in the set; nothing if all of it is.
  std::optional<ByteRange> FirstMissing(std::size_t size) const;
  // Adds `range`, which must not overlap the set.
  void Add(const ByteRange& range);
  // Adds the bytes of `range` that are not in the set yet, and returns how many these were.
  std::size_t AddMissing(ByteRange range);
  // Returns whether `range` would be merged with a range of the set.
  bool Touches(const ByteRange& range) const;
  std::size_t bytes() const { return bytes_; }
  std::size_t count() const { return ranges_.size(); }

 private:
  std::map<std::size_t, std::size_t> ranges_;  // from begin to end; no two touch
  std::size_t bytes_ = 0;
};

}  // namespace warpline

#endif  // WARPLINE_SERVER_STORE_BYTE_RANGES_H_
