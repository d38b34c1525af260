#include "client/cli/session.h"

#include <cstdio>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "client/cli/args.h"
#include "client/cli/operands.h"
#include "client/cli/output.h"
#include "client/cli/output_file.h"
#include "client/cli/progress_line.h"
#include "client/cli/tensor_path.h"
#include "client/src/codec.h"
#include "client/src/result_type.h"
#include "kernels/status_macros.h"

namespace warpline::client {
namespace {

Timing::Array Described(const std::string& name, const Array& array, const std::optional<Tensor>& tensor) {
  if (tensor) return {.name = name, .dtype = tensor->dtype(), .shape = tensor->shape()};
  return {.name = name, .dtype = array.dtype(), .shape = array.shape()};
}

// The result of a program with only one step has no name.
std::vector<Timing::Array> Described(const RunResult& result, bool one_step) {
  std::vector<Timing::Array> arrays;
  for (std::size_t i = 0; i < result.outputs.size(); ++i) {
    const std::string name = one_step ? "" : result.outputs[i].first;
    arrays.push_back(Described(name, result.outputs[i].second, result.tensors[i]));
  }
  return arrays;
}

// Checks the path of an output.
absl::Status CheckPath(const std::string& path, std::span<const std::string> others) {
  if (IsTensorPath(path) && path != kKeptPath) {
    return UsageError(absl::StrCat("-o ", Shown(path), ": a result on the server gets a new id: ",
                                   "expected -o @ alone, or a file as ./@NAME"));
  }
  for (const std::string& other : others) {
    if (path == kKeptPath && other == kKeptPath) continue;
    if ((path == kKeptPath && IsStandardOutput(other)) || (other == kKeptPath && IsStandardOutput(path))) {
      return UsageError("-o @ prints an id to standard output, which another result uses already");
    }
    if (path == kKeptPath || other == kKeptPath || !IsSameOutput(path, other)) continue;
    return UsageError(absl::StrCat("-o ", path, ": another result goes there",
                                   path == other ? "" : absl::StrCat(", as ", other)));
  }
  if (path != kKeptPath && IsTerminal(path)) {
    return UsageError(
        absl::StrCat("-o ", path, ": the terminal would show bytes: name a file, or redirect it"));
  }
  return absl::OkStatus();
}

std::string NewRequestId() {
  std::random_device random;
  return absl::StrFormat("cli-%08x%08x", random(), random());
}

// The server's own errors contain the id. If the server did not answer in time, add the id here.
absl::Status WithRequestId(const absl::Status& status, const std::string& request_id) {
  if (!absl::IsDeadlineExceeded(status) || absl::StrContains(status.message(), request_id)) return status;
  return absl::DeadlineExceededError(absl::StrCat(status.message(), " (request ", request_id, ")"));
}

}  // namespace

absl::StatusOr<Session> Session::Create(const SessionFlags& flags, const CommonFlags& common,
                                        std::span<const std::string> outputs) {
  if (outputs.empty()) return UsageError("-o OUT.npy is missing");
  bool prints_to_stderr = false, keeps = false;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    RETURN_IF_ERROR(CheckPath(outputs[i], outputs.first(i)));
    keeps = keeps || outputs[i] == kKeptPath;
    prints_to_stderr = prints_to_stderr || outputs[i] == kKeptPath || IsStandardOutput(outputs[i]);
  }
  if (flags.ttl > absl::ZeroDuration() && !keeps) {
    return UsageError("--ttl applies only to a result that stays on the server: -o @");
  }
  if (flags.transport == TransportKind::kShm) RETURN_IF_ERROR(CheckSharing(common));
  const bool may_share = flags.transport == TransportKind::kAuto || flags.transport == TransportKind::kShm;
  if (may_share) RETURN_IF_ERROR(CheckRegions(common));
  return Session(common, prints_to_stderr, flags);
}

Session::Session(const CommonFlags& common, bool prints_to_stderr, const SessionFlags& flags)
    : common_(common),
      prints_to_stderr_(prints_to_stderr),
      ttl_(flags.ttl),
      streams_(StreamFromBytes(flags.transport) != 0),
      client_(std::make_unique<Client>(common.server,
                                       ClientOptions{.channel = common.channel(),
                                                     .max_retries = common.retries,
                                                     .region_socket = common.regions,
                                                     .stream_from_bytes = StreamFromBytes(flags.transport)})),
      transport_(*client_, flags.transport, common) {}

