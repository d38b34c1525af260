// Resident tensors: arrays that stay on a device of the server between calls. Their bytes travel only once,
// however often they are used.
//
//   auto weights = client.Put({.dtype = DType::kF32, .shape = {512, 512}, .data = w}, absl::Seconds(10));
//   auto y = client.Gemm({.a = x, .b = *weights}, absl::Seconds(5), {.destination = {.keep =
//   absl::Minutes(5)}}); auto elements = client.Get(*y->tensor, absl::Seconds(10));
#ifndef WARPLINE_TENSOR_H_
#define WARPLINE_TENSOR_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "kernels/dtype.h"
#include "kernels/shape.h"
#include "warpline/array.h"

namespace warpline::client {

class Leases;

// A resident tensor as its owner sees it.
struct TensorInfo {
  // The id. It is a secret that gives access to the elements; use ShortId() in messages.
  std::string id;
  DType dtype = DType::kF32;
  Shape shape{};
  // The ordinal of the device that holds the tensor.
  int device = 0;
  // The size of all elements in bytes.
  std::size_t bytes = 0;
  // The bytes that must still be put before the tensor can be read.
  std::size_t missing_bytes = 0;
  // The ordinals of further devices that have a copy at present. Only ListTensors sets this.
  std::vector<int> replicas{};
  // The time that its lease still lasts if it is neither used nor renewed.
  absl::Duration ttl{};
};

// Returns the part of an id that may be shown: its last 8 digits, behind three dots.
std::string ShortId(std::string_view id);

// The handle of a resident tensor. While there is a handle, the client renews the tensor's lease in the
// background. It drops the tensor soon after the handle has gone, or when the client goes. Destruction does
// not wait for that drop. If the drop does not succeed, the lease ends. A handle may outlive its client, but
// does nothing then. It can only be moved. Not thread-safe; different handles may be used from different
// threads. Tensors are renewed and dropped up to a thousand in one call.
class Tensor {
 public:
  // Makes a handle that neither renews nor drops the tensor.
  explicit Tensor(TensorInfo info) : info_(std::move(info)) {}
  // Makes a handle whose lease `leases` renews. The tensor is also dropped in the end if it is `owned`.
  Tensor(TensorInfo info, const std::shared_ptr<Leases>& leases, bool owned);
  ~Tensor() { LetGo(true); }
  Tensor(Tensor&& other) noexcept;
  Tensor& operator=(Tensor&& other) noexcept;

  // The state of the tensor when the handle was made.
  const TensorInfo& info() const { return info_; }
  const std::string& id() const { return info_.id; }
  DType dtype() const { return info_.dtype; }
  const Shape& shape() const { return info_.shape; }
  std::size_t bytes() const { return info_.bytes; }
  int device() const { return info_.device; }

  // Detaches this handle: it no longer renews or drops the tensor, which then lasts as long as its lease.
  // Returns the id. Client::Attach finds the tensor by this id, from any process.
  std::string Release();

  // Drops the tensor in the background, as the destructor does, but the handle keeps its info. Does nothing
  // if the handle does not own the tensor. Other threads may read the handle meanwhile.
  void Drop() { LetGo(true); }

  // Converts to an operand, which is valid while the tensor exists.
  operator Operand() const {  // NOLINT: a tensor can be used wherever an operand is expected
    return {.dtype = info_.dtype, .shape = info_.shape, .resident = info_.id};
  }

 private:
  void LetGo(bool drop);

  TensorInfo info_;
  std::shared_ptr<Leases> leases_;  // null: this handle renews no lease
  std::uint64_t key_ = 0;           // of the lease
};

// Called from time to time during a transfer with the number of bytes transferred so far. Only one thread
// calls it at a time, and the transfer waits for it. Bytes that are sent again after a failure are counted
// again, so the number can decrease.
using Progress = std::function<void(std::size_t bytes)>;

struct PutOptions {
  // The length of the lease from its last use or renewal; zero: the server's default.
  absl::Duration ttl{};
  // The number of connections that carry the elements at the same time, at most 64. 0: one for each
  // 2 MiB, at least one and at most eight.
  int channels = 0;
  // The ordinal of the device; nothing: the device with the most memory left.
  std::optional<int> device{};
  // Sent as x-request-id with every call of the transfer. If empty, the server makes the ids.
  std::string request_id{};
  Progress progress{};
};

struct GetOptions {
  Destination destination{};
  // The next three fields are as in PutOptions.
  int channels = 0;
  std::string request_id{};
  Progress progress{};
};

struct AttachOptions {
  // True to renew the lease in the background while the handle exists. The tensor is not dropped in either
  // case.
  bool renew = false;
};

}  // namespace warpline::client

#endif  // WARPLINE_TENSOR_H_
