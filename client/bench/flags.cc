#include "client/bench/flags.h"

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

constexpr std::pair<std::string_view, BenchOp> kOps[] = {{"transpose", BenchOp::kTranspose},
                                                         {"gemm", BenchOp::kGemm},
                                                         {"reduce", BenchOp::kReduce},
                                                         {"echo", BenchOp::kEcho}};
// Each connection has a thread here and a socket there; each request in flight has memory for its response.
constexpr int kMaxChannels = 1024;
constexpr int kMaxConcurrency = 65536;
// Of all responses in flight together: a bound on mistakes, as 8192x8192 in the slots of an open loop.
constexpr std::size_t kMaxResultBytes = std::size_t{16} << 30;
// Of an open loop: enough that the loop, and not this, limits the rate at a latency of a few milliseconds.
constexpr int kOpenLoopConcurrency = 1024;

std::string_view NameOf(BenchOp op) {
  for (const auto& [name, value] : kOps) {
    if (value == op) return name;
  }
  return "?";
}

absl::StatusOr<Shape> ShapeFlag(const Args& args, BenchOp op) {
  const std::string text = args.String("shape", "32x32");
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

// Where the arrays are to be, and whether the operation has such.
absl::Status PlaceFlags(const Args& args, BenchFlags& flags) {
  const std::string transport = args.String("transport", "inline");
  if (transport != "inline" && transport != "shm") {
    return UsageError(absl::StrCat("--transport=", transport, ": expected inline or shm"));
  }
  flags.shared = transport == "shm";
  if (flags.shared) RETURN_IF_ERROR(CheckSharing(flags.common));
  if (!flags.shared && args.Has("regions")) {
    return UsageError("--regions is of shared memory, which bench uses only with --transport shm");
  }
  ASSIGN_OR_USAGE(flags.keep, args.Bool("keep"));
  const std::vector<std::string> operands =
      flags.op == BenchOp::kGemm ? std::vector<std::string>{"a", "b"} : std::vector<std::string>{"x"};
  const std::string names = args.String("resident", "");
  if (args.Has("resident")) flags.resident = absl::StrSplit(names, ',');
  for (std::size_t i = 0; i < flags.resident.size(); ++i) {
    const std::string& name = flags.resident[i];
    const bool is_operand = std::find(operands.begin(), operands.end(), name) != operands.end();
    const auto named = flags.resident.begin() + static_cast<std::ptrdiff_t>(i);
    if (is_operand && std::find(flags.resident.begin(), named, name) == named) continue;
    return UsageError(
        absl::StrCat("--resident=", names, ": expected some of ", absl::StrJoin(operands, ",")));
  }
  if (flags.op == BenchOp::kEcho && (flags.shared || flags.keep || !flags.resident.empty())) {
    return UsageError("--transport=shm, --resident and --keep are not of echo, which computes nothing");
  }
  return absl::OkStatus();
}

absl::Status CheckMemory(const BenchFlags& flags, bool is_default) {
  ASSIGN_OR_USAGE(const std::size_t bytes, flags.ResultBytes());
  if (flags.keep) return absl::OkStatus();  // nothing comes back
  const std::size_t most = kMaxResultBytes / std::max<std::size_t>(bytes, 1);
  if (static_cast<std::size_t>(flags.concurrency) <= most) return absl::OkStatus();
  return UsageError(absl::StrCat("--concurrency=", flags.concurrency,
                                 is_default ? " (the default with --rate)" : "", ": responses of ", bytes,
                                 " bytes each, at most ", kMaxResultBytes, " bytes together, allow ", most));
}

}  // namespace

absl::StatusOr<BenchFlags> BenchFlags::From(const Args& args, const CommonFlags& common) {
  if (args.positionals().size() > 1) return UsageError("bench takes no file");
  BenchFlags flags;
  flags.common = common;
  flags.dtype = common.dtype.value_or(DType::kF32);
  const std::string op = args.String("op", "transpose");
  bool known = false;
  for (const auto& [name, value] : kOps) {
    if (name != op) continue;
    flags.op = value;
    known = true;
  }
  if (!known) return UsageError(absl::StrCat("--op=", op, ": expected transpose, gemm, reduce or echo"));
  ASSIGN_OR_RETURN(flags.shape, ShapeFlag(args, flags.op));
  ASSIGN_OR_RETURN(flags.reduce_op, ReduceOpFlag(args, "reduce-op"));
  ASSIGN_OR_USAGE(flags.axes, args.Integers("axes"));

  ASSIGN_OR_USAGE(const std::optional<double> rate, args.Number("rate"));
  if (rate && !(*rate > 0 && *rate <= 1e9))
    return UsageError("--rate: expected a number above 0, at most 1e9");
  flags.rate = rate.value_or(0);
  const std::string arrivals = args.String("arrivals", "poisson");
  if (arrivals != "poisson" && arrivals != "fixed") {
    return UsageError(absl::StrCat("--arrivals=", arrivals, ": expected poisson or fixed"));
  }
  flags.poisson = arrivals == "poisson";
  ASSIGN_OR_USAGE(const std::int64_t channels, args.Integer("channels", 1, 1, kMaxChannels));
  // Every channel has work, unless told otherwise.
  const std::int64_t in_flight = rate ? kOpenLoopConcurrency : channels;
  ASSIGN_OR_USAGE(const std::int64_t concurrency, args.Integer("concurrency", in_flight, 1, kMaxConcurrency));
  if (concurrency < channels) return UsageError("--concurrency is below --channels");
  flags.channels = static_cast<int>(channels);
  flags.concurrency = static_cast<int>(concurrency);
  RETURN_IF_ERROR(PlaceFlags(args, flags));
  RETURN_IF_ERROR(CheckMemory(flags, rate && !args.Has("concurrency")));

  if (args.Has("requests") && args.Has("duration"))
    return UsageError("--requests and --duration exclude each other");
  ASSIGN_OR_USAGE(flags.requests, args.Integer("requests", 0, 1, std::int64_t{1} << 50));
  ASSIGN_OR_USAGE(flags.duration, args.Duration("duration", flags.duration));
  absl::Duration warmup;
  const bool no_warmup =
      absl::ParseDuration(args.String("warmup", "1s"), &warmup) && warmup == absl::ZeroDuration();
  flags.warmup = absl::ZeroDuration();
  if (!no_warmup) {
    ASSIGN_OR_USAGE(flags.warmup, args.Duration("warmup", absl::Seconds(1)));
  }
  return flags;
}

absl::StatusOr<std::size_t> BenchFlags::ResultBytes() const {
  ConstArray result{.dtype = dtype, .shape = shape};
  if (op == BenchOp::kGemm) {
    result.shape = {shape[0], shape[1]};
    if (dtype == DType::kI8) result.dtype = DType::kI32;
  }
  if (op == BenchOp::kReduce) {
    result.dtype = DType::kI64;  // the widest of the results
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
  if (rate == 0) return absl::StrCat(title, concurrency, " in flight");
  return absl::StrCat(title, rate, " requests/s due (", poisson ? "poisson" : "fixed", "), at most ",
                      concurrency, " in flight");
}

}  // namespace warpline::client
