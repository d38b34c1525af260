#include "client/cli/session.h"

#include <cstdio>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client/cli/operands.h"
#include "client/cli/output.h"
#include "client/cli/output_file.h"
#include "client/cli/tensor_path.h"
#include "client/src/codec.h"
#include "kernels/status_macros.h"

namespace warpline::client {
namespace {

Timing::Array Described(const std::string& name, const Array& array, const std::optional<Tensor>& tensor) {
  if (tensor) return {.name = name, .dtype = tensor->dtype(), .shape = tensor->shape()};
  return {.name = name, .dtype = array.dtype(), .shape = array.shape()};
}

std::vector<Timing::Array> Described(const Result& result) {
  return {Described("", result.array, result.tensor)};
}

std::vector<Timing::Array> Described(const RunResult& result) {
  std::vector<Timing::Array> arrays;
  for (std::size_t i = 0; i < result.outputs.size(); ++i) {
    arrays.push_back(Described(result.outputs[i].first, result.outputs[i].second, result.tensors[i]));
  }
  return arrays;
}

// Of an output.
absl::Status CheckPath(const std::string& path, std::span<const std::string> others) {
  if (IsTensorPath(path) && path != kKeptPath) {
    return UsageError(absl::StrCat("-o ", Shown(path), ": a result that stays on the server gets a new id: ",
                                   "expected -o @ alone, or a file as ./@NAME"));
  }
  for (const std::string& other : others) {
    if (path == kKeptPath && other == kKeptPath) continue;
    if ((path == kKeptPath && IsStandardOutput(other)) || (other == kKeptPath && IsStandardOutput(path))) {
      return UsageError("-o @ prints an id to standard output, where another result goes");
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

}  // namespace

absl::StatusOr<Session> Session::Create(const Args& args, const CommonFlags& common,
                                        std::span<const std::string> outputs) {
  if (outputs.empty()) return UsageError(absl::StrCat(args.positionals().front(), ": -o OUT.npy is missing"));
  bool prints_to_stderr = false, keeps = false;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    RETURN_IF_ERROR(CheckPath(outputs[i], outputs.first(i)));
    keeps = keeps || outputs[i] == kKeptPath;
    prints_to_stderr = prints_to_stderr || outputs[i] == kKeptPath || IsStandardOutput(outputs[i]);
  }
  if (args.Has("ttl") && !keeps) return UsageError("--ttl is of a result that stays on the server: -o @");
  ASSIGN_OR_USAGE(const absl::Duration ttl, args.Duration("ttl", absl::ZeroDuration()));
  ASSIGN_OR_USAGE(const std::int64_t retries, args.Integer("retries", 0, 0, 1000));
  return Session(common, prints_to_stderr, static_cast<int>(retries), ttl);
}

Session::Session(const CommonFlags& common, bool prints_to_stderr, int retries, absl::Duration ttl)
    : common_(common),
      prints_to_stderr_(prints_to_stderr),
      ttl_(ttl),
      client_(std::make_unique<Client>(common.server, ClientOptions{.max_retries = retries})) {}

absl::StatusOr<NpyArray> Session::Read(const std::string& path, std::optional<DType> dtype) const {
  if (IsTensorPath(path)) {
    ASSIGN_OR_RETURN(const Tensor tensor, FindTensor(*client_, path, common_.deadline));
    if (dtype && *dtype != tensor.dtype()) {
      return UsageError(absl::StrCat(Shown(path), ": the tensor is ", std::string(Name(tensor.dtype())),
                                     ", not ", std::string(Name(*dtype))));
    }
    return NpyArray{.stored = tensor};
  }
  absl::StatusOr<NpyArray> array = ReadNpy(path, dtype);
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

template <typename Send>
auto Session::Timed(const absl::Status& sendable, std::string_view op, Send send) -> decltype(send()) {
  // What cannot be sent at all is refused here, and must not look like an answer of the server's.
  if (!sendable.ok()) return AsUsageError(sendable);
  const absl::Time start = absl::Now();
  auto result = send();
  if (result.ok() && common_.timings) {
    const Timing timing{
        .op = op, .arrays = Described(*result), .wall = absl::Now() - start, .execution = result->execution};
    std::fputs(FormatTiming(timing, common_.json).c_str(), prints_to_stderr_ ? stderr : stdout);
  }
  return result;
}

absl::StatusOr<Result> Session::Compute(std::string_view op, const OperationArgs& request,
                                        const Destination& destination) {
  const CallOptions options{.destination = destination};
  const absl::Status sendable =
      std::visit([&](const auto& args) { return Encode(args, destination).status(); }, request);
  return Timed(sendable, op, [&]() -> absl::StatusOr<Result> {
    if (const auto* transpose = std::get_if<TransposeArgs>(&request)) {
      return client_->Transpose(*transpose, common_.deadline, options);
    }
    if (const auto* gemm = std::get_if<GemmArgs>(&request)) {
      return client_->Gemm(*gemm, common_.deadline, options);
    }
    return client_->Reduce(std::get<ReduceArgs>(request), common_.deadline, options);
  });
}

absl::StatusOr<RunResult> Session::Compute(const RunArgs& request) {
  return Timed(Encode(request).status(), "run", [&] { return client_->Run(request, common_.deadline); });
}

absl::Status Session::MakeRowMajor(NpyArray& array) {
  if (!array.fortran) return absl::OkStatus();
  TransposeArgs request{.x = array.stored, .perm = ToRowMajorPerm(array)};
  ASSIGN_OR_RETURN(const Result result, Compute("transpose", std::move(request)));
  array = {.stored = result.array.View()};
  return absl::OkStatus();
}

}  // namespace warpline::client
