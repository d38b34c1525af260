// A message in the form in which gRPC delivers it: in slices. A range of bytes may span several slices.
#ifndef WARPLINE_PROTO_WIRE_SLICES_H_
#define WARPLINE_PROTO_WIRE_SLICES_H_

#include <grpcpp/support/slice.h>

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

namespace warpline {

// The message: its bytes in order, in pieces of any size. There may be no pieces.
using Slices = std::span<const std::span<const std::byte>>;

// The location of a payload: `length` bytes from slices[slice][offset] on, which may span several slices.
struct PayloadRange {
  std::size_t slice = 0;
  std::size_t offset = 0;
  std::size_t length = 0;

  friend bool operator==(const PayloadRange&, const PayloadRange&) = default;
};

// Returns views of the slices. The slices must outlive the views.
inline std::vector<std::span<const std::byte>> SpansOf(std::span<const grpc::Slice> slices) {
  std::vector<std::span<const std::byte>> spans;
  spans.reserve(slices.size());
  for (const grpc::Slice& slice : slices) {
    spans.emplace_back(reinterpret_cast<const std::byte*>(slice.begin()), slice.size());
  }
  return spans;
}

// Calls visit(std::span<const std::byte>) for the non-empty pieces of a payload, in order. `range` must come
// from a scan of these slices.
template <typename Visit>
void ForEachPiece(Slices slices, const PayloadRange& range, Visit&& visit) {
  std::size_t slice = range.slice;
  std::size_t offset = range.offset;
  for (std::size_t left = range.length; left > 0; ++slice, offset = 0) {
    const std::size_t size = std::min(left, slices[slice].size() - offset);
    if (size > 0) visit(slices[slice].subspan(offset, size));
    left -= size;
  }
}

}  // namespace warpline

#endif  // WARPLINE_PROTO_WIRE_SLICES_H_
