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
#include "client/src/codec.h"
#include "kernels/status_macros.h"

namespace warpline::client {
namespace {

Timing::Array Described(const std::string& name, const Array& array) {
  return {.name = name, .dtype = array.dtype(), .shape = array.shape()};
}

std::vector<Timing::Array> Described(const Result& result) { return {Described("", result.array)}; }

std::vector<Timing::Array> Described(const RunResult& result) {
  std::vector<Timing::Array> arrays;
  for (const auto& [name, array] : result.outputs) arrays.push_back(Described(name, array));
  return arrays;
}

}  // namespace

absl::StatusOr<Session> Session::Create(const Args& args, const CommonFlags& common,
                                        std::span<const std::string> outputs) {
  if (outputs.empty()) return UsageError(absl::StrCat(args.positionals().front(), ": -o OUT.npy is missing"));
  bool prints_to_stderr = false;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const std::string& path = outputs[i];
    for (const std::string& other : outputs.first(i)) {
      if (!IsSameOutput(path, other)) continue;
      return UsageError(absl::StrCat("-o ", path, ": another result goes there",
                                     path == other ? "" : absl::StrCat(", as ", other)));
    }
    if (IsTerminal(path)) {
      return UsageError(
          absl::StrCat("-o ", path, ": the terminal would show bytes: name a file, or redirect it"));
    }
    prints_to_stderr = prints_to_stderr || IsStandardOutput(path);
  }
  ASSIGN_OR_USAGE(const std::int64_t retries, args.Integer("retries", 0, 0, 1000));
  return Session(common, prints_to_stderr, static_cast<int>(retries));
}

Session::Session(const CommonFlags& common, bool prints_to_stderr, int retries)
    : common_(common),
      prints_to_stderr_(prints_to_stderr),
      client_(std::make_unique<Client>(common.server, ClientOptions{.max_retries = retries})) {}

absl::StatusOr<NpyArray> Session::Read(const std::string& path, std::optional<DType> dtype) const {
  absl::StatusOr<NpyArray> array = ReadNpy(path, dtype);
  if (!array.ok()) return AsFileError(array.status());
  return array;
}

absl::Status Session::Write(const std::string& path, const Array& array, bool fortran) const {
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

absl::StatusOr<Result> Session::Compute(std::string_view op, const OperationArgs& request) {
  const absl::Status sendable = std::visit([](const auto& args) { return Encode(args).status(); }, request);
  return Timed(sendable, op, [&]() -> absl::StatusOr<Result> {
    if (const auto* transpose = std::get_if<TransposeArgs>(&request)) {
      return client_->Transpose(*transpose, common_.deadline);
    }
    if (const auto* gemm = std::get_if<GemmArgs>(&request)) {
      return client_->Gemm(*gemm, common_.deadline);
    }
    return client_->Reduce(std::get<ReduceArgs>(request), common_.deadline);
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
