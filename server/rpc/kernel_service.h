// Transpose, Gemm, Reduce and Run: from a received call to a submitted job, and from its result to the
// response.
#ifndef WARPLINE_SERVER_RPC_KERNEL_SERVICE_H_
#define WARPLINE_SERVER_RPC_KERNEL_SERVICE_H_

#include <cstddef>
#include <vector>

#include "server/device/backend.h"
#include "server/memory/copy_payload.h"
#include "server/memory/staging_pool.h"
#include "server/observe/metrics.h"
#include "server/rpc/codec/convert.h"
#include "server/rpc/codec/wire_scanner.h"
#include "server/schedule/admission.h"
#include "server/schedule/scheduler.h"

namespace warpline {

class UnaryCall;

// Thread-safe; never blocks. What it is given outlives it, and it outlives the calls.
class KernelService {
 public:
  KernelService(const Limits& limits, const Backend& backend, const StagingPool& pool, Admission& admission,
                Scheduler& scheduler, Metrics& metrics);

  void Transpose(UnaryCall& call);
  void Gemm(UnaryCall& call);
  void Reduce(UnaryCall& call);
  void Run(UnaryCall& call);

 private:
  // A result to be returned, and its place in the output region.
  struct Output {
    NamedOutput named;  // the name is empty but in Run
    std::size_t offset = 0;
  };
  // A job but for its callbacks, and what the response needs to know of it.
  struct Prepared {
    Job job;
    std::vector<Output> outputs;
  };
  template <typename RequestProto>
  void Handle(UnaryCall& call, RequestKind kind, const PayloadSchema& schema);
  absl::Status CheckSize(RequestKind kind, const Job& job) const;
  // Everything that can be refused without waiting.
  template <typename RequestProto>
  absl::StatusOr<Prepared> Prepare(UnaryCall& call, RequestKind kind, const PayloadSchema& schema);
  void Complete(UnaryCall& call, RequestKind kind, const std::vector<Output>& outputs, Result result);
  // Both end the call; what a request costs and how it ended is recorded here and nowhere else.
  void Respond(UnaryCall& call, RequestKind kind, const std::vector<Output>& outputs, Result& result);
  void RespondError(UnaryCall& call, RequestKind kind, const absl::Status& status);

  const Limits limits_;
  const Backend& backend_;
  const std::vector<VariantInfo> variants_;
  const StagingPool& pool_;
  Admission& admission_;
  Scheduler& scheduler_;
  Metrics& metrics_;
  const PayloadSchema transpose_schema_;
  const PayloadSchema gemm_schema_;
  const PayloadSchema reduce_schema_;
  const PayloadSchema run_schema_;
  CopySite stage_site_;
};

}  // namespace warpline

#endif  // WARPLINE_SERVER_RPC_KERNEL_SERVICE_H_
