#include "client/commands.h"

#include <google/protobuf/util/json_util.h>

#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client/cli_output.h"
#include "client/client.h"
#include "client/npy.h"
#include "client/operands.h"
#include "client/output_file.h"
#include "client/progress.h"
#include "kernels/status_macros.h"

namespace warpline::client {
namespace {

// What the three operations share: files in, one or two requests, a file out.
class Session {
 public:
  static absl::StatusOr<Session> Create(const Args& args, const CommonFlags& common, std::size_t inputs) {
    const std::string& command = args.positionals().front();
    const std::size_t given = args.positionals().size() - 1;
    if (given != inputs) {
      return UsageError(
          absl::StrCat(command, " takes ", inputs, inputs == 1 ? " file" : " files", ", not ", given));
    }
    if (!args.Has("output")) return UsageError(absl::StrCat(command, ": -o OUT.npy is missing"));
    ASSIGN_OR_USAGE(const std::int64_t retries, args.Integer("retries", 0, 0, 1000));
    return Session(args, common, static_cast<int>(retries));
  }

  absl::StatusOr<NpyArray> Read(const std::string& path) const {
    absl::StatusOr<NpyArray> array = ReadNpy(path, common_.dtype);
    if (!array.ok()) return AsFileError(array.status());
    return array;
  }

  // One request, which has the whole deadline: how long its inputs took to come is not its fault.
  absl::StatusOr<Result> Run(std::string_view op, const OperationArgs& request, std::size_t bytes) {
    // What cannot be sent at all is refused here, and must not look like an answer of the server's.
    const absl::Status sendable =
        std::visit([](const auto& operation) { return Encode(operation).status(); }, request);
    if (!sendable.ok()) return AsUsageError(sendable);
    const absl::Time start = absl::Now();
    ProgressLine line(bytes, common_.quiet);
    const CallOptions options{.progress = line.Hook()};
    absl::StatusOr<Result> result =
        std::visit([&](const auto& operation) { return Call(operation, options); }, request);
    if (result.ok() && common_.timings) {
      const Timing timing{.op = op,
                          .dtype = result->array.dtype(),
                          .shape = result->array.shape(),
                          .wall = absl::Now() - start,
                          .execution = result->execution};
      // The result itself may be what goes to standard output.
      std::fputs(FormatTiming(timing, common_.json).c_str(), IsStandardOutput(output_) ? stderr : stdout);
    }
    return result;
  }

  // Has the server bring a Fortran array into row-major order, where no renumbering of axes will do.
  absl::Status MakeRowMajor(NpyArray& array) {
    if (!array.fortran) return absl::OkStatus();
    ASSIGN_OR_USAGE(const std::size_t bytes, ByteSize(array.stored));
    TransposeArgs request{.x = array.stored, .perm = ToRowMajorPerm(array)};
    ASSIGN_OR_RETURN(const Result result, Run("transpose", std::move(request), bytes));
    array = {.stored = result.array.View()};
    return absl::OkStatus();
  }

  absl::Status Write(const Array& array, bool fortran) const {
    const absl::Status status = WriteNpy(output_, array.View(), fortran);
    return status.ok() ? status : AsFileError(status);
  }

 private:
  Session(const Args& args, const CommonFlags& common, int retries)
      : common_(common),
        output_(args.String("output", "")),
        client_(std::make_unique<Client>(common.server, ClientOptions{.max_retries = retries})) {}

  absl::StatusOr<Result> Call(const TransposeArgs& request, const CallOptions& options) {
    return client_->Transpose(request, common_.deadline, options);
  }
  absl::StatusOr<Result> Call(const GemmArgs& request, const CallOptions& options) {
    return client_->Gemm(request, common_.deadline, options);
  }
  absl::StatusOr<Result> Call(const ReduceArgs& request, const CallOptions& options) {
    return client_->Reduce(request, common_.deadline, options);
  }

