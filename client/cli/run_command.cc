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
#include "absl/strings/str_replace.h"
#include "client/cli/assignment.h"
#include "client/cli/command_line.h"
#include "client/cli/file_io.h"
#include "client/cli/help.h"
#include "client/cli/program_file.h"
#include "client/cli/session.h"
#include "client/src/expression_functions.h"
#include "kernels/status_macros.h"
#include "proto/rules/program_rules.h"
#include "proto/rules/step_table.h"
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
an elementwise operation have one type; cast(x, dtype=f32) converts. Indices are NumPy's: 'x[0, ::2]', 'x[x > 0]'.
To use a step twice, give it a name, and end it with ; or a new line: 'p = gemm(a, b); p + transpose(p)'.
The outputs are the steps that -o NAME=OUT.npy names, in that order, or with a single -o OUT.npy the last
step. Steps without a name are called 1.gemm, 2.add and so on.
)";

constexpr char kMoreNotes[] =
    R"(  exp(x), maximum(x, y), where(condition, x, y) and the other elementwise operations above: arrays of
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
      const bool is_only = what == "output" && names.size() == 1;
      return UsageError(absl::StrCat("the program's ", what, " ", name, " has no file: expected ",
                                     is_only ? "-o OUT.npy" : form));
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

// Reads the program from an expression. FAILED_PRECONDITION if it needs the type of an input that is not
// there.
absl::StatusOr<v1::Program> ParseExpr(const RunFlags& flags, const ProgramInputs& inputs) {
  absl::StatusOr<v1::Program> program = ParseExpression(*flags.expr, inputs);
  if (absl::IsInvalidArgument(program.status())) {
    return UsageError(absl::StrCat("--expr: ", std::string(program.status().message())));
  }
  if (program.ok()) RETURN_IF_ERROR(ChooseOutputs(*program, flags.outputs));
  return program;
}

absl::StatusOr<ProgramInputs> ReadInputs(Session& session, const std::vector<Assignment>& inputs,
                                         bool reads_stdin) {
  ProgramInputs arrays;
  for (const Assignment& input : inputs) {
    if (reads_stdin && input.path == "-") {
      return UsageError("standard input cannot be both the program and an array");
    }
    ASSIGN_OR_RETURN(const std::optional<DType> dtype, TypeOf(input));
    ASSIGN_OR_RETURN(NpyArray array, session.Read(input.path, dtype));
    // A separate request makes the array row-major. An extra step in the program would change the numbers of
    // all other steps, which errors contain. There may also be no room for another step.
    RETURN_IF_ERROR(session.MakeRowMajor(array));
    arrays.emplace_back(input.name, array.stored);
  }
  return arrays;
}

absl::Status RunRun(const RunFlags& flags, const CommonFlags& common) {
  Words words = flags.words;
  RunArgs request;
  request.reproducible = common.reproducible;
  bool reads_stdin = false;
  std::optional<Session> session;
  if (flags.expr) {
    absl::StatusOr<v1::Program> program = ParseExpr(flags, {});
    if (absl::IsFailedPrecondition(program.status())) {
      // Some of its functions depend on the types of the inputs: read these first.
      Words paths;
      for (const std::string& word : flags.outputs) paths.push_back(SplitAssignment(word).path);
      ASSIGN_OR_RETURN(Session opened, Session::Create(flags, common, paths));
      session.emplace(std::move(opened));
      std::vector<Assignment> inputs;
      for (const std::string& word : words) inputs.push_back(SplitAssignment(word));
      ASSIGN_OR_RETURN(request.inputs, ReadInputs(*session, inputs, false));
      program = ParseExpr(flags, request.inputs);
      if (absl::IsFailedPrecondition(program.status())) {
        return UsageError(absl::StrCat("--expr: ", std::string(program.status().message())));
      }
    }
    ASSIGN_OR_RETURN(request.program, std::move(program));
  } else {
    if (words.empty()) return UsageError("run: the program is missing: PROGRAM.json or --expr PROGRAM");
    reads_stdin = words[0] == "-";
    absl::StatusOr<v1::Program> program = ReadProgram(words[0]);
    if (!program.ok() && words[0].find_first_of("()+*@ ") != std::string::npos) {
      return WithAdvice(program.status(),
                        "an expression comes behind -e, in quotes: run -e 'sum(x)' x=x.npy -o y.npy");
    }
    ASSIGN_OR_RETURN(request.program, std::move(program));
    words.erase(words.begin());
  }
  const Words outputs(request.program.outputs().begin(), request.program.outputs().end());
  ASSIGN_OR_RETURN(const std::vector<Assignment> results,
                   Assign(outputs, flags.outputs, "output", "-o NAME=OUT.npy"));
  ASSIGN_OR_RETURN(const std::vector<Assignment> inputs,
                   Assign(InputsOf(request.program), words, "input", "NAME=IN.npy"));
  Words paths;
  for (const Assignment& result : results) paths.push_back(result.path);
  if (!session) {
    ASSIGN_OR_RETURN(Session opened, Session::Create(flags, common, paths));
    session.emplace(std::move(opened));
    ASSIGN_OR_RETURN(request.inputs, ReadInputs(*session, inputs, reads_stdin));
  }
  for (const std::string& path : paths) request.destinations.push_back(session->To(path));
  ASSIGN_OR_RETURN(RunResult result, session->Compute("run", request));
  for (std::size_t i = 0; i < results.size(); ++i) {
    RETURN_IF_ERROR(session->Write(results[i].path, result.outputs[i].second, result.tensors[i], false));
  }
  return absl::OkStatus();
}

// Formats one paragraph for each operation, with its arguments in a column of their own.
std::string ListedOperations() {
  constexpr std::size_t kColumn = 17;
  const std::string indent(kColumn, ' ');
  std::string text =
      "operations (what follows = is a default; those with kernels also take variant: NAME):\n";
  const auto list = [&](std::string_view call, std::string_view help) {
    const std::string shown = absl::StrCat("  ", std::string(call));
    absl::StrAppend(&text, shown);
    if (!help.empty()) {
      const bool fits = shown.size() < kColumn;
      absl::StrAppend(&text, fits ? std::string(kColumn - shown.size(), ' ') : "\n" + indent,
                      absl::StrReplaceAll(std::string(help), {{"\n", "\n" + indent}}));
    }
    text += '\n';
  };
  for (const StepRow& row : StepTable()) {
    if (!row.call.empty()) list(row.call, row.help);
  }
  text += "functions of several steps:\n";
  for (const FunctionRow& row : FunctionTable()) list(row.call, row.help);
  return text;
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
                          ListedOperations(), kMoreNotes, "\n", app.get_footer()));
  common.AddReproducible(app);
  flags.AddTo(app, common);
}

}  // namespace warpline::client
