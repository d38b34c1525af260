// warpline-bench-kernels: every variant of every operation on one GPU, against copies and libraries.
#include <cuda_runtime_api.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "cmake/version.h"
#include "kernels/bench/harness/check.h"
#include "kernels/bench/harness/clocks.h"
#include "kernels/bench/harness/device.h"
#include "kernels/bench/harness/ladder.h"
#include "kernels/bench/harness/roofs.h"
#include "kernels/bench/report/choice_text.h"
#include "kernels/bench/report/json.h"
#include "kernels/bench/report/labels.h"
#include "kernels/bench/report/table.h"
#include "kernels/bench/suites/articles.h"
#include "kernels/bench/suites/breadth.h"
#include "kernels/ladder/rungs.h"
#include "kernels/problem_text.h"

namespace warpline::bench {
namespace {

const std::map<std::string, Buffers> kBuffers = {
    {"auto", Buffers::kAuto}, {"warm", Buffers::kWarm}, {"rotating", Buffers::kRotating}};

// The exit code where there is no GPU, by which ctest knows what skips, too.
constexpr int kSkipped = 77;

struct Flags {
  std::string mode = "ladder", suite = "ladders", buffers = "auto", problems, json, commit = kRevision;
  std::vector<std::string> ops, variants, dtypes, shapes;
  int rounds = 0;
  bool list = false;

