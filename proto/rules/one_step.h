// A request of one operation (Transpose, Gemm, Reduce) as a program of one step, and the errors about that
// program as errors about the operation's own fields.
#ifndef WARPLINE_PROTO_RULES_ONE_STEP_H_
#define WARPLINE_PROTO_RULES_ONE_STEP_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "warpline/v1/warpline.pb.h"

namespace warpline {

// The name of the step, and so of the only output. Sinks of the operation name no output.
inline constexpr char kOneStepName[] = "result";

// The program that runs this step on the inputs of these names, in their order.
v1::Program OneStepProgram(v1::Step step, const std::vector<std::string>& inputs);

// The request as one of Run. Its inputs have the names of the operation's fields: "x", or "a", "b", "c" and
// "bias". Fields that this version does not know are not copied.
v1::RunRequest AsRun(const v1::TransposeRequest& request);
v1::RunRequest AsRun(const v1::GemmRequest& request);
v1::RunRequest AsRun(const v1::ReduceRequest& request);

// A text about such a program, or the path of a field of it, as one about the operation: "a.shape" in place
// of "program.steps[0].inputs[0].shape".
std::string InOperation(std::string text, const v1::Step& step);
// The same for the message and the field (FieldOf) of an error; its other payloads stay.
absl::Status InOperation(const absl::Status& status, const v1::Step& step);

}  // namespace warpline

#endif  // WARPLINE_PROTO_RULES_ONE_STEP_H_
