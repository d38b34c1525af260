// `warpline run`.
#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/cli/assignment.h"
#include "client/cli/commands.h"
#include "client/cli/file_io.h"
#include "client/cli/program_file.h"
#include "client/cli/session.h"
#include "kernels/status_macros.h"
#include "warpline/program.h"

namespace warpline::client {
namespace {

// More than any program with 64 steps needs.
constexpr std::size_t kMaxProgramBytes = std::size_t{1} << 20;

using Words = std::vector<std::string>;

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

// An expression says nothing of its outputs: they are the steps that `words` name, or the last one if there
// is but a file.
absl::Status ChooseOutputs(v1::Program& program, const Words& words) {
  if (words.empty() || (words.size() == 1 && SplitAssignment(words[0]).name.empty())) return absl::OkStatus();
  Words steps;
  for (const v1::Step& step : program.steps()) steps.push_back(step.name());
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

// The file of each of `names`, in that order: an error for a name that has none or two, and for a file whose
// name is not among them. `form` is how to write one.
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

}  // namespace

absl::Status RunRun(const Args& args, const CommonFlags& common) {
  Words words(args.positionals().begin() + 1, args.positionals().end());
  RunArgs request;
  bool reads_stdin = false;
  if (args.Has("expr")) {
    absl::StatusOr<v1::Program> program = ParseExpression(args.String("expr", ""));
    if (!program.ok()) return UsageError(absl::StrCat("--expr: ", std::string(program.status().message())));
    request.program = *std::move(program);
    RETURN_IF_ERROR(ChooseOutputs(request.program, args.Strings("output")));
  } else {
    if (words.empty()) return UsageError("run: the program is missing: PROGRAM.json or --expr PROGRAM");
    reads_stdin = words[0] == "-";
    ASSIGN_OR_RETURN(request.program, ReadProgram(words[0]));
    words.erase(words.begin());
  }
  const Words outputs(request.program.outputs().begin(), request.program.outputs().end());
  ASSIGN_OR_RETURN(const std::vector<Assignment> results,
                   Assign(outputs, args.Strings("output"), "output", "-o NAME=OUT.npy"));
  ASSIGN_OR_RETURN(const std::vector<Assignment> inputs,
                   Assign(InputsOf(request.program), words, "input", "NAME=IN.npy"));
  Words paths;
  for (const Assignment& result : results) paths.push_back(result.path);
  ASSIGN_OR_RETURN(Session session, Session::Create(args, common, paths));

  for (const Assignment& input : inputs) {
    if (reads_stdin && input.path == "-") {
      return UsageError("standard input cannot be both the program and an array");
    }
    ASSIGN_OR_RETURN(const std::optional<DType> dtype, TypeOf(input));
    ASSIGN_OR_RETURN(NpyArray array, session.Read(input.path, dtype));
    // By a request of its own: a step of the program would change the numbers of all others, which errors
    // name, and there may be no room for one.
    RETURN_IF_ERROR(session.MakeRowMajor(array));
    request.inputs.emplace_back(input.name, array.stored);
  }
  for (const std::string& path : paths) request.destinations.push_back(session.To(path));
  ASSIGN_OR_RETURN(RunResult result, session.Compute(request));
  for (std::size_t i = 0; i < results.size(); ++i) {
    RETURN_IF_ERROR(session.Write(results[i].path, result.outputs[i].second, result.tensors[i], false));
  }
  return absl::OkStatus();
}

}  // namespace warpline::client
