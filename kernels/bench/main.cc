// warpline-bench-kernels: every variant of every operation on one GPU, against copies and libraries.
#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/flags/reflection.h"
#include "absl/flags/usage.h"
#include "absl/flags/usage_config.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "kernels/bench/articles.h"
#include "kernels/bench/check.h"
#include "kernels/bench/clocks.h"
#include "kernels/bench/device.h"
#include "kernels/bench/ladder.h"
#include "kernels/bench/pipeline.h"
#include "kernels/bench/roofs.h"

ABSL_FLAG(std::string, mode, "ladder",
          "ladder: all variants; pipeline: experiments with streams, host memory and caches; articles: the "
          "articles' figures; once: each variant launched once, for a profiler");
ABSL_FLAG(std::vector<std::string>, ops, {}, "transpose,gemm,reduce; default: all");
ABSL_FLAG(std::vector<std::string>, variants, {}, "names that --list prints; default: all");
ABSL_FLAG(std::vector<std::string>, dtypes, {}, "of f16,bf16,f32,tf32,f64; default: those of the ladders");
ABSL_FLAG(std::vector<std::string>, shapes, {},
          "as 8192x8192 (transpositions and sums), 1048576 (sums) or 4096x4096x4096 (products: m, n, k)");
ABSL_FLAG(std::string, json, "", "file to write all numbers to");
ABSL_FLAG(int, rounds, 0, "timings of each row; default: 15, of the pipeline 5");
ABSL_FLAG(std::string, buffers, "auto", "warm, rotating, or auto: warm if the operands fit well into the L2");
ABSL_FLAG(std::string, tensor, "8192x8192", "f32 tensor of the pipeline experiments");
ABSL_FLAG(std::string, commit, "", "goes into the JSON; default: $WARPLINE_COMMIT, else that of the build");
ABSL_FLAG(bool, list, false, "list the variants, of --ops and --variants only, and end");

