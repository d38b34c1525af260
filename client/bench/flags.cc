#include "client/bench/flags.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "client/cli/transport.h"
#include "warpline/array.h"

namespace warpline::client {
namespace {

const Choices<BenchOp> kOps = {{"transpose", BenchOp::kTranspose},
                               {"gemm", BenchOp::kGemm},
                               {"reduce", BenchOp::kReduce},
                               {"echo", BenchOp::kEcho}};
// Each connection needs a thread and a socket in this process. Each request in flight needs memory for its
// response.
constexpr int kMaxChannels = 1024;
constexpr int kMaxConcurrency = 65536;
// The limit for all responses in flight together, in bytes. It catches mistakes, such as results of 8192x8192
// in all slots of an open loop.
constexpr std::size_t kMaxResultBytes = std::size_t{16} << 30;
// The default concurrency of an open loop. At latencies of a few milliseconds, the loop limits the rate, not
// this number.
constexpr int kOpenLoopConcurrency = 1024;

std::string_view NameOf(BenchOp op) {
  for (const auto& [name, value] : kOps) {
    if (value == op) return name;
  }
  return "?";
}

absl::StatusOr<Shape> ParseShape(const std::string& text, BenchOp op) {
  const std::optional<std::vector<std::int64_t>> sizes = ParseIntegers(text, 'x');
  bool valid = sizes && sizes->size() <= static_cast<std::size_t>(kMaxRank);
  Shape shape;
  for (std::size_t i = 0; valid && i < sizes->size(); ++i) {
    valid = (*sizes)[i] >= 0;
    if (valid) shape.Append((*sizes)[i]);
  }
  if (valid && op == BenchOp::kGemm) {
    if (shape.rank == 2) shape.Append(shape[1]);
    valid = shape.rank == 3;
  }
  if (valid) return shape;
  return UsageError(absl::StrCat(
      "--shape=", text, op == BenchOp::kGemm ? ": expected MxNxK" : ": expected AxB, up to 8 sizes"));
}

// Checks where the arrays must lie, and whether the operation has arrays with these names.
absl::Status CheckPlaces(const BenchFlags& flags) {
  if (flags.shared) RETURN_IF_ERROR(CheckSharing(flags.common));
  if (!flags.shared && !flags.common.regions.empty()) {
    return UsageError(
        "--regions names the socket of shared memory, which bench uses only with --transport shm");
  }
  const std::vector<std::string> operands =
      flags.op == BenchOp::kGemm ? std::vector<std::string>{"a", "b"} : std::vector<std::string>{"x"};
  for (std::size_t i = 0; i < flags.resident.size(); ++i) {
    const std::string& name = flags.resident[i];
    const bool is_operand = std::find(operands.begin(), operands.end(), name) != operands.end();
    const auto named = flags.resident.begin() + static_cast<std::ptrdiff_t>(i);
    if (is_operand && std::find(flags.resident.begin(), named, name) == named) continue;
    return UsageError(absl::StrCat("--resident=", absl::StrJoin(flags.resident, ","), ": expected some of ",
                                   absl::StrJoin(operands, ",")));
  }
  if (flags.op == BenchOp::kEcho && (flags.shared || flags.keep || !flags.resident.empty())) {
    return UsageError("--op echo computes nothing, so --transport=shm, --resident and --keep do not apply");
  }
  return absl::OkStatus();
}

absl::Status CheckMemory(const BenchFlags& flags, bool is_default) {
  ASSIGN_OR_USAGE(const std::size_t bytes, flags.ResultBytes());
  if (flags.keep) return absl::OkStatus();  // no result comes back
  const std::size_t most = kMaxResultBytes / std::max<std::size_t>(bytes, 1);
  if (static_cast<std::size_t>(flags.concurrency) <= most) return absl::OkStatus();
  return UsageError(absl::StrCat("--concurrency=", flags.concurrency,
                                 is_default ? " (the default with --rate)" : "", ": responses of ", bytes,
                                 " bytes each, at most ", kMaxResultBytes, " bytes together, allow ", most));
}

}  // namespace

void BenchFlags::AddTo(CLI::App& app, CommonFlags& common_flags) {
  AddChoice(app, "--op", op, kOps, "the operation (default: transpose)");
  app.add_option("--shape", sizes, "sizes of the input; for gemm MxNxK, or MxN with K = N (default: 32x32)");
  common_flags.AddDType(app);
  common_flags.AddVariant(app);
  common_flags.AddReproducible(app);
  AddChoice(app, "--reduce-op", reduce_op, ReduceOps(),
            "the reduction for --op reduce, over all axes or --axes (default: sum)");
  AddIntegers(app, "--axes", axes, "axes to reduce, such as 0,-1 (default: all)");
  app.add_option("--channels", channels, "connections, with a thread each (default: 1)")
      ->check(CLI::Range(1, kMaxChannels));
  app.add_option("--concurrency", concurrency,
                 "requests in flight, all channels together; the maximum if --rate is given (default: 1, "
                 "with --rate 1024)")
      ->check(CLI::Range(1, kMaxConcurrency));
  AddNumber(app, "--rate", rate,
            "open loop: send R requests/s, and count latency from the time when each was due");
  const Choices<bool> arrivals = {{"poisson", true}, {"fixed", false}};
  AddChoice(app, "--arrivals", poisson, arrivals,
            "distribution of the intervals with --rate (default: poisson)");
  CLI::Option* const time = AddTime(app, "--duration", duration, "how long to measure (default: 5s)");
  app.add_option("--requests", requests, "measure N requests instead of --duration")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 50))
      ->excludes(time);
  AddTime(app, "--warmup", warmup, "time before the measurement (default: 1s; 0s for none)", Least::kZero);
  const Choices<bool> transports = {{"inline", false}, {"shm", true}};
  AddChoice(app, "--transport", shared, transports, "how arrays travel (default: inline)");
  common_flags.AddRegions(
      app, "with --transport shm: the server's region socket (default: /path.regions for unix:/path)");
  const auto set_resident = [this](const std::string& names) { resident = absl::StrSplit(names, ','); };
  app.add_option_function<std::string>("--resident", set_resident,
                                       "operands that are put on the server first: x, or for gemm a,b");
  app.add_flag("--keep", keep, "leave results on the server, and drop each at once");
}

