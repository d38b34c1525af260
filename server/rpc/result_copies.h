// The second job of a program whose results have sizes that are known late.
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

// Copies the results of the first job to where they are to go.
struct ResultCopies {
  PlanPtr plan;
  Job job;           // with its ticket, its device and the memory that is known
  bool any = false;  // otherwise each result stays where it is
};

// `result` is that of the first job, and `message` the request. Errors are those of CopyPlan, and of the
// memory that is asked for.
absl::StatusOr<ResultCopies> CopyResults(const Plan& counted, Result result, const ScannedMessage& message,
                                         const Caller& caller, const Codec& codec,
                                         const CallContext& context);

}  // namespace warpline

#endif  // WARPLINE_SERVER_RPC_RESULT_COPIES_H_
