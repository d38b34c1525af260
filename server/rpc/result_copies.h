// The second job of a program whose result sizes are known late.
#ifndef WARPLINE_SERVER_RPC_RESULT_COPIES_H_
#define WARPLINE_SERVER_RPC_RESULT_COPIES_H_

#include "absl/status/statusor.h"
#include "proto/wire/scanner.h"
#include "server/base/owner.h"
#include "server/plan/plan.h"
#include "server/rpc/call_context.h"
#include "server/rpc/codec/codec.h"
#include "server/schedule/job.h"

namespace warpline {

// Copies the results of the first job to their destinations.
struct ResultCopies {
  PlanPtr plan;
  Job job;           // with its ticket, its device and all memory that is known now
  bool any = false;  // false: all results stay where they are
};

// `result` is that of the first job, `message` the request. Errors are those of CopyPlan and of memory
// allocation.
absl::StatusOr<ResultCopies> CopyResults(const Plan& counted, Result result, const ScannedMessage& message,
                                         const Caller& caller, const Codec& codec,
                                         const CallContext& context);

}  // namespace warpline

#endif  // WARPLINE_SERVER_RPC_RESULT_COPIES_H_