absl::StatusOr<BenchFlags> BenchFlags::Completed(const CommonFlags& common_flags) const {
  BenchFlags flags = *this;
  flags.common = common_flags;
  flags.dtype = flags.common.dtype.value_or(DType::kF32);
  ASSIGN_OR_RETURN(flags.shape, ParseShape(sizes, op));
  if (rate && !(*rate > 0 && *rate <= 1e9))
    return UsageError("--rate: expected a number above 0, at most 1e9");
  // Every channel gets work by default.
  if (concurrency == 0) flags.concurrency = rate ? kOpenLoopConcurrency : channels;
  if (flags.concurrency < channels) return UsageError("--concurrency is below --channels");
  RETURN_IF_ERROR(CheckPlaces(flags));
  RETURN_IF_ERROR(CheckMemory(flags, rate && concurrency == 0));
  return flags;
}

absl::StatusOr<std::size_t> BenchFlags::ResultBytes() const {
  ConstArray result{.dtype = dtype, .shape = shape};
  if (op == BenchOp::kGemm) {
    result.shape = {shape[0], shape[1]};
    if (dtype == DType::kI8) result.dtype = DType::kI32;
  }
  if (op == BenchOp::kReduce) {
    result.dtype = DType::kI64;  // the widest type of any result
    std::int64_t* const sizes = result.shape.dims.data();
    if (axes.empty()) std::fill_n(sizes, shape.rank, 1);
    for (int axis : axes) {
      const int from_start = axis < 0 ? axis + shape.rank : axis;
      if (from_start >= 0 && from_start < shape.rank) sizes[from_start] = 1;
    }
  }
  return ByteSize(result);
}

bool BenchFlags::IsResident(std::string_view operand) const {
  return std::find(resident.begin(), resident.end(), operand) != resident.end();
}

std::string BenchFlags::Title() const {
  std::string title = absl::StrFormat("%s %s%s, %s, ", std::string(NameOf(op)), std::string(Name(dtype)),
                                      ToString(shape), Transport());
  if (!resident.empty()) absl::StrAppend(&title, absl::StrJoin(resident, " and "), " resident, ");
  if (keep) absl::StrAppend(&title, "result kept, ");
  absl::StrAppend(&title, channels, channels == 1 ? " channel, " : " channels, ");
  if (!rate) return absl::StrCat(title, concurrency, " in flight");
  return absl::StrCat(title, *rate, " requests/s due (", poisson ? "poisson" : "fixed", "), at most ",
                      concurrency, " in flight");
}

}  // namespace warpline::client
