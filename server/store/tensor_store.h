// Resident tensors: memory of devices that clients hold under leases.
#ifndef WARPLINE_SERVER_STORE_TENSOR_STORE_H_
#define WARPLINE_SERVER_STORE_TENSOR_STORE_H_

#include <atomic>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "kernels/program.h"
#include "server/base/clock.h"
#include "server/base/mutex.h"
#include "server/base/owner.h"
#include "server/base/owner_limits.h"
#include "server/memory/buffer.h"
#include "server/observe/metrics.h"
#include "server/observe/owner_metrics.h"
#include "server/schedule/fair_budget.h"
#include "server/store/byte_ranges.h"
#include "server/store/replicas.h"
#include "server/store/secret_id.h"
#include "server/store/streamed_call.h"

namespace warpline {

// A tensor lives from Add or Create until it is dropped or its lease ends. Its memory lives until the last
// use that still has it has ended. The lease restarts whenever a use ends, and does not end during a use.
// Errors show only the last digits of an id.
//
// Thread-safe. Outlives everything that it returns.
class TensorStore {
 public:
  struct Options {
    absl::Duration default_ttl = absl::Minutes(10);
    absl::Duration max_ttl = absl::Hours(24);
    std::size_t max_tensors = 32768;
    std::vector<std::size_t> device_bytes;  // maximum for all tensors of each device
    LimitsOf limits_of = nullptr;
    OwnerMetrics* owner_metrics = nullptr;  // null if there are no identities
    const Replicas* replicas = nullptr;     // for List; may be null. Outlives the store.
  };
  using AllocateMemory = std::function<absl::StatusOr<Buffer>(int device, std::size_t bytes)>;

  // The facts about a tensor that its owner may know.
  struct Info {
    std::string id;
    TensorSpec spec;
    int device = 0;
    absl::Duration ttl;             // length of the lease that remains if the tensor is not used
    std::size_t missing_bytes = 0;  // bytes that must still be written before it can be read
    Replicas::Devices replicas;     // the devices that have one; set by List only
  };

 private:
  struct Entry;
  struct Use;

 public:
  // A complete tensor in use. `memory` keeps it from expiring.
  struct Reading {
    Info info;
    Buffer memory;
    std::shared_ptr<StreamedCall> call;  // the call whose result it is; null for others
    std::size_t result = 0;              // its number among the results of the call
  };

  // A range of a tensor that is being written; it grows at its end. If this is destroyed without Commit, the
  // written bytes do not count. No other writer may write to the range. Not thread-safe.
  class Writing {
   public:
    Writing() = default;
    Writing(Writing&& other) noexcept { *this = std::move(other); }
    Writing& operator=(Writing&& other) noexcept;
    ~Writing() { Abandon(); }

    // The memory of the tensor, which this keeps alive.
    const Buffer& memory() const { return memory_; }
    const ByteRange& range() const { return range_; }
    std::size_t size() const { return memory_.bytes().size(); }  // of the tensor
    // The call whose upload it is; null for others.
    const std::shared_ptr<StreamedCall>& call() const { return call_; }
    // Adds the next `bytes` to the range. INVALID_ARGUMENT, with the range, if they go beyond the end of the
    // tensor or have been written already; ABORTED with a delay if another writer is writing them.
    absl::Status Extend(std::size_t bytes);
    // The bytes of the range have been written and count from now on. Returns how many bytes of the tensor
    // are still missing.
    std::size_t Commit();
    // Ends the write without Commit. Nothing may be written after this.
    void Abandon();

   private:
    friend class TensorStore;
    Buffer memory_;
    ByteRange range_;
    TensorStore* store_ = nullptr;
    std::shared_ptr<Entry> entry_;
    std::shared_ptr<StreamedCall> call_;
  };

  TensorStore(Options options, AllocateMemory allocate, Metrics& metrics);
  ~TensorStore();
  TensorStore(const TensorStore&) = delete;
  TensorStore& operator=(const TensorStore&) = delete;

  // Converts seconds of a request; 0 means the default. INVALID_ARGUMENT, with the limit, if a lease cannot
  // have this length.
  absl::StatusOr<absl::Duration> Ttl(double seconds) const;
  // Leases that are asked for from now on are at most this long.
  void SetMaxTtl(absl::Duration max_ttl) { max_ttl_seconds_ = absl::ToDoubleSeconds(max_ttl); }
  std::size_t device_bytes(int device) const {
    return options_.device_bytes[static_cast<std::size_t>(device)];
  }
  // Chooses the device for tensors of `bytes` bytes in total. First choice is the device that has most bytes
  // of the request's operands (`operands`: bytes by device, or empty). Among equal ones, it prefers one with
  // room for the tensors, also within the owner's quota, then the one where the client has most, then the one
  // with most bytes left.
  int DeviceFor(const Caller& caller, std::size_t bytes, std::span<const std::size_t> operands = {}) const;

