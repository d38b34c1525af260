// TensorService: creates, fills, reads and drops resident tensors.
#ifndef WARPLINE_SERVER_RPC_TENSOR_SERVICE_H_
#define WARPLINE_SERVER_RPC_TENSOR_SERVICE_H_

#include <memory>

#include "proto/wire/scanner.h"
#include "server/base/owner.h"
#include "server/base/worker_pool.h"
#include "server/device/backend.h"
#include "server/memory/copy_payload.h"
#include "server/memory/staging_pool.h"
#include "server/observe/metrics.h"
#include "server/rpc/chunk_window.h"
#include "server/rpc/message_stream.h"
#include "server/rpc/put_sequence.h"
#include "server/schedule/admission.h"
#include "server/schedule/fair_budget.h"
#include "server/schedule/fair_workers.h"
#include "server/store/tensor_store.h"

namespace warpline {

class UnaryCall;

// Thread-safe. Its arguments outlive it, and it outlives the calls.
class TensorService {
 public:
  // The components that a stream of chunks uses.
  struct Engine {
    Backend& backend;
    TensorStore& tensors;
    FairBudget& transfers;  // bytes of windows
    Admission& admission;
    StagingPool& pool;
    WorkerPool& workers;
    FairWorkers& compilers;   // for new tensors, whose memory may take milliseconds
    FairWorkers& background;  // for lists, and for requests about many tensors
  };
  TensorService(const Engine& engine, Metrics& metrics);

  void Create(UnaryCall& call);
  void Drop(UnaryCall& call);
  void Renew(UnaryCall& call);
  void List(UnaryCall& call);
  std::unique_ptr<MessageStream::Handler> NewPut(const Caller& caller);
  std::unique_ptr<MessageStream::Handler> NewGet(const Caller& caller);

 private:
  // Lets `answer` end a call whose request may name many ids, perhaps on another thread.
  template <typename Request, typename Answer>
  void AnswerForIds(UnaryCall& call, const Answer& answer);

  const Engine engine_;
  const ScanSchema put_schema_;
  CopySite put_site_;
  FairBudget creating_, listing_, many_;  // calls
};

}  // namespace warpline

#endif  // WARPLINE_SERVER_RPC_TENSOR_SERVICE_H_
