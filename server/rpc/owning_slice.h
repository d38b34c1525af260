// Slices over our own memory: gRPC sends directly from it.
#ifndef WARPLINE_SERVER_RPC_OWNING_SLICE_H_
#define WARPLINE_SERVER_RPC_OWNING_SLICE_H_

#include <grpcpp/support/slice.h>

#include <atomic>
#include <cstddef>
#include <span>
#include <utility>

namespace warpline {

// Keeps the bytes alive by `owner`, which is destroyed when the last reference to the slice is dropped:
// inside gRPC, on any of its threads, perhaps with locks held.
template <typename Owner>
grpc::Slice SliceOver(std::span<std::byte> bytes, Owner owner) {
  struct Held {
    Owner owner;
    // gRPC counts references with atomics that sanitizers cannot see. They can see this one.
    std::atomic<bool> handed_over = false;
  };
  auto* held = new Held{std::move(owner)};
  held->handed_over.store(true, std::memory_order_release);  // the last access in this function
  const auto destroy = [](void* memory) {
    auto* held = static_cast<Held*>(memory);
    static_cast<void>(held->handed_over.load(std::memory_order_acquire));
    delete held;
  };
  return grpc::Slice(bytes.data(), bytes.size(), destroy, held);
}

}  // namespace warpline

#endif  // WARPLINE_SERVER_RPC_OWNING_SLICE_H_
