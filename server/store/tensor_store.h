// Resident tensors: memory of devices that clients hold under leases.
#ifndef WARPLINE_SERVER_STORE_TENSOR_STORE_H_
#define WARPLINE_SERVER_STORE_TENSOR_STORE_H_

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
#include "server/store/secret_id.h"
#include "server/store/streamed_call.h"

namespace warpline {

// A tensor lives from Add or Create until it is dropped or its lease ends, and its memory until the last of
// those who use it then has let go of it. The lease begins anew whenever a use ends, and does not end during
// one. Errors say of an id no more than its last digits.
//
// Thread-safe. Outlives what it gives out.
class TensorStore {
 public:
  struct Options {
    absl::Duration default_ttl = absl::Minutes(10);
    absl::Duration max_ttl = absl::Hours(24);
    std::size_t max_tensors = 32768;
    std::vector<std::size_t> device_bytes;  // what the tensors of each device may have together
    LimitsOf limits_of = nullptr;
    OwnerMetrics* owner_metrics = nullptr;  // null where there are no identities
  };
  using AllocateMemory = std::function<absl::StatusOr<Buffer>(int device, std::size_t bytes)>;

  // The facts about a tensor that its owner may know.
  struct Info {
    std::string id;
    TensorSpec spec;
    int device = 0;
    absl::Duration ttl;             // how long the lease still lasts without a use
    std::size_t missing_bytes = 0;  // that are still to be written before it can be read
  };

 private:
  struct Entry;
  struct Use;

 public:
  // A complete tensor in use: `memory` keeps it from expiring.
  struct Reading {
    Info info;
    Buffer memory;
    std::shared_ptr<StreamedCall> call;  // whose result it is; null for others
    std::size_t result = 0;              // its number among the results of the call
  };

  // A range of a tensor that is being written, and grows at its end. If it is destroyed without Commit,
  // nothing of it counts. The bytes of the range belong to this writer alone. Not thread-safe.
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
    // Adds the next `bytes` to the range. INVALID_ARGUMENT, with the range, if they end beyond the tensor or
    // are there already; ABORTED with a delay if another writer has them.
    absl::Status Extend(std::size_t bytes);
    // The range counts from now on; its bytes have been written. Returns how many bytes the tensor still
    // lacks.
    std::size_t Commit();
    // Ends without. Nothing may be written any more.
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

  // Seconds as a request gives them: 0 is the default. INVALID_ARGUMENT, with the limit, for anything that is
  // no length of a lease.
  absl::StatusOr<absl::Duration> Ttl(double seconds) const;
  absl::Duration max_ttl() const { return options_.max_ttl; }
  std::size_t device_bytes(int device) const {
    return options_.device_bytes[static_cast<std::size_t>(device)];
  }
  // Chooses the device for tensors of `bytes` together: the one where most bytes of the request's operands
  // lie (`operands` has the bytes by device, or is empty). Of equal ones, one that has room for the tensors,
  // also within the owner's quota, then the one where the client has most, then the one with most bytes left.
  int DeviceFor(const Caller& caller, std::size_t bytes, std::span<const std::size_t> operands = {}) const;

  // RESOURCE_EXHAUSTED, without a delay, if the owner's tensors on one device can never have so many bytes.
  absl::Status CheckEverFits(OwnerId owner, std::size_t bytes) const;
  // Memory for one more tensor of this caller, which counts from here on. RESOURCE_EXHAUSTED, with the
  // figures, if there is none left, of the device's or of the owner's, or if the caller has as many tensors
  // as its part of all of them; with a delay if there would be room without the others.
  absl::StatusOr<Buffer> Allocate(const Caller& caller, int device, std::size_t bytes);
  // A tensor of which all bytes are there, in memory that Allocate gave.
  Info Add(OwnerId owner, const TensorSpec& spec, absl::Duration ttl, Buffer memory);
  // A tensor of which none are.
  absl::StatusOr<Info> Create(const Caller& caller, const TensorSpec& spec, absl::Duration ttl, int device);

