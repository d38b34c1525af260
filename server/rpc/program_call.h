// One call of KernelService, from its message to its answer.
#ifndef WARPLINE_SERVER_RPC_PROGRAM_CALL_H_
#define WARPLINE_SERVER_RPC_PROGRAM_CALL_H_

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "server/observe/metrics.h"
#include "server/plan/plan.h"
#include "server/rpc/call_context.h"
#include "server/rpc/cancellation.h"
#include "server/rpc/codec/codec.h"
#include "server/rpc/message_slices.h"
#include "server/rpc/result_sinks.h"
#include "server/schedule/fair_budget.h"
#include "server/schedule/job.h"
#include "server/store/placement.h"
#include "server/store/streamed_call.h"

namespace warpline {

class UnaryCall;

// The phases of a call. One thread at a time works on the call. A cancellation by the client, or the
// deadline, ends the phases `uploading` and `queued` at once. In other phases the call notices it at its next
// check, and ends or drops its result.
//
// | phase     | method       | thread            | what ends it              | held, with the above         |
// |-----------|--------------|-------------------|---------------------------|------------------------------|
// | received  | Receive      | of the call       | the scan of the message   | message, tensors it names    |
// | planned   | Compile      | a compiler        | the plan                  | place among the compilers    |
// | admitted  | Admit        | of one of these   | the ticket                | ticket                       |
// | streamed  | TakeStreams  | a compiler        | memory on the device      | that memory, its windows     |
// | uploading | AwaitUploads | none              | the last byte, a watchdog | the same                     |
// | queued    | Queue        | none              | the scheduler             | the same                     |
// | running   |              | a lane's          | the device                | a lane, staging, results     |
// | placing   | Ran, Place   | a lane's*         | itself                    | ticket, staging of results   |
// | sending   | Send         | then gRPC's       | the client's last byte    | the same                     |
//
// *: a second job is made by a compiler. A drain ends `streamed` with UNAVAILABLE. It also ends `uploading`:
// at once if nothing arrives, otherwise after half of the grace period. It waits for calls in all other
// phases.
//
// A program whose result sizes are known late is queued twice: the second job copies the results to their
// destinations.
class ProgramCall final : public std::enable_shared_from_this<ProgramCall> {
 public:
  // Ends with exactly one answer. Never blocks.
  static void Start(CallContext& context, UnaryCall& call, const Codec& codec);

  ProgramCall(CallContext& context, UnaryCall& call, const Codec& codec);
  ProgramCall(const ProgramCall&) = delete;
  ProgramCall& operator=(const ProgramCall&) = delete;

 private:
  // The phases. Each leads to the next one, or to Fail.
  void Receive();
  void Compile();
  void Admit();
  void TakeStreams(std::optional<int> device, Job job);
  void AwaitUploads(std::vector<Buffer> memory, Job job);
  void Queue(Job job);
  void Ran(Result result);
  void QueueCopies(Result result);
  void Place(Result result);
  void Send(Result& result, const std::vector<v1::Tensor>& placed);
  // Ends the call with an error.
  void Fail(const absl::Status& status);

  absl::Status Scan();
  absl::Status Bind(Job& job);
  JobPlacement::Parts Placing() const;
  void SetCaller(Job& job);
  void FreeTensors() const;
  v1::Execution ExecutionOf(const Result& result) const;
  void Observe(const PhaseSeconds& seconds) const;
  void CountForOwner(std::string_view code) const;
  // Releases everything that the call holds, before its answer.
  void Release();

  CallContext& context_;
  const CallEngine& engine_;
  UnaryCall& call_;
  const Codec& codec_;
  Cancellation cancellation_;

  // From `received` on. The payloads are ranges of the slices.
  MessageSlices slices_;
  ScannedMessage message_;
  // The tensors to which the message's references refer. `referred_` has their memory, which keeps them from
  // expiring until the call is bound. `references_` describes them for the plan.
  std::vector<Buffer> referred_;
  References references_;
  std::string key_;
  FairBudget::Part compiling_;
  // From `planned` on. The second plan replaces the first.
  PlanPtr plan_;
  RequestKind kind_;
  RequestSource source_ = RequestSource::kInline;
  // From `admitted` on.
  ResultSinks sinks_;
  std::shared_ptr<StreamedCall> streamed_;
  // The report of the first of two jobs.
  std::vector<std::string> variants_;
  PhaseSeconds seconds_;
  std::size_t peer_bytes_ = 0;
};

}  // namespace warpline

#endif  // WARPLINE_SERVER_RPC_PROGRAM_CALL_H_