  void AddTo(CLI::App& app) {
    const std::vector<std::string> modes = {"ladder", "articles", "once"};
    app.add_option("--mode", mode,
                   "ladder: all variants; articles: the articles' figures; once: each variant launched once, "
                   "for a profiler; default: ladder")
        ->check(CLI::IsMember(modes));
    const auto add_list = [&app](const char* name, std::vector<std::string>& into, const char* help) {
      app.add_option(name, into, help)->delimiter(',')->allow_extra_args(false);
    };
    app.add_option("--suite", suite,
                   "ladders: all variants of a few problems; breadth: the server's own choice of many, in "
                   "--mode=ladder; default: ladders")
        ->check(CLI::IsMember(std::vector<std::string>{"ladders", "breadth"}));
    add_list("--ops", ops, "transpose,gemm,reduce, of the breadth also map; default: all");
    add_list("--variants", variants, "names that --list prints; default: all");
    add_list("--dtypes", dtypes, "of f16,bf16,f32,tf32,f64; default: those of the ladders");
    add_list("--shapes", shapes,
             "as 8192x8192 (transpositions and sums), 1048576 (sums) or 4096x4096x4096 (products: m, n, k)");
    app.add_option("--problems", problems,
                   "file of problems, a line each (kernels/ladder/README.md), in place of the suite's; with "
                   "--suite=breadth the server's own choice of them, else all variants");
    app.add_option("--json", json, "file to write all numbers to");
    app.add_option("--rounds", rounds, "timings of each row; default: 15")->check(CLI::Range(0, 1 << 20));
    app.add_option("--buffers", buffers, "auto: warm if the operands fit well into the L2; default: auto")
        ->check(CLI::IsMember(kBuffers));
    app.add_option("--commit", commit, "goes into the JSON; default: that of the build")
        ->envname("WARPLINE_COMMIT");
    app.add_flag(
        "--list", list,
        "list the variants by their step in the ladder, of --ops and --variants only, or the problems of "
        "--problems or --suite=breadth with the server's choice for each, and end");
  }
};

bool Contains(const std::vector<std::string>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

void List(const std::vector<std::string>& ops, const std::vector<std::string>& names) {
  std::vector<std::string> laddered = ops;
  std::erase(laddered, "map");                                            // of the breadth alone
  if (!laddered.empty() || ops.empty()) MakeCases(laddered, {}, {}, {});  // refuses operations there are not
  std::vector<std::string> missing = names;
  const auto list = [&](const char* op, const auto& problem) {
    if (!ops.empty() && !Contains(ops, op)) return;
    for (const auto* row : Climb(problem)) {
      const auto means = [row](const std::string& name) { return Answers(*row, name); };
      if (!names.empty() && std::none_of(names.begin(), names.end(), means)) continue;
      std::erase_if(missing, means);
      const std::string step = row->step > 0 ? absl::StrCat(row->step) : "-";
      std::printf("%-11s %2s %-19s %s\n", op, step.c_str(), std::string(row->name).c_str(),
                  std::string(row->summary).c_str());
    }
  };
  list("transpose", TransposeProblem());
  list("gemm", GemmProblem());
  list("reduce", ReduceProblem());
  list("map", MapProblem());
  if (!missing.empty()) {
    throw Failure(absl::StrCat("--variants: ", absl::StrJoin(missing, ", "), ": no variant of ",
                               ops.empty() ? "any operation" : absl::StrJoin(ops, " or ")));
  }
}

std::string Version(int number) { return absl::StrCat(number / 1000, ".", number % 1000 / 10); }

nlohmann::ordered_json Describe(const Device& device, const Flags& flags, const std::string& command) {
  nlohmann::ordered_json gpu, json;
  gpu["name"] = device.properties.name;
  gpu["compute_capability"] = absl::StrCat(device.properties.major, ".", device.properties.minor);
  gpu["multiprocessors"] = device.properties.multiProcessorCount;
  gpu["l2_bytes"] = device.l2_bytes();
  gpu["memory_bytes"] = device.properties.totalGlobalMem;
  json["schema"] = 1;
  json["gpu"] = std::move(gpu);
  json["driver_cuda_version"] = Version(device.driver_version);
  json["cuda_version"] = Version(device.runtime_version);
  json["cublaslt"] = device.cublaslt != nullptr ? "found" : device.why_no_cublaslt;
  json["commit"] = flags.commit;
  json["command"] = command;
  json["mode"] = flags.mode;
  json["suite"] = flags.suite;
  json["time"] = absl::FormatTime(absl::Now(), absl::UTCTimeZone());
  return json;
}

// The run that every mode adds its results to.
class Session {
 public:
  Session(const Device& device, const Flags& flags)
      : device_(device), flags_(flags), clocks_(PciBusId()), whole_run_(PciBusId()) {}

  void Ladder(const std::vector<Case>& cases) {
    LadderOptions options{.buffers = kBuffers.at(flags_.buffers)};
    if (flags_.rounds > 0) options.rounds = flags_.rounds;
    Roofs roofs(device_);
    std::printf("roofs: copy %.0f GB/s (%s, read and written), read %.0f GB/s (1 GiB)\n", roofs.copy() / 1e9,
                roofs.copy_name().c_str(), roofs.read() / 1e9);
    for (const Case& bench_case : cases) {
      results_.push_back(RunLadder(device_, roofs, clocks_, bench_case, options));
      bench_case.choice_only ? PrintLine(results_.back()) : Print(results_.back());
    }
    nlohmann::ordered_json gemm = nlohmann::ordered_json::object();
    for (const auto& [type, rate] : roofs.gemm()) gemm[type] = rate;
    roofs_["copy"] = roofs.copy();
    roofs_["read"] = roofs.read();
    roofs_["gemm"] = std::move(gemm);
  }

  void Once(const std::vector<Case>& cases) {
    for (const Case& bench_case : cases) {
      results_.push_back(LaunchOnce(device_, bench_case));
      int number = 0;
      for (const Row& row : results_.back().rows) {
        std::printf("%s: %d %s %s\n", Label(bench_case.problem).c_str(), ++number, row.name.c_str(),
                    row.status.c_str());
      }
    }
  }

  void Articles() {
    Ladder(ArticleCases());
    tables_.push_back(ArticleTable(results_));
    Print(tables_.back());
  }

  // An error that leaves what was measured worth having.
  void Note(std::string_view error) {
    std::fprintf(stderr, "warpline-bench-kernels: %s\n", std::string(error).c_str());
    errors_.emplace_back(error);
  }

  bool failed() const {
    if (!errors_.empty()) return true;
    for (const CaseResult& result : results_) {
      for (const Row& row : result.rows) {
        if (row.is_failure) return true;
      }
    }
    return false;
  }

  void Finish(nlohmann::ordered_json json) {
    const ClockSummary clocks = whole_run_.Take();
    std::printf("\nwhole run: %s\n", clocks.ToString().c_str());
    if (flags_.json.empty()) return;
    std::vector<nlohmann::ordered_json> cases, tables;
    for (const CaseResult& result : results_) cases.push_back(ToJson(result));
    for (const Table& table : tables_) tables.push_back(ToJson(table));
    json["clocks"] = ToJson(clocks);
    json["roofs"] = std::move(roofs_);
    json["cases"] = std::move(cases);
    json["tables"] = std::move(tables);
    if (!errors_.empty()) json["error"] = absl::StrJoin(errors_, "; ");
    WriteFile(json, flags_.json);
  }

 private:
  static std::string PciBusId() {
    char id[32] = "";
    Check(cudaDeviceGetPCIBusId(id, sizeof(id), 0), "reading the device's address");
    return id;
  }

  const Device& device_;
  const Flags& flags_;
  ClockSampler clocks_, whole_run_;
  std::vector<CaseResult> results_;
  std::vector<Table> tables_;
  std::vector<std::string> errors_;
  nlohmann::ordered_json roofs_ = nlohmann::ordered_json::object();
};

void Run(const Flags& flags, const std::vector<Case>& cases, Session& session) {
  if (flags.mode == "articles") {
    session.Articles();
  } else if (flags.mode == "once") {
    session.Once(cases);
  } else {
    session.Ladder(cases);
  }
}

// Throws Failure for anything wrong with the flags, before a GPU is looked for.
std::vector<Case> CasesOf(const Flags& flags) {
  const bool filters =
      !flags.ops.empty() || !flags.dtypes.empty() || !flags.shapes.empty() || !flags.variants.empty();
  if (filters && flags.mode == "articles") {
    throw Failure("--mode=articles takes none of --ops, --dtypes, --shapes, --variants");
  }
  if (!flags.problems.empty()) {
    if ((flags.mode != "ladder" && flags.mode != "once") || filters) {
      throw Failure(
          "--problems takes --suite and --mode=once, and none of --ops, --dtypes, --shapes, --variants");
    }
    return FileCases(flags.problems, /*choice_only=*/flags.suite == "breadth");
  }
  if (flags.suite == "breadth") {
    if ((flags.mode != "ladder" && flags.mode != "once") || !flags.dtypes.empty() || !flags.shapes.empty() ||
        !flags.variants.empty()) {
      throw Failure(
          "--suite=breadth takes --ops and --mode=once, and none of --dtypes, --shapes, --variants");
    }
    return BreadthCases(flags.ops);
  }
  return MakeCases(flags.ops, flags.dtypes, flags.shapes, flags.variants);
}

int Main(const Flags& flags, const std::string& command) {
  const bool lists_problems = !flags.problems.empty() || flags.suite == "breadth";
  if (flags.list && !lists_problems) {
    List(flags.ops, flags.variants);
    return 0;
  }
  const std::vector<Case> cases = CasesOf(flags);
  std::string why_not;
  const std::optional<Device> device = OpenDevice(&why_not);
  if (flags.list) {
    constexpr DeviceTraits kH200 = {.compute_capability = 90, .multiprocessors = 132, .has_cublaslt = true};
    if (!device) std::printf("# There is no GPU. These are the choices on an H200.\n");
    for (const Case& each : cases) {
      std::printf("%s  # %s\n", ProblemText(each.problem).c_str(),
                  ChoiceText(each.problem, device ? device->context.traits : kH200).c_str());
    }
    return 0;
  }
  if (!device) {
    std::printf("skipped: %s\n", why_not.c_str());
    return kSkipped;
  }
  std::printf("%s, compute capability %d.%d; CUDA %s, driver's %s; cuBLASLt %s\n", device->properties.name,
              device->properties.major, device->properties.minor, Version(device->runtime_version).c_str(),
              Version(device->driver_version).c_str(), device->cublaslt != nullptr ? "found" : "not found");
  Session session(*device, flags);
  try {
    Run(flags, cases, session);
  } catch (const Failure& failure) {
    session.Note(failure.what());
  }
  session.Finish(Describe(*device, flags, command));
  return session.failed() ? 1 : 0;
}

}  // namespace
}  // namespace warpline::bench

int main(int argc, char** argv) {
  CLI::App app("Every variant of every operation on one GPU, beside copies and libraries.",
               "warpline-bench-kernels");
  warpline::bench::Flags flags;
  app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  app.set_version_flag("--version", absl::StrCat("warpline-bench-kernels ", warpline::kVersion, " (",
                                                 warpline::kRevision, ")"));
  flags.AddTo(app);
  try {
    app.parse(argc, argv);
    return warpline::bench::Main(flags, absl::StrJoin(argv, argv + argc, " "));
  } catch (const CLI::Success& asked) {
    return app.exit(asked);  // --help or --version
  } catch (const std::runtime_error& error) {
    std::fprintf(stderr, "warpline-bench-kernels: %s\n", error.what());
    return 2;
  }
}
