// Transpose, Gemm and Reduce: from a received call to a submitted job, and from its result to the response.
#ifndef WARPLINE_SERVER_RPC_KERNEL_SERVICE_H_
#define WARPLINE_SERVER_RPC_KERNEL_SERVICE_H_

#include "server/engine/admission.h"
#include "server/engine/backend.h"
#include "server/engine/copy_payload.h"
#include "server/engine/scheduler.h"
#include "server/engine/staging_pool.h"
#include "server/observe/metrics.h"
#include "server/rpc/convert.h"
#include "server/rpc/wire_scanner.h"

namespace warpline {

class UnaryCall;

// Thread-safe; never blocks. What it is given outlives it, and it outlives the calls.
class KernelService {
 public:
  KernelService(const ConvertLimits& limits, const Backend& backend, const StagingPool& pool, Admission& admission,
                Scheduler& scheduler, Metrics& metrics);

  void Transpose(UnaryCall& call);
  void Gemm(UnaryCall& call);
  void Reduce(UnaryCall& call);

 private:
  struct Request;
  template <typename RequestProto>
  void Handle(UnaryCall& call, Op op, const PayloadSchema& schema);
  // Everything up to the job: what can be refused without waiting.
  template <typename RequestProto>
  absl::Status Prepare(UnaryCall& call, const PayloadSchema& schema, Request& request);
  void Respond(UnaryCall& call, Request& request, Result result);
  void RespondError(UnaryCall& call, Op op, const absl::Status& status);

  const ConvertLimits limits_;
  const Backend& backend_;
  const StagingPool& pool_;
  Admission& admission_;
  Scheduler& scheduler_;
  Metrics& metrics_;
  const PayloadSchema transpose_schema_;
  const PayloadSchema gemm_schema_;
  const PayloadSchema reduce_schema_;
  CopySite stage_site_;
  CopySite respond_site_;
};

}  // namespace warpline

#endif  // WARPLINE_SERVER_RPC_KERNEL_SERVICE_H_