  // RESOURCE_EXHAUSTED, without a delay, if the owner's tensors on one device can never have this many bytes.
  absl::Status CheckEverFits(OwnerId owner, std::size_t bytes) const;
  // Allocates memory for one more tensor of this caller, which counts from now on. RESOURCE_EXHAUSTED, with
  // the figures, if the device has no room, the owner's quota is used up, or the caller has its share of the
  // number of tensors; with a delay if other tensors use the room.
  absl::StatusOr<Buffer> Allocate(const Caller& caller, int device, std::size_t bytes);
  // Adds a complete tensor, in memory from Allocate.
  Info Add(OwnerId owner, const TensorSpec& spec, absl::Duration ttl, Buffer memory);
  // Creates a tensor with no bytes written yet.
  absl::StatusOr<Info> Create(const Caller& caller, const TensorSpec& spec, absl::Duration ttl, int device);

  // Tensors of a streamed call, in memory of the call. List does not show them. AddUpload adds a tensor that
  // can only be written, until RemoveUploads, and returns its id.
  std::string AddUpload(OwnerId owner, const TensorSpec& spec, Buffer memory,
                        std::shared_ptr<StreamedCall> call);
  void RemoveUploads(OwnerId owner, std::span<const std::string> ids);
  // Adds a result. The leases of all results of a call restart when enough new bytes of them have been read
  // (StreamedCall::min_progress), and at no other event.
  Info AddResult(OwnerId owner, const TensorSpec& spec, absl::Duration ttl, Buffer memory,
                 std::shared_ptr<StreamedCall> call);

  // Drops results that nobody has used for `idle`.
  void DropIdleResults(absl::Duration idle);

  // All of these return NOT_FOUND for an unknown id, or FAILED_PRECONDITION for another server's id. Read:
  // INVALID_ARGUMENT, with the first missing range, if the tensor is not complete.
  absl::StatusOr<Reading> Read(OwnerId owner, std::string_view id);
  // Returns an empty range at `offset`.
  absl::StatusOr<Writing> Write(OwnerId owner, std::string_view id, std::size_t offset);
  // Returns whether the tensor is a result of a streamed call.
  bool IsStreamedResult(OwnerId owner, std::string_view id);
  // Drops the tensor. Returns its memory, which others may still use.
  absl::StatusOr<Buffer> Drop(OwnerId owner, std::string_view id);
  // Restarts the lease, with its old length if there is no `ttl`.
  absl::StatusOr<Info> Renew(OwnerId owner, std::string_view id, std::optional<absl::Duration> ttl);

  // The same for many ids at a time. The lock is released now and then, so that others get it. DropEach drops
  // the tensors that exist, and returns their memory.
  std::vector<Buffer> DropEach(OwnerId owner, std::span<const std::string> ids);
  // Returns the length of each tensor's new lease; zero where there is no such tensor.
  std::vector<absl::Duration> RenewEach(OwnerId owner, std::span<const std::string> ids,
                                        std::optional<absl::Duration> ttl);

  // Returns at most `count` of the owner's tensors, in the order of their ids, beginning after the id
  // `after`.
  std::vector<Info> List(OwnerId owner, std::string_view after, std::size_t count) const;
  std::size_t size() const;

 private:
  using Key = std::pair<OwnerId, std::string>;
  using Expiry = std::pair<MonotonicTime, Entry*>;

  // Restarts the lease of the entry.
  void RenewEntry(Entry& entry, std::optional<absl::Duration> ttl) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns the tensor, or why there is none. Uploads are found only if `writes` is set.
  absl::StatusOr<std::shared_ptr<Entry>> Find(OwnerId owner, std::string_view id, bool writes = false)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::string Insert(OwnerId owner, std::shared_ptr<Entry> entry) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns the entry, so that its memory can be freed after the lock is released.
  std::shared_ptr<Entry> Remove(Entry& entry) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void BeginLease(Entry& entry) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void EndUse(const std::shared_ptr<Entry>& entry);
  Info InfoOf(const Entry& entry) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns an error if the owner may not have `bytes` more bytes on the device.
  absl::Status CheckQuota(OwnerId owner, int device, std::size_t bytes) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns the used fraction of the owner's quota, on the device where it is highest; 0 without a quota.
  double QuotaRatio(OwnerId owner) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Charge(const Caller& caller, int device, std::size_t bytes, int tensors)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ExpireInTurn();

  const Options options_;
  std::atomic<double> max_ttl_seconds_;
  const AllocateMemory allocate_;
  const SecretIds ids_{"tensor", "put"};
  FairBudget number_;  // of tensors
  Gauge tensors_;
  std::vector<Gauge> bytes_;
  Counter expired_;
  mutable Mutex mutex_;
  std::map<Key, std::shared_ptr<Entry>> entries_ ABSL_GUARDED_BY(mutex_);
  // The time when each lease must be checked next, at the latest its end. When a use of a tensor restarts the
  // lease, the time here stays as it was: ExpireInTurn moves it when the time has come.
  std::set<Expiry> expiries_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::size_t> used_bytes_ ABSL_GUARDED_BY(mutex_);                          // by device
  std::map<std::pair<OwnerId, int>, std::size_t> owners_bytes_ ABSL_GUARDED_BY(mutex_);  // only those above 0
  absl::flat_hash_map<std::pair<Claimant, int>, std::size_t> clients_bytes_
      ABSL_GUARDED_BY(mutex_);  // only those above 0
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread expiring_;
};

}  // namespace warpline

#endif  // WARPLINE_SERVER_STORE_TENSOR_STORE_H_