  // Tensors of a call whose arrays travel apart, in memory that the call has. List does not know them.
  // An upload can only be written, until RemoveUploads. Returns its id.
  std::string AddUpload(OwnerId owner, const TensorSpec& spec, Buffer memory,
                        std::shared_ptr<StreamedCall> call);
  void RemoveUploads(OwnerId owner, std::span<const std::string> ids);
  // A result. The lease of all results of a call begins anew when enough of them has been read for the first
  // time (StreamedCall::min_progress), and by nothing else.
  Info AddResult(OwnerId owner, const TensorSpec& spec, absl::Duration ttl, Buffer memory,
                 std::shared_ptr<StreamedCall> call);

  // Drops results that nobody has used for so long.
  void DropIdleResults(absl::Duration idle);

  // NOT_FOUND, or FAILED_PRECONDITION for another server's id, from all of these.
  // INVALID_ARGUMENT, with the first range that is missing, if the tensor is not complete.
  absl::StatusOr<Reading> Read(OwnerId owner, std::string_view id);
  // An empty range at `offset`.
  absl::StatusOr<Writing> Write(OwnerId owner, std::string_view id, std::size_t offset);
  // Returns whether the tensor is the result of a call whose arrays travel apart.
  bool IsStreamedResult(OwnerId owner, std::string_view id);
  // Returns the memory, which others may still use.
  absl::StatusOr<Buffer> Drop(OwnerId owner, std::string_view id);
  // Without a ttl, for as long as before.
  absl::StatusOr<Info> Renew(OwnerId owner, std::string_view id, std::optional<absl::Duration> ttl);

  // The same for many ids at a time. Others get the lock in between.
  // Drops those tensors that there are, and returns their memory.
  std::vector<Buffer> DropEach(OwnerId owner, std::span<const std::string> ids);
  // Returns the length of each tensor's new lease; zero where there is no such tensor.
  std::vector<absl::Duration> RenewEach(OwnerId owner, std::span<const std::string> ids,
                                        std::optional<absl::Duration> ttl);

  // The owner's tensors whose ids come behind `after`, in order, at most so many.
  std::vector<Info> List(OwnerId owner, std::string_view after, std::size_t count) const;
  std::size_t size() const;

 private:
  using Key = std::pair<OwnerId, std::string>;
  using Expiry = std::pair<MonotonicTime, Entry*>;

  // Begins the lease of the entry anew.
  void RenewEntry(Entry& entry, std::optional<absl::Duration> ttl) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The tensor, or why there is none. Only those who write find uploads.
  absl::StatusOr<std::shared_ptr<Entry>> Find(OwnerId owner, std::string_view id, bool writes = false)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::string Insert(OwnerId owner, std::shared_ptr<Entry> entry) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Hands the entry over, so that its memory goes when the lock is no longer held.
  std::shared_ptr<Entry> Remove(Entry& entry) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void BeginLease(Entry& entry) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void EndUse(const std::shared_ptr<Entry>& entry);
  Info InfoOf(const Entry& entry) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Why the owner may not have so many bytes more on the device.
  absl::Status CheckQuota(OwnerId owner, int device, std::size_t bytes) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // How much of its quota the owner uses, on the device where it is the most; 0 without a quota.
  double QuotaRatio(OwnerId owner) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Charge(const Caller& caller, int device, std::size_t bytes, int tensors)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ExpireInTurn();

  const Options options_;
  const AllocateMemory allocate_;
  const SecretIds ids_{"tensor", "put"};
  FairBudget number_;  // of tensors
  Gauge tensors_;
  std::vector<Gauge> bytes_;
  Counter expired_;
  mutable Mutex mutex_;
  std::map<Key, std::shared_ptr<Entry>> entries_ ABSL_GUARDED_BY(mutex_);
  // When each lease ends at the earliest: uses renew leases without a change here.
  std::set<Expiry> expiries_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::size_t> used_bytes_ ABSL_GUARDED_BY(mutex_);                          // by device
  std::map<std::pair<OwnerId, int>, std::size_t> owners_bytes_ ABSL_GUARDED_BY(mutex_);  // those above 0
  absl::flat_hash_map<std::pair<Claimant, int>, std::size_t> clients_bytes_
      ABSL_GUARDED_BY(mutex_);  // likewise
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread expiring_;
};

}  // namespace warpline

#endif  // WARPLINE_SERVER_STORE_TENSOR_STORE_H_
