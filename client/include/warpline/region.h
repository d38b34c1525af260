// Memory that this process shares with a server on the same host, so that elements are neither sent nor
// copied.
//
//   auto region = client.OpenRegion(std::size_t{1} << 30, absl::Seconds(10));
//   auto x = region->Allocate(DType::kF32, {4096, 4096});
//   FillIn(static_cast<float*>(x->data()));
//   auto y = client.Transpose({.x = x->View()}, absl::Seconds(5), {.destination = {.region = &*region}});
#ifndef WARPLINE_REGION_H_
#define WARPLINE_REGION_H_

#include <cstddef>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/dtype.h"
#include "kernels/shape.h"
#include "warpline/array.h"

namespace warpline::client {

class SharedRegion;

// The handle of a region, which Client::OpenRegion makes. Arrays are allocated in it, by Allocate or as
// results (Destination::region), and used like all others: an operand that lies in a region of the client, as
// a whole or in part of an array, is read where it is, and a result whose destination does is written there.
// One request may mix these with arrays that are sent and with tensors on the server. (A result comes in the
// response, and is copied to its place, if its size is not known beforehand: where an operand is a tensor of
// which only the id is given.)
//
// Life times: arrays keep the region's memory, and keep the region open while the client lives. It is closed
// when the handle and all arrays have gone, and lost when the client goes or the server closes its
// connection, because it has ended for example. Then every use of it is Unavailable, its memory stays as it
// is until the arrays have gone, and another region is to be opened.
//
// Calls: what a call reads in a region must not change, and what it writes must not be used, until the call
// is over. A call that ends with an error, a deadline that passed among them, is over only when the server
// has confirmed that it does not use the region any more; then the memory is the caller's again. So such a
// call may return, or call back, somewhat later than its deadline, by no more than the job takes on the
// device. If the server does not confirm that within a minute, the region is lost. The memory of an array
// that goes while a call uses it is given out again after the call.
//
// A process that is forked off does not have the memory: it must not use the region, nor arrays in it.
//
// Thread-safe. It can only be moved. It may outlive its client.
class Region {
 public:
  explicit Region(std::shared_ptr<SharedRegion> shared);
  ~Region();
  Region(Region&& other) noexcept;
  Region& operator=(Region&& other) noexcept;

  // A dense array, not initialised, that begins at a multiple of 4096 bytes, or of 256 if it is smaller than
  // that. ResourceExhausted, with the figures, if no gap between the arrays is large enough; InvalidArgument
  // for impossible sizes; Unavailable if the region is lost.
  absl::StatusOr<Array> Allocate(DType dtype, const Shape& shape);

  // What was asked for, rounded up to whole pages.
  std::size_t bytes() const;
  // Of these, what no array has.
  std::size_t free_bytes() const;
  // OK while it is open; Unavailable, and why, once it is lost.
  absl::Status status() const;

  // For the library.
  const std::shared_ptr<SharedRegion>& shared() const { return shared_; }

 private:
  std::shared_ptr<SharedRegion> shared_;
};

}  // namespace warpline::client

#endif  // WARPLINE_REGION_H_
