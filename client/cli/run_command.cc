// The command `warpline run`.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/cli/assignment.h"
#include "client/cli/command_line.h"
#include "client/cli/file_io.h"
#include "client/cli/help.h"
#include "client/cli/program_file.h"
#include "client/cli/session.h"
#include "kernels/status_macros.h"
#include "proto/rules/program_rules.h"
#include "warpline/program.h"

namespace warpline::client {
namespace {

// More than any program with 64 steps needs.
constexpr std::size_t kMaxProgramBytes = std::size_t{1} << 20;

using Words = std::vector<std::string>;

struct RunFlags : SessionFlags {
  Words words, outputs;
  std::optional<std::string> expr;
};

constexpr char kNotes[] =
    R"(PROGRAM.json is a warpline.v1.Program in protobuf's JSON; - reads it from standard input. Values of
enumerations may be short ("sum", "f32"). A program with one output needs no NAME for it.
A file of raw memory needs a type: NAME:TYPE=IN.npy, such as w:bf16=w.npy. A file in Fortran order is
brought into row-major order by one more request, which costs a round trip.

An expression has operations, operators and numbers, as in Python: '(x - mean(x, axis=0)) / std(x, axis=0)',
'where(x > 0, x, 0.01 * x)', 'a @ b + c'. Operands of an operation come before its FIELD=VALUE. All arrays of
an elementwise operation have one type; cast(x, dtype=f32) converts. To use a step twice, give it a name, and
end it with ; or a new line: 'p = gemm(a, b); p + transpose(p)'. The outputs are the steps that -o NAME=OUT.npy names, in that
order, or with a single -o OUT.npy the last step. Steps without a name are called 1.gemm, 2.add and so on.

operations ("= ..." is the default of a field; each operation also takes variant: NAME):
  transpose(x)   perm = [] (axis i of the result is axis perm[i] of x; []: swap the last two)
  gemm(a, b)     activation(alpha * op(a) * op(b) + beta * c + bias)
                 trans_a = false, trans_b = false, alpha = 1, beta = 0 (1 with c), c: a matrix,
                 bias: a vector, activation = none (relu, gelu), precision = ieee (tf32),
                 out_dtype: TYPE of the result (default: what the operands give)
  reduce(x)      op: NAME, which must be given; axes = [] (all), keepdims = false,
                 ddof = 0 (of var and std: divide by n - ddof), out_dtype: TYPE as of gemm
  sum(x), mean(x, axis=0) and so on: reduce with this op; axis is another name of axes
  cast(x)        dtype: TYPE, which must be given
  scale(x)       factor: a number, which must be given
  add(x, y)
  reshape(x)     shape: the sizes, which must be given; one of them may be -1
  slice(x)       starts = [], ends = [] ([]: from one end to the other; those below 0 count from the end),
                 axes = [] (the first ones), steps = [] (1)
  broadcast_to(x)
                 shape: the sizes, which must be given
  diagonal(x)    offset = 0, axis1 = -2, axis2 = -1
  concat(x, y, ...)
                 axis = 0
  take(x, i)     axis = 0; i: indices of type i32 or i64
  take_along_axis(x, i)
                 axis = 0; i: indices of as many axes as x
  put_along_axis(x, i, values)
                 axis = 0: a copy of x with values where indices say
  set_slice(x, values)
                 a copy of x with values in the elements that slice takes by the same fields:
                 starts = [], ends = [], axes = [], steps = []
  compress(x, mask)
                 the elements for which the mask is true; only as an output
  roll(x)        shifts: a number for each of axes = [] ([]: x in one row, by one number)
  tile(x)        counts: a number for each of the last axes
  repeat(x)      count: how often each element comes, axis: a number (default: x in one row)
  pad(x)         before = [], after = [] (a number for each of axes = [], which are the first ones),
                 values: an array of what is added (default: zeros)
  scan(x)        op: sum, prod, min or max, which must be given; axis = 0, exclusive = false,
                 reverse = false, out_dtype: TYPE as of gemm
  sort(x)        axis = 0, descending = false, indices: a name for the places of the sorted elements
  argsort(x)     axis = 0, descending = false
  topk(x)        k: how many of the last axis, which must be given; smallest = false,
                 indices: a name as of sort, as in 'v = topk(x, k=3, indices=i)' with -o v=V.npy -o i=I.npy
  searchsorted(x1, x2)
                 right = false, sorter: the places that sort x1
  exp(x), maximum(x, y), where(condition, x, y) and the other elementwise operations above: arrays of
                 one type, which are broadcast

In JSON a gemm reads c, if its beta is not 0, and the bias, if it has one, behind its two operands:
{"steps": [
   {"name": "d", "inputs": ["a", "b", "c", "v"],
    "gemm": {"alpha": 0.5, "beta": 1, "hasBias": true, "activation": "relu"}},
   {"name": "sums", "inputs": ["d"], "reduce": {"op": "sum", "axes": [0]}}],
 "outputs": ["d", "sums"]}
)";

absl::StatusOr<v1::Program> ReadProgram(const std::string& path) {
  const std::string name = path == "-" ? "standard input" : path;
  std::string json(kMaxProgramBytes + 1, '\0');
  const absl::StatusOr<std::size_t> bytes = ReadFile(path, json.data(), json.size());
  if (!bytes.ok()) {
    return AsFileError(
        absl::Status(bytes.status().code(), absl::StrCat(name, ": ", bytes.status().message())));
  }
  if (*bytes > kMaxProgramBytes) {
    return UsageError(absl::StrCat(name, ": a program has at most ", kMaxProgramBytes, " bytes"));
  }
  json.resize(*bytes);
  absl::StatusOr<v1::Program> program = ParseProgram(json);
  if (!program.ok()) return UsageError(absl::StrCat(name, ": ", std::string(program.status().message())));
  return program;
}

// An expression does not name its outputs. They are the steps that `words` name, or the last step if `words`
// has at most a file without a name.
absl::Status ChooseOutputs(v1::Program& program, const Words& words) {
  if (words.empty() || (words.size() == 1 && SplitAssignment(words[0]).name.empty())) return absl::OkStatus();
  Words steps;
  for (const v1::Step& step : program.steps()) {
    steps.push_back(step.name());
    for (const FurtherName& further : FurtherNames(step)) steps.push_back(*further.name);
  }
  program.clear_outputs();
  for (const std::string& word : words) {
    const std::string name = SplitAssignment(word).name;
    if (name.empty()) {
      return UsageError(
          absl::StrCat(word, ": expected -o NAME=OUT.npy; the steps are ", absl::StrJoin(steps, ", ")));
    }
    if (std::find(steps.begin(), steps.end(), name) == steps.end()) {
      return UsageError(
          absl::StrCat(word, ": the expression has no step ", name, "; it has ", absl::StrJoin(steps, ", ")));
    }
    program.add_outputs(name);
  }
  return absl::OkStatus();
}

// Returns the file for each name in `names`, in that order. It is an error if a name has no file or two
// files, or if a file's name is not in `names`. `form` says how to write an assignment.
absl::StatusOr<std::vector<Assignment>> Assign(const Words& names, const Words& words,
                                               const std::string& what, const std::string& form) {
  std::map<std::string, Assignment> files;
  for (const std::string& word : words) {
    Assignment assignment = SplitAssignment(word);
    if (what == "output" && !assignment.type.empty()) {
      return UsageError(absl::StrCat(word, ": an output has no type: expected ", form));
    }
    if (assignment.name.empty() && what == "output" && names.size() == 1) assignment.name = names[0];
    if (assignment.name.empty()) {
      return UsageError(absl::StrCat(word, ": expected ", form, "; the program has the ", what, "s ",
                                     absl::StrJoin(names, ", ")));
    }
    if (std::find(names.begin(), names.end(), assignment.name) == names.end()) {
      return UsageError(absl::StrCat(word, ": the program has no ", what, " ", assignment.name, "; it has ",
                                     absl::StrJoin(names, ", ")));
    }
    const std::string name = assignment.name;
    if (!files.emplace(name, std::move(assignment)).second) {
      return UsageError(absl::StrCat("the ", what, " ", name, " is given twice"));
    }
  }
  std::vector<Assignment> assigned;
  for (const std::string& name : names) {
    const auto file = files.find(name);
    if (file == files.end()) {
      return UsageError(absl::StrCat("the program's ", what, " ", name, " has no file: expected ", form));
    }
    assigned.push_back(file->second);
  }
  return assigned;
}

absl::StatusOr<std::optional<DType>> TypeOf(const Assignment& input) {
  if (input.type.empty()) return std::nullopt;
  const std::optional<DType> dtype = DTypeNamed(input.type);
  if (!dtype) return UsageError(absl::StrCat(input.name, ":", input.type, ": there is no such type"));
  return dtype;
}

absl::Status RunRun(const RunFlags& flags, const CommonFlags& common) {
  Words words = flags.words;
  RunArgs request;
  request.reproducible = common.reproducible;
  bool reads_stdin = false;
  if (flags.expr) {
    absl::StatusOr<v1::Program> program = ParseExpression(*flags.expr);
    if (!program.ok()) return UsageError(absl::StrCat("--expr: ", std::string(program.status().message())));
    request.program = *std::move(program);
    RETURN_IF_ERROR(ChooseOutputs(request.program, flags.outputs));
  } else {
    if (words.empty()) return UsageError("run: the program is missing: PROGRAM.json or --expr PROGRAM");
    reads_stdin = words[0] == "-";
    ASSIGN_OR_RETURN(request.program, ReadProgram(words[0]));
    words.erase(words.begin());
  }
  const Words outputs(request.program.outputs().begin(), request.program.outputs().end());
  ASSIGN_OR_RETURN(const std::vector<Assignment> results,
                   Assign(outputs, flags.outputs, "output", "-o NAME=OUT.npy"));
  ASSIGN_OR_RETURN(const std::vector<Assignment> inputs,
                   Assign(InputsOf(request.program), words, "input", "NAME=IN.npy"));
  Words paths;
  for (const Assignment& result : results) paths.push_back(result.path);
  ASSIGN_OR_RETURN(Session session, Session::Create(flags, common, paths));

  for (const Assignment& input : inputs) {
    if (reads_stdin && input.path == "-") {
      return UsageError("standard input cannot be both the program and an array");
    }
    ASSIGN_OR_RETURN(const std::optional<DType> dtype, TypeOf(input));
    ASSIGN_OR_RETURN(NpyArray array, session.Read(input.path, dtype));
    // A separate request makes the array row-major. An extra step in the program would change the numbers of
    // all other steps, which errors contain. There may also be no room for another step.
    RETURN_IF_ERROR(session.MakeRowMajor(array));
    request.inputs.emplace_back(input.name, array.stored);
  }
  for (const std::string& path : paths) request.destinations.push_back(session.To(path));
  ASSIGN_OR_RETURN(RunResult result, session.Compute("run", request));
  for (std::size_t i = 0; i < results.size(); ++i) {
    RETURN_IF_ERROR(session.Write(results[i].path, result.outputs[i].second, result.tensors[i], false));
  }
  return absl::OkStatus();
}

// Formats "TYPE:", with the values in lines below.
template <typename T>
std::string Listed(const char* title, const Choices<T>& values) {
  const auto name = [](std::string* out, const auto& value) { *out += value.first; };
  return absl::StrCat(title, ":\n    ", Wrapped(absl::StrJoin(values, ", ", name), 4), "\n\n");
}

}  // namespace

void AddRun(CommandLine& line) {
  auto [app, flags, common] =
      line.Add("run", "run a chain of operations, whose intermediate results stay on the server",
               "run -e 'reduce(transpose(gemm(a, b)), op=sum, axes=[1])' a=a.npy b=b.npy "
               "-o sums.npy",
               RunRun);
  app.add_option("words", flags.words)
      ->type_name("FILE")
      ->option_text("PROGRAM.json|--expr PROGRAM NAME=IN.npy ... -o [NAME=]OUT.npy ...");
  app.add_option("-o,--output", flags.outputs, kOutputHelp)
      ->allow_extra_args(false)
      ->check(NotAnOption)
      ->type_name("FILE");
  app.add_option("-e,--expr", flags.expr, "the program as an expression instead of a file");
  app.footer(absl::StrCat(Listed("NAME of reduce's op", ReduceOps()),
                          Listed("elementwise operation", MapOps()), Listed("TYPE", DTypes()), kNotes, "\n",
                          app.get_footer()));
  common.AddReproducible(app);
  flags.AddTo(app, common);
}

}  // namespace warpline::client
