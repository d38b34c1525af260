// Converts a request of one operation (Transpose, Gemm, Reduce) to a program of one step, and errors about
// that program to errors about the operation's own fields.
#ifndef WARPLINE_PROTO_RULES_ONE_STEP_H_
#define WARPLINE_PROTO_RULES_ONE_STEP_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "warpline/v1/warpline.pb.h"

namespace warpline {

// The name of the step, and so also of the only output. Sinks of the operation do not name an output.
inline constexpr char kOneStepName[] = "result";

// Returns the program that runs this step on the inputs with these names, in this order.
v1::Program OneStepProgram(v1::Step step, const std::vector<std::string>& inputs);

// Returns the equivalent request of Run. Its inputs have the names of the operation's fields: "x", or "a",
// "b", "c" and "bias". Unknown fields are not copied.
v1::RunRequest AsRun(const v1::TransposeRequest& request);
v1::RunRequest AsRun(const v1::GemmRequest& request);
v1::RunRequest AsRun(const v1::ReduceRequest& request);

// Converts a text about such a program, or the path of one of its fields, to the operation's terms: "a.shape"
// instead of "program.steps[0].inputs[0].shape".
std::string InOperation(std::string text, const v1::Step& step);
// Same for the message and the field (FieldOf) of an error; its other payloads are kept.
absl::Status InOperation(const absl::Status& status, const v1::Step& step);

}  // namespace warpline

#endif  // WARPLINE_PROTO_RULES_ONE_STEP_H_
