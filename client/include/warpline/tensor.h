// Resident tensors: arrays that stay on a device of the server between calls, so that their bytes travel once
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

#include "absl/time/time.h"
#include "kernels/dtype.h"
#include "kernels/shape.h"
#include "warpline/array.h"

namespace warpline::client {

class Leases;

// A resident tensor as its owner sees it.
struct TensorInfo {
  // A secret, which gives access to the elements. ShortId() is for messages.
  std::string id;
  DType dtype = DType::kF32;
  Shape shape{};
  // Ordinal of the device on which it lies.
  int device = 0;
  // Of the elements.
  std::size_t bytes = 0;
  // Of these, what is still to be put before the tensor can be read.
  std::size_t missing_bytes = 0;
  // How long its lease still lasts if it is neither used nor renewed.
  absl::Duration ttl{};
};

// What of an id may be shown: its last 8 digits, behind three dots.
std::string ShortId(std::string_view id);

// The handle of a resident tensor. The client renews the tensor's lease in the background while there is a
// handle, and drops the tensor soon after the handle has gone, or when the client goes. Destruction does not
// wait for that; if it does not succeed, the lease ends. A handle may outlive its client, but does nothing
// then. It can only be moved. Not thread-safe; different handles may be used from different threads.
class Tensor {
 public:
  // One that nobody renews or drops.
  explicit Tensor(TensorInfo info) : info_(std::move(info)) {}
  // One that `leases` renews, and drops if it is `owned`.
  Tensor(TensorInfo info, const std::shared_ptr<Leases>& leases, bool owned);
  ~Tensor() { LetGo(true); }
  Tensor(Tensor&& other) noexcept;
  Tensor& operator=(Tensor&& other) noexcept;

  // As it was when the handle was made.
  const TensorInfo& info() const { return info_; }
  const std::string& id() const { return info_.id; }
  DType dtype() const { return info_.dtype; }
  const Shape& shape() const { return info_.shape; }
  std::size_t bytes() const { return info_.bytes; }
  int device() const { return info_.device; }

  // Leaves the tensor to itself: this handle neither renews nor drops it any more, and it lasts for as long
  // as its lease. Returns the id, with which Client::Attach finds it, from any process.
  std::string Release();

  // Valid for as long as the tensor is there.
  operator Operand() const {  // NOLINT: wherever an operand is wanted, a tensor may stand
    return {.dtype = info_.dtype, .shape = info_.shape, .resident = info_.id};
  }

 private:
  void LetGo(bool drop);

  TensorInfo info_;
  std::shared_ptr<Leases> leases_;  // null: there is no lease of ours
  std::uint64_t key_ = 0;           // of the lease
};

// Called from time to time during a transfer with the bytes that have travelled so far, by one thread at a
// time, which the transfer waits for. What is sent again after a failure is counted anew, so that the figure
// can fall.
using Progress = std::function<void(std::size_t bytes)>;

struct PutOptions {
  // How long the lease lasts from its last use or renewal; zero: the server's default.
  absl::Duration ttl{};
  // Connections that carry the elements at the same time, at most 16; 0: one, or four from 64 MiB on.
  int channels = 0;
  // Ordinal of the device; nothing: the one with the most memory left.
  std::optional<int> device{};
  // Sent as x-request-id with every call of the transfer; empty: the server makes some.
  std::string request_id{};
  Progress progress{};
};

struct GetOptions {
  Destination destination{};
  // As of PutOptions.
  int channels = 0;
  std::string request_id{};
  Progress progress{};
};

struct AttachOptions {
  // The lease is renewed in the background while there is the handle. It is not dropped, either way.
  bool renew = false;
};

}  // namespace warpline::client

#endif  // WARPLINE_TENSOR_H_
