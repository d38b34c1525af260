// Memory that this process shares with a server on the same host. Elements in it are neither sent nor copied.
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

// The handle of a region, which Client::OpenRegion makes. Arrays in the region are allocated by Allocate, or
// as results (Destination::region). They are used like all other arrays. The server reads an operand in place
// if it lies in a region of the client, as a whole or in part of an array. It writes a result in place if the
// destination lies in such a region. One request may mix these with arrays that are sent and with tensors on
// the server.
//
// There is one exception: a result whose size is not known beforehand comes in the response, and is then
// copied to its place. This is so if an operand is a tensor of which only the id is given.
//
// Life times: Arrays keep the region's memory. They also keep the region open while the client lives. The
// region is closed when the handle and all arrays have gone. It is lost when the client goes, or when the
// server closes its connection, for example because it has ended. Every use of a lost region is Unavailable,
// and another region must be opened. The memory of a lost region stays as it is until the arrays have gone.
//
// Calls: Memory in a region that a call reads must not change until the call is over. Memory that a call
// writes must not be used until then. A call that ends with an error, or misses its deadline, is over only
// when the server confirms that it no longer uses the region. Then the memory is the caller's again. So such
// a call may return, or call back, later than its deadline, by at most the time that the job takes on the
// device. If the server does not confirm within a minute, the region is lost. If an array goes while a call
// uses it, its memory is reused only after the call.
//
// A forked child process does not have the memory: it must not use the region, nor arrays in it.
//
// Thread-safe. Movable, not copyable. It may outlive its client.
class Region {
 public:
  explicit Region(std::shared_ptr<SharedRegion> shared);
  ~Region();
  Region(Region&& other) noexcept;
  Region& operator=(Region&& other) noexcept;

  // Allocates a dense array, not initialised. It begins at a multiple of 4096 bytes, or of 256 bytes if the
  // array is smaller than 4096 bytes. ResourceExhausted, with the figures, if no gap between the arrays is
  // large enough; InvalidArgument for impossible sizes; Unavailable if the region is lost.
  absl::StatusOr<Array> Allocate(DType dtype, const Shape& shape);

  // The size of the region: the requested bytes, rounded up to whole pages.
  std::size_t bytes() const;
  // The bytes of the region that belong to no array.
  std::size_t free_bytes() const;
  // Returns OK while the region is open. Returns Unavailable, with the reason, once it is lost.
  absl::Status status() const;

  // Only for the library itself.
  const std::shared_ptr<SharedRegion>& shared() const { return shared_; }

 private:
  std::shared_ptr<SharedRegion> shared_;
};

}  // namespace warpline::client

#endif  // WARPLINE_REGION_H_
