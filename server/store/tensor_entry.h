// The entry that the tensor store keeps for each tensor. Only the store's own files use it.
#ifndef WARPLINE_SERVER_STORE_TENSOR_ENTRY_H_
#define WARPLINE_SERVER_STORE_TENSOR_ENTRY_H_

#include <cstddef>
#include <list>
#include <memory>

#include "absl/time/time.h"
#include "kernels/program.h"
#include "server/base/clock.h"
#include "server/memory/buffer.h"
#include "server/store/byte_ranges.h"
#include "server/store/tensor_store.h"

namespace warpline {

// How many tensors are dropped or renewed while the store's lock is held once.
inline constexpr std::size_t kTensorsAtOnce = 32;

// Guarded by the store's mutex.
struct TensorStore::Entry {
  Key key;
  TensorSpec spec;
  absl::Duration ttl;
  MonotonicTime lease_begin;
  MonotonicTime expiry;  // its key in expiries_
  int uses = 0;
  Buffer memory;
  bool complete = false;
  bool removed = false;
  bool is_upload = false;
  std::shared_ptr<StreamedCall> call;  // the call to which it belongs; null for resident tensors
  std::size_t result = 0;              // its number among the call's results
  ByteRanges written;
  std::list<const ByteRange*> writing;

  bool IsResult() const { return call != nullptr && !is_upload; }
  // A use keeps a tensor from expiring. It does not keep the result of a call: only sending it to the client
  // does.
  bool IsKept() const { return uses > 0 && !IsResult(); }
  MonotonicTime LeaseEnd() const {
    return (IsResult() ? call->progressed() : lease_begin) + absl::ToChronoNanoseconds(ttl);
  }
};

}  // namespace warpline

#endif  // WARPLINE_SERVER_STORE_TENSOR_ENTRY_H_