absl::StatusOr<NpyArray> Session::Read(const std::string& path, std::optional<DType> dtype) {
  if (IsTensorPath(path)) {
    ASSIGN_OR_RETURN(const Tensor tensor, FindTensor(*client_, path, common_.deadline));
    if (dtype && *dtype != tensor.dtype()) {
      return UsageError(absl::StrCat(Shown(path), ": the tensor is ", std::string(Name(tensor.dtype())),
                                     ", not ", std::string(Name(*dtype))));
    }
    return NpyArray{.stored = tensor};
  }
  absl::Status refused;  // an error of the server, not of the file
  const auto allocate = [&](std::size_t bytes) {
    absl::StatusOr<std::shared_ptr<void>> memory = transport_.Allocate(bytes);
    refused = memory.status();
    return memory;
  };
  absl::StatusOr<NpyArray> array = ReadNpy(path, dtype, transport_.max_bytes(), allocate);
  if (!refused.ok()) return refused;
  if (!array.ok()) return AsFileError(array.status());
  return array;
}

Destination Session::To(const std::string& path) const {
  Destination destination;
  if (path == kKeptPath) destination.keep = ttl_;
  return destination;
}

absl::Status Session::Write(const std::string& path, const Array& array, std::optional<Tensor>& tensor,
                            bool fortran) const {
  if (tensor) return PrintId(*tensor);
  const absl::Status status = WriteNpy(path, array.View(), fortran);
  return status.ok() ? status : AsFileError(status);
}

std::vector<std::string_view> Session::WaysOf(const RunArgs& request, const Streamed& streamed) const {
  std::vector<std::string_view> ways;
  for (std::size_t i = 0; i < request.inputs.size(); ++i) {
    ways.push_back(transport_.WayOf(request.inputs[i].second, i, streamed));
  }
  for (std::size_t i = 0; i < request.destinations.size(); ++i) {
    ways.push_back(Transport::WayOf(request.destinations[i], i, streamed));
  }
  return ways;
}

absl::StatusOr<RunResult> Session::Send(std::string_view op, const RunArgs& request) {
  // A request that cannot be sent at all is refused here, so that the error does not look like the server's.
  // A request that is too large for a message may travel in ranges.
  const absl::Status sendable = Encode(request, transport_.shared()).status();
  const bool is_too_large = absl::IsResourceExhausted(sendable) && streams_;
  if (!sendable.ok() && !is_too_large) return AsUsageError(sendable);
  const absl::Time start = absl::Now();
  const std::string request_id = NewRequestId();
  std::optional<ProgressLine> line;
  const CallOptions options{.request_id = request_id,
                            .report = common_.timings,
                            .progress = [&](std::size_t bytes, std::size_t total) {
                              if (!line) line.emplace(std::string(op), total, /*quiet=*/false);
                              line->Show(bytes);
                            }};
  absl::StatusOr<RunResult> result = client_->Run(request, common_.deadline, options);
  line.reset();
  if (!result.ok()) return WithRequestId(result.status(), request_id);
  if (common_.timings) {
    const Timing timing{.op = op,
                        .arrays = Described(*result, request.one_step),
                        .ways = WaysOf(request, result->streamed),
                        .wall = absl::Now() - start,
                        .execution = result->execution};
    std::fputs(FormatTiming(timing, common_.json).c_str(), prints_to_stderr_ ? stderr : stdout);
  }
  return result;
}

absl::StatusOr<RunResult> Session::Compute(std::string_view op, RunArgs request) {
  ASSIGN_OR_RETURN(ResultTypes types, ResultTypesOf(request));
  request.destinations.resize(types.size());
  for (std::size_t i = 0; i < types.size(); ++i) {
    if (request.destinations[i].keep) types[i].reset();
  }
  ASSIGN_OR_RETURN(const std::vector<Destination> places, transport_.Place(types));
  for (std::size_t i = 0; i < types.size(); ++i) {
    if (!request.destinations[i].keep) request.destinations[i] = places[i];
  }
  return Send(op, request);
}

absl::Status Session::MakeRowMajor(NpyArray& array) {
  if (!array.fortran) return absl::OkStatus();
  const TransposeArgs request{.x = array.stored, .perm = ToRowMajorPerm(array)};
  ASSIGN_OR_RETURN(const RunResult result, Compute("transpose", OneStep(request)));
  array = {.stored = result.outputs.front().second.View()};
  return absl::OkStatus();
}

}  // namespace warpline::client