  CommonFlags common_;
  std::string output_;
  std::unique_ptr<Client> client_;
};

std::size_t BytesOf(const NpyArray& array) { return ByteSize(array.stored).value_or(0); }

// A Fortran matrix is the transpose of a row-major one, and the product can take it as that; a batch of
// matrices has its batch axes in the wrong place, and is put right by the server first.
absl::Status MakeGemmOperand(Session& session, NpyArray& array, bool& transposed) {
  if (!array.fortran) return absl::OkStatus();
  if (array.stored.shape.rank != 2) return session.MakeRowMajor(array);
  transposed = !transposed;
  array.fortran = false;
  return absl::OkStatus();
}

}  // namespace

absl::Status RunTranspose(const Args& args, const CommonFlags& common) {
  ASSIGN_OR_RETURN(Session session, Session::Create(args, common, 1));
  ASSIGN_OR_USAGE(const std::vector<int> perm, args.Integers("perm"));
  ASSIGN_OR_RETURN(const NpyArray x, session.Read(args.positionals()[1]));
  ASSIGN_OR_USAGE(std::vector<int> stored_perm, StoredPerm(x, perm));
  TransposeArgs request{.x = x.stored, .perm = std::move(stored_perm), .variant = common.variant};
  ASSIGN_OR_RETURN(const Result result, session.Run("transpose", std::move(request), BytesOf(x)));
  return session.Write(result.array, false);
}

absl::Status RunGemm(const Args& args, const CommonFlags& common) {
  ASSIGN_OR_RETURN(Session session, Session::Create(args, common, 2));
  GemmArgs request;
  request.variant = common.variant;
  ASSIGN_OR_USAGE(request.alpha, args.Number("alpha"));
  ASSIGN_OR_USAGE(request.beta, args.Number("beta"));
  ASSIGN_OR_USAGE(request.trans_a, args.Bool("trans-a"));
  ASSIGN_OR_USAGE(request.trans_b, args.Bool("trans-b"));
  const std::string precision = args.String("precision", "ieee");
  if (precision != "ieee" && precision != "tf32") {
    return UsageError(absl::StrCat("--precision=", precision, ": expected ieee or tf32"));
  }
  request.precision = precision == "tf32" ? v1::PRECISION_TF32 : v1::PRECISION_IEEE;
  if (args.Has("c") && !request.beta) request.beta = 1;
  if (!args.Has("c") && request.beta.value_or(0) != 0) return UsageError("--beta needs --c C.npy");

  ASSIGN_OR_RETURN(NpyArray a, session.Read(args.positionals()[1]));
  ASSIGN_OR_RETURN(NpyArray b, session.Read(args.positionals()[2]));
  std::size_t bytes = BytesOf(a) + BytesOf(b);
  RETURN_IF_ERROR(MakeGemmOperand(session, a, request.trans_a));
  RETURN_IF_ERROR(MakeGemmOperand(session, b, request.trans_b));
  request.a = a.stored;
  request.b = b.stored;
  if (args.Has("c") && *request.beta != 0) {
    ASSIGN_OR_RETURN(NpyArray c, session.Read(args.String("c", "")));
    RETURN_IF_ERROR(session.MakeRowMajor(c));  // op applies to A and B only
    bytes += BytesOf(c);
    request.c = c.stored;
  }
  ASSIGN_OR_RETURN(const Result result, session.Run("gemm", std::move(request), bytes));
  return session.Write(result.array, false);
}

absl::Status RunReduce(const Args& args, const CommonFlags& common) {
  ASSIGN_OR_RETURN(Session session, Session::Create(args, common, 1));
  if (!args.Has("op")) return UsageError("reduce: --op is missing: sum, min, max, mean or argmax");
  ReduceArgs request;
  request.variant = common.variant;
  ASSIGN_OR_RETURN(request.op, ReduceOpFlag(args, "op"));
  ASSIGN_OR_USAGE(const std::vector<int> axes, args.Integers("axes"));
  ASSIGN_OR_USAGE(request.keepdims, args.Bool("keepdims"));
  ASSIGN_OR_RETURN(NpyArray x, session.Read(args.positionals()[1]));
  // The index that argmax gives over all axes counts in row-major order.
  if (request.op == v1::REDUCE_OP_ARGMAX && axes.size() != 1) RETURN_IF_ERROR(session.MakeRowMajor(x));
  ASSIGN_OR_USAGE(request.axes, StoredAxes(x, axes));
  request.x = x.stored;
  ASSIGN_OR_RETURN(const Result result, session.Run("reduce", std::move(request), BytesOf(x)));
  return session.Write(result.array, x.fortran && result.array.shape().rank > 1);
}

absl::Status RunInfo(const Args& args, const CommonFlags& common) {
  if (args.positionals().size() > 1) return UsageError("info takes no file");
  Client client(common.server, {});
  ASSIGN_OR_RETURN(const v1::GetInfoResponse info, client.GetInfo(common.deadline));
  if (!common.json) {
    std::fputs(FormatInfo(info).c_str(), stdout);
    return absl::OkStatus();
  }
  google::protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  options.always_print_primitive_fields = true;
  std::string json;
  if (!google::protobuf::util::MessageToJsonString(info, &json, options).ok()) {
    return absl::InternalError("the server's description cannot be written as JSON");
  }
  std::puts(json.c_str());
  return absl::OkStatus();
}

absl::Status RunHealth(const Args& args, const CommonFlags& common) {
  if (args.positionals().size() > 1) return UsageError("health takes no file");
  Client client(common.server, {});
  ASSIGN_OR_RETURN(const bool serving, client.IsServing(args.String("service", ""), common.deadline));
  if (!serving) return absl::UnavailableError("NOT_SERVING");
  if (!common.quiet) std::puts("SERVING");
  return absl::OkStatus();
}

}  // namespace warpline::client