namespace warpline::bench {
namespace {

// Of this program; those of the libraries in it mean nothing here.
bool IsOurs(std::string_view file) { return file.ends_with("kernels/bench/main.cc"); }

void PrintHelp() {
  std::puts(
      "warpline-bench-kernels: every variant of every operation on one GPU, beside copies and libraries.\n");
  std::map<std::string, std::string> lines;  // in the order of their names
  for (const auto& [name, flag] : absl::GetAllFlags()) {
    if (!IsOurs(flag->Filename())) continue;
    const std::string value = flag->DefaultValue();
    lines[std::string(name)] = absl::StrCat(value.empty() ? "" : "=", value, "\n      ", flag->Help());
  }
  for (const auto& [name, text] : lines) std::printf("  --%s%s\n", name.c_str(), text.c_str());
}

bool Contains(const std::vector<std::string>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

void List() {
  const std::vector<std::string> ops = absl::GetFlag(FLAGS_ops), names = absl::GetFlag(FLAGS_variants);
  MakeCases(ops, {}, {}, names);  // refuses what there is not
  const auto list = [&](const char* op, const auto& table) {
    if (!ops.empty() && !Contains(ops, op)) return;
    for (const auto& row : table) {
      if (!names.empty() && !Contains(names, row.name)) continue;
      std::printf("%-10s %-20s %s\n", op, std::string(row.name).c_str(), std::string(row.summary).c_str());
    }
  };
  list("transpose", CudaTransposeVariants());
  list("gemm", CudaGemmVariants());
  list("reduce", CudaReduceVariants());
}

Buffers ParseBuffers(const std::string& name) {
  if (name == "auto") return Buffers::kAuto;
  if (name == "warm") return Buffers::kWarm;
  if (name == "rotating") return Buffers::kRotating;
  throw Failure(absl::StrCat("--buffers: ", name, ": expected auto, warm or rotating"));
}

PipelineOptions MakePipelineOptions() {
  const Shape shape = ParseShape("--tensor", absl::GetFlag(FLAGS_tensor));
  if (shape.rank != 2) throw Failure("--tensor: expected two sizes");
  PipelineOptions options{.rows = shape[0], .columns = shape[1]};
  if (absl::GetFlag(FLAGS_rounds) > 0) options.rounds = absl::GetFlag(FLAGS_rounds);
  return options;
}

std::string Version(int number) { return absl::StrCat(number / 1000, ".", number % 1000 / 10); }

JsonObject Describe(const Device& device, const std::vector<std::string>& command) {
  JsonObject gpu, json;
  Set(gpu, "name", device.properties.name);
  Set(gpu, "compute_capability", absl::StrCat(device.properties.major, ".", device.properties.minor));
  Set(gpu, "multiprocessors", static_cast<double>(device.properties.multiProcessorCount));
  Set(gpu, "l2_bytes", static_cast<double>(device.l2_bytes()));
  Set(gpu, "memory_bytes", static_cast<double>(device.properties.totalGlobalMem));
  Set(json, "schema", 1.0);
  Set(json, "gpu", std::move(gpu));
  Set(json, "driver_cuda_version", Version(device.driver_version));
  Set(json, "cuda_version", Version(device.runtime_version));
  Set(json, "cublaslt", device.cublaslt != nullptr ? "found" : device.why_no_cublaslt);
  std::string commit = absl::GetFlag(FLAGS_commit);
  const char* from_environment = std::getenv("WARPLINE_COMMIT");
  if (commit.empty()) commit = from_environment != nullptr ? from_environment : WARPLINE_REVISION;
  Set(json, "commit", commit);
  Set(json, "command", absl::StrJoin(command, " "));
  Set(json, "mode", absl::GetFlag(FLAGS_mode));
  Set(json, "time", absl::FormatTime(absl::Now(), absl::UTCTimeZone()));
  return json;
}

// What the modes add to.
class Session {
 public:
  explicit Session(const Device& device) : device_(device), clocks_(PciBusId()), whole_run_(PciBusId()) {}

  void Ladder(const std::vector<Case>& cases) {
    LadderOptions options{.buffers = ParseBuffers(absl::GetFlag(FLAGS_buffers))};
    if (absl::GetFlag(FLAGS_rounds) > 0) options.rounds = absl::GetFlag(FLAGS_rounds);
    Roofs roofs(device_);
    std::printf("roofs: copy %.0f GB/s (%s, read and written), read %.0f GB/s (1 GiB)\n", roofs.copy() / 1e9,
                roofs.copy_name().c_str(), roofs.read() / 1e9);
    for (const Case& bench_case : cases) {
      results_.push_back(RunLadder(device_, roofs, clocks_, bench_case, options));
      Print(results_.back());
    }
    JsonObject gemm;
    for (const auto& [type, rate] : roofs.gemm()) Set(gemm, type, rate);
    Set(roofs_, "copy", roofs.copy());
    Set(roofs_, "read", roofs.read());
    Set(roofs_, "gemm", std::move(gemm));
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

  void Add(Experiment experiment) {
    Print(experiment);
    experiments_.push_back(std::move(experiment));
  }

  void Pipeline(const PipelineOptions& options) {
    // What one GPU cannot do must not cost the other experiments.
    const auto attempt = [this](const std::function<void()>& measure) {
      try {
        measure();
      } catch (const Failure& failure) {
        Note(failure.what());
      }
    };
    attempt([&] {
      for (Experiment& experiment : OverlapExperiments(device_, options)) Add(std::move(experiment));
    });
    attempt([&] {
      for (Experiment& experiment : HostMemoryExperiments(device_, options)) Add(std::move(experiment));
    });
    for (const auto measure : {DefaultStreamTrap, CacheWindow, Carveout, Occupancy}) {
      attempt([&] { Add(measure(device_, options)); });
    }
  }

  void Articles(const PipelineOptions& options) {
    Ladder(ArticleCases());
    Add(FourStreams(device_, options));
    Add(ArticleTable(results_, experiments_.back()));
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

  void Finish(JsonObject json) {
    const ClockSummary clocks = whole_run_.Take();
    std::printf("\nwhole run: %s\n", clocks.ToString().c_str());
    const std::string path = absl::GetFlag(FLAGS_json);
    if (path.empty()) return;
    std::vector<JsonObject> cases, experiments;
    for (const CaseResult& result : results_) cases.push_back(ToJson(result));
    for (const Experiment& experiment : experiments_) experiments.push_back(ToJson(experiment));
    Set(json, "clocks", ToJson(clocks));
    Set(json, "roofs", std::move(roofs_));
    Set(json, "cases", std::move(cases));
    Set(json, "experiments", std::move(experiments));
    if (!errors_.empty()) Set(json, "error", absl::StrJoin(errors_, "; "));
    WriteFile(json, path);
  }

 private:
  static std::string PciBusId() {
    char id[32] = "";
    Check(cudaDeviceGetPCIBusId(id, sizeof(id), 0), "reading the device's address");
    return id;
  }

  const Device& device_;
  ClockSampler clocks_, whole_run_;
  std::vector<CaseResult> results_;
  std::vector<Experiment> experiments_;
  std::vector<std::string> errors_;
  JsonObject roofs_;
};

void Run(const std::string& mode, const std::vector<Case>& cases, Session& session) {
  if (mode == "pipeline") {
    session.Pipeline(MakePipelineOptions());
  } else if (mode == "articles") {
    session.Articles(MakePipelineOptions());
  } else if (mode == "once") {
    session.Once(cases);
  } else {
    session.Ladder(cases);
  }
}

// Throws Failure for anything wrong with them, before a GPU is looked for.
std::vector<Case> ParseFlags(const std::string& mode) {
  if (mode != "ladder" && mode != "pipeline" && mode != "articles" && mode != "once") {
    throw Failure(absl::StrCat("--mode: ", mode, ": expected ladder, pipeline, articles or once"));
  }
  if (const int rounds = absl::GetFlag(FLAGS_rounds); rounds < 0) {
    throw Failure(absl::StrCat("--rounds: ", rounds, ": expected 1 or more, or 0 for the default"));
  }
  ParseBuffers(absl::GetFlag(FLAGS_buffers));
  MakePipelineOptions();
  const std::vector<std::string> ops = absl::GetFlag(FLAGS_ops), types = absl::GetFlag(FLAGS_dtypes),
                                 shapes = absl::GetFlag(FLAGS_shapes), names = absl::GetFlag(FLAGS_variants);
  const bool filters = !ops.empty() || !types.empty() || !shapes.empty() || !names.empty();
  if (filters && (mode == "pipeline" || mode == "articles")) {
    throw Failure(absl::StrCat("--mode=", mode, " takes none of --ops, --dtypes, --shapes, --variants"));
  }
  return MakeCases(ops, types, shapes, names);
}

int Main(const std::vector<std::string>& command) {
  if (absl::GetFlag(FLAGS_list)) {
    List();
    return 0;
  }
  const std::string mode = absl::GetFlag(FLAGS_mode);
  const std::vector<Case> cases = ParseFlags(mode);
  std::string why_not;
  const std::optional<Device> device = OpenDevice(&why_not);
  if (!device) {
    std::printf("skipped: %s\n", why_not.c_str());
    return 0;
  }
  std::printf("%s, compute capability %d.%d; CUDA %s, driver's %s; cuBLASLt %s\n", device->properties.name,
              device->properties.major, device->properties.minor, Version(device->runtime_version).c_str(),
              Version(device->driver_version).c_str(), device->cublaslt != nullptr ? "found" : "not found");
  Session session(*device);
  try {
    Run(mode, cases, session);
  } catch (const Failure& failure) {
    session.Note(failure.what());
  }
  session.Finish(Describe(*device, command));
  return session.failed() ? 1 : 0;
}

}  // namespace
}  // namespace warpline::bench

int main(int argc, char** argv) {
  const std::vector<std::string> command(argv, argv + argc);
  // Abseil's own --help ends with an error code.
  for (const std::string& argument : command) {
    if (argument != "--help" && argument != "-h") continue;
    warpline::bench::PrintHelp();
    return 0;
  }
  absl::SetProgramUsageMessage("see --help");
  absl::FlagsUsageConfig usage;
  usage.version_string = [] {
    return "warpline-bench-kernels " WARPLINE_VERSION " (" WARPLINE_REVISION ")\n";
  };
  absl::SetFlagsUsageConfig(usage);
  const std::vector<char*> rest = absl::ParseCommandLine(argc, argv);
  try {
    if (rest.size() > 1) throw warpline::bench::Failure(absl::StrCat("unexpected argument ", rest[1]));
    return warpline::bench::Main(command);
  } catch (const warpline::bench::Failure& failure) {
    std::fprintf(stderr, "warpline-bench-kernels: %s\n", failure.what());
    return 2;
  }
}
