// One call of Run, through all its attempts.
#ifndef WARPLINE_CLIENT_SRC_CALL_H_
#define WARPLINE_CLIENT_SRC_CALL_H_

#include <grpcpp/support/byte_buffer.h>

#include <functional>
#include <future>
#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/src/attempts.h"
#include "client/src/connection.h"
#include "client/src/message_writer.h"
#include "client/src/placed.h"
#include "client/src/region_call.h"
#include "client/src/region_client.h"
#include "client/src/region_pool.h"
#include "client/src/tensor_client.h"
#include "warpline/options.h"
#include "warpline/requests.h"

namespace warpline::client {

// The parts of a client that its calls use. They outlive the calls.
struct CallSite {
  RegionClient& regions;
  RegionPool* pool;  // null: the client has no pool
  Connection& connection;
  TensorClient& tensors;
};

// An attempt has these phases: place (large arrays in the pool), encode, send, wait, decode. A failed attempt
// is withdrawn from the regions that it uses before its memory is reused. Arrays that travel in ranges are
// sent while the call waits, and its caller fetches them (Streaming). Either the waiting thread or the
// client's threads drive the call, never both. RunArgs::one_step describes the errors.
class Call : public std::enable_shared_from_this<Call> {
 public:
  using Done = std::function<void(absl::StatusOr<RunResult>)>;

  // `types`: the types of the results. If `keeps` is set, the call keeps a copy of the arguments, which Start
  // needs.
  Call(const CallSite& site, const RunArgs& args, ResultTypes types, const CallOptions& options,
       absl::Time deadline, bool keeps);

  // Returns the result. `transmit` sends the uploads.
  absl::StatusOr<RunResult> Wait(const RawChannel::Transmit& transmit = nullptr);
  // Returns at once. Calls `done` when the call has released everything that it used. `counted` is held until
  // then.
  void Start(Done done, std::shared_ptr<void> counted);

 private:
  // The phases of an attempt.
  absl::Status Place();
  absl::StatusOr<OutgoingMessage> Encode();
  absl::StatusOr<RunResult> Decode(const grpc::ByteBuffer& response);
  // True if the error may mean that a region was lost or is unknown to the server. Then the call may be sent
  // again, once.
  bool MayBeLostRegion(const absl::Status& status) const;
  // True if the server no longer uses memory of the last attempt, which has failed.
  bool IsWithdrawn() const;

  // Only for a thread that waits.
  absl::StatusOr<OutgoingMessage> PlaceAndEncode();
  absl::Status PlaceWithRetries();
  // Returns true if the call must be sent again at once.
  bool ResendAfter(const absl::Status& status);
  bool AwaitWithdrawal() const;

  // Only for a call that was started.
  void Send();
  void Withdraw(const absl::Status& status);
  void Failed(const absl::Status& status);
  void AfterWithdrawal(std::function<void(bool)> then);
  void Finish(absl::StatusOr<RunResult> result);

  std::shared_ptr<void> counted_;  // destroyed last
  const CallSite site_;
  Placed placed_;
  const CallOptions options_;
  const absl::Time deadline_;
  std::shared_ptr<RegionCall> attempt_;  // the last attempt
  std::future<void> withdrawn_;          // ready when the last attempt, if it failed, is withdrawn
  absl::Status error_;                   // the error of the last attempt
  bool was_resent_ = false;
  std::shared_ptr<Attempts> attempts_;  // only of a call that was started
  Done done_;
};

}  // namespace warpline::client

#endif  // WARPLINE_CLIENT_SRC_CALL_H_
