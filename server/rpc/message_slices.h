// The slices of a message. Any thread may release them.
#ifndef WARPLINE_SERVER_RPC_MESSAGE_SLICES_H_
#define WARPLINE_SERVER_RPC_MESSAGE_SLICES_H_

#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/slice.h>

#include <cstddef>
#include <utility>
#include <vector>

namespace warpline {

// Owns references to slices. The memory of a received slice returns to gRPC's resource quota with the last
// reference. In gRPC 1.51 that crashes if the quota is short of memory, unless the thread is inside gRPC's
// core: it wakes the code that reclaims memory, which needs an ExecCtx. Dropping a slice creates none, but
// destroying a byte buffer does. So here the last reference always belongs to a byte buffer.
class MessageSlices {
 public:
  MessageSlices() = default;
  explicit MessageSlices(std::vector<grpc::Slice> slices) : slices_(std::move(slices)) {}
  MessageSlices(MessageSlices&& other) noexcept : slices_(std::exchange(other.slices_, {})) {}
  MessageSlices& operator=(MessageSlices&& other) noexcept {
    if (this != &other) {
      Clear();
      slices_ = std::exchange(other.slices_, {});
    }
    return *this;
  }
  ~MessageSlices() { Clear(); }

  void Clear() {
    if (slices_.empty()) return;
    const grpc::ByteBuffer last(slices_.data(), slices_.size());
    slices_.clear();
  }

  std::size_t size() const { return slices_.size(); }
  auto begin() const { return slices_.begin(); }
  auto end() const { return slices_.end(); }
  const std::vector<grpc::Slice>& slices() const { return slices_; }

 private:
  std::vector<grpc::Slice> slices_;
};

}  // namespace warpline

#endif  // WARPLINE_SERVER_RPC_MESSAGE_SLICES_H_
