// The rules of operations that depend on the order of elements along an axis.
#ifndef WARPLINE_PROTO_RULES_ORDER_STEPS_H_
#define WARPLINE_PROTO_RULES_ORDER_STEPS_H_

#include <string>

#include "absl/status/statusor.h"
#include "proto/rules/convert_step.h"
#include "proto/rules/emit_step.h"

namespace warpline {

absl::StatusOr<Operand> ScanSteps(const Operand& x, const v1::ScanStep& scan, const std::string& variant,
                                  EmitStep emit);
absl::StatusOr<StepResults> SortSteps(const Operand& x, const v1::SortStep& sort, const std::string& variant,
                                      EmitStep emit);
absl::StatusOr<Operand> ArgsortSteps(const Operand& x, const v1::ArgsortStep& argsort,
                                     const std::string& variant, EmitStep emit);
absl::StatusOr<StepResults> TopkSteps(const Operand& x, const v1::TopkStep& topk, const std::string& variant,
                                      EmitStep emit);
// `sorter` is null if there is none.
absl::StatusOr<Operand> SearchsortedSteps(const Operand& x1, const Operand& x2, const Operand* sorter,
                                          const v1::SearchsortedStep& search, const std::string& variant,
                                          EmitStep emit);

}  // namespace warpline

#endif  // WARPLINE_PROTO_RULES_ORDER_STEPS_H_
