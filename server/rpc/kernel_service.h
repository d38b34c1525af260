// KernelService: from a received call to a submitted job, and from its result to the response.
#ifndef WARPLINE_SERVER_RPC_KERNEL_SERVICE_H_
#define WARPLINE_SERVER_RPC_KERNEL_SERVICE_H_

#include <grpcpp/support/slice.h>

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "server/base/worker_pool.h"
#include "server/device/backend.h"
#include "server/memory/copy_payload.h"
#include "server/memory/staging_pool.h"
#include "server/observe/metrics.h"
#include "server/plan/plan_cache.h"
#include "server/rpc/codec/codec.h"
#include "server/rpc/message_slices.h"
#include "server/rpc/plan_compiler.h"
#include "server/rpc/result_sinks.h"
#include "server/schedule/admission.h"
#include "server/schedule/fair_budget.h"
#include "server/schedule/fair_workers.h"
#include "server/schedule/scheduler.h"
#include "server/store/region_store.h"
#include "server/store/streamed_call.h"
#include "server/store/tensor_store.h"

namespace warpline {

class UnaryCall;

// Thread-safe; never blocks. What it is given outlives it, and it outlives the calls.
class KernelService {
 public:
  // The components that a request passes through, in order.
  struct Engine {
    const Backend& backend;
    PlanCache& plans;
    FairWorkers& compilers;  // also take memory, and make second jobs
    WorkerPool& workers;     // give memory back
    Admission& admission;
    const StagingPool& pool;
    Scheduler& scheduler;
    TensorStore& tensors;
    StreamedCalls& streamed;
    RegionStore& regions;
    // The lease of a streamed result.
    absl::Duration send_timeout;
    // Names owners for the log; null where there are no identities.
    std::function<std::string(OwnerId)> name_of;
    OwnerMetrics* owner_metrics = nullptr;  // likewise
  };
  KernelService(const Limits& limits, const Engine& engine, Metrics& metrics);

  const std::vector<Codec>& codecs() const { return codecs_; }
  // Answers a call of the codec's method. A request whose plan is known goes on at once; another is compiled
  // by a worker, so that however much there is to check in it, other calls are received meanwhile.
  void Handle(UnaryCall& call, const Codec& codec);

 private:
  // A request as received and scanned. Its payloads are ranges of its slices.
  struct Scanned {
    MessageSlices slices;
    ScannedMessage message;
    // The tensors that the message's references name. `referred` has their memory, kept from expiring from
    // here on. `references` has them as the plan sees them.
    std::vector<Buffer> referred;
    References references;
    std::string key;
  };
  // The effects of a request that has succeeded on tensors and regions.
  struct Aftermath {
    ResultSinks sinks;
    std::vector<std::string> freed;  // ids of tensors that are dropped
    std::shared_ptr<StreamedCall> streamed;
    // The report of a program that runs before the job whose results go to the client (Plan::counts): the
    // variants that ran, one for each step of the request, its times, and where the request's arrays lie.
    std::vector<std::string> variants = {};
    std::optional<RequestSource> source = {};
    PhaseSeconds seconds = {};
  };
  struct Submission;  // of one call: what to do if it is cancelled

  absl::StatusOr<Scanned> Scan(UnaryCall& call, const Codec& codec) const;
  // Asks for a share of the budget, and submits the job or announces its uploads.
  void Submit(UnaryCall& call, const Codec& codec, Scanned scanned, const PlanPtr& plan,
              const std::shared_ptr<Submission>& submission);
  // Sets what the job of a call has, whatever its plan.
  static void SetCaller(UnaryCall& call, Job& job);
  // Has memory found for the outputs that stay on the device.
  void SetSinks(UnaryCall& call, const PlanPtr& plan, Job& job);
  // Sets what happens with the result.
  void SetDone(UnaryCall& call, const Codec& codec, const PlanPtr& plan, Aftermath after,
               const std::shared_ptr<const ScannedMessage>& message,
               const std::shared_ptr<Submission>& submission, Job& job);
  // Memory for a copy of the first `bytes` of a result that is to stay on its device; nothing if the result
  // had better stay where it is.
  std::optional<Buffer> SmallerSink(const Caller& caller, const Buffer& computed, std::size_t bytes) const;
  // Submits the job that copies the results of a program, whose sizes are known now, to where
  // they are to go.
  void SubmitCopies(UnaryCall& call, const Codec& codec, const PlanPtr& counted, Aftermath after,
                    const ScannedMessage& message, Result result,
                    const std::shared_ptr<Submission>& submission);
  // Takes memory for the arrays that travel apart. If some of them are operands, the call waits for them, and
  // the job is submitted when they are complete.
  void SubmitStreamed(UnaryCall& call, const Codec& codec, const PlanPtr& plan, Aftermath after,
                      const std::shared_ptr<const ScannedMessage>& message, Job job,
                      const std::shared_ptr<Submission>& submission);
  void AwaitUploads(UnaryCall& call, const Codec& codec, const PlanPtr& plan, std::vector<Buffer> memory,
                    const std::shared_ptr<StreamedCall>& streamed, Job job,
                    const std::shared_ptr<Submission>& submission);
  // The memory of inputs that are resident, and that of all slices of regions.
  absl::Status Bind(const Plan& plan, const Scanned& scanned, OwnerId owner, Job& job) const;
  // Chooses the device of a job with resident operands or results, and sees which operands have to be copied
  // there. Any device may run other jobs.
  void ChooseDevice(const Caller& caller, const Plan& plan, Job& job) const;
  absl::Status FindSinks(const Plan& plan, const Caller& caller, int device, Bindings& bindings) const;
  // Returns where the outputs lie that do not go inline, in the form of the response. Makes resident tensors
  // of the outputs that stay on their device.
  std::vector<v1::Tensor> Place(const Plan& plan, const Aftermath& after, OwnerId owner,
                                Result& result) const;
  // Drops the tensors that the request is the last to use.
  void FreeTensors(OwnerId owner, const std::vector<std::string>& ids) const;
  // Counts the stages of a job that has computed.
  void ObserveStages(RequestKind kind, const PhaseSeconds& seconds);
  void Complete(UnaryCall& call, const Codec& codec, const Plan& plan, const Aftermath& after, Result result);
  // Both end the call; what a request costs and how it ended is recorded here and nowhere else.
  void Respond(UnaryCall& call, const Codec& codec, const Plan& plan, const Aftermath& after, Result& result);
  // The plan is null if the request was refused before there was one.
  void RespondError(UnaryCall& call, const Codec& codec, const Plan* plan, const absl::Status& status);
  void CountForOwner(const UnaryCall& call, std::string_view code) const;

  const Engine engine_;
  const PlanCompiler compiler_;
  Metrics& metrics_;
  const std::vector<Codec> codecs_;
  CopySite copy_in_site_;
  FairBudget compiling_;  // requests
};

}  // namespace warpline

#endif  // WARPLINE_SERVER_RPC_KERNEL_SERVICE_H_
