#include "client/cli/commands.h"

#include <google/protobuf/util/json_util.h>

#include <cstdint>
#include <cstdio>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cli/operands.h"
#include "client/cli/output.h"
#include "client/cli/session.h"
#include "kernels/status_macros.h"
#include "warpline/client.h"

namespace warpline::client {
namespace {

absl::Status TakesFiles(const Args& args, std::size_t count) {
  const std::size_t given = args.positionals().size() - 1;
  if (given == count) return absl::OkStatus();
  return UsageError(absl::StrCat(args.positionals().front(), " takes ", count,
                                 count == 1 ? " file" : " files", ", not ", given));
}

// Of a command with one result.
absl::StatusOr<Session> OpenSession(const Args& args, const CommonFlags& common) {
  const std::vector<std::string> outputs = args.Strings("output");
  if (outputs.size() > 1) {
    return UsageError(absl::StrCat(args.positionals().front(), " has one result, and -o is given ",
                                   outputs.size(), " times"));
  }
  return Session::Create(args, common, outputs);
}

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
  RETURN_IF_ERROR(TakesFiles(args, 1));
  ASSIGN_OR_RETURN(Session session, OpenSession(args, common));
  ASSIGN_OR_USAGE(const std::vector<int> perm, args.Integers("perm"));
  ASSIGN_OR_RETURN(const NpyArray x, session.Read(args.positionals()[1], common.dtype));
  ASSIGN_OR_USAGE(std::vector<int> stored_perm, StoredPerm(x, perm));
  TransposeArgs request{.x = x.stored, .perm = std::move(stored_perm), .variant = common.variant};
  const std::string output = args.String("output", "");
  ASSIGN_OR_RETURN(Result result, session.Compute("transpose", std::move(request), session.To(output)));
  return session.Write(output, result.array, result.tensor, false);
}

absl::Status RunGemm(const Args& args, const CommonFlags& common) {
  RETURN_IF_ERROR(TakesFiles(args, 2));
  ASSIGN_OR_RETURN(Session session, OpenSession(args, common));
  GemmArgs request;
  request.variant = common.variant;
  ASSIGN_OR_USAGE(request.alpha, args.Number("alpha"));
  ASSIGN_OR_USAGE(request.beta, args.Number("beta"));
  ASSIGN_OR_USAGE(request.trans_a, args.Bool("trans-a"));
  ASSIGN_OR_USAGE(request.trans_b, args.Bool("trans-b"));
  ASSIGN_OR_RETURN(request.activation, ActivationFlag(args, "activation"));
  ASSIGN_OR_RETURN(request.out_data_type, DTypeFlag(args, "out-dtype"));
  const std::string precision = args.String("precision", "ieee");
  if (precision != "ieee" && precision != "tf32") {
    return UsageError(absl::StrCat("--precision=", precision, ": expected ieee or tf32"));
  }
  request.precision = precision == "tf32" ? v1::PRECISION_TF32 : v1::PRECISION_IEEE;
  if (args.Has("c") && !request.beta) request.beta = 1;
  if (!args.Has("c") && request.beta.value_or(0) != 0) return UsageError("--beta needs --c C.npy");

  ASSIGN_OR_RETURN(NpyArray a, session.Read(args.positionals()[1], common.dtype));
  ASSIGN_OR_RETURN(NpyArray b, session.Read(args.positionals()[2], common.dtype));
  RETURN_IF_ERROR(MakeGemmOperand(session, a, request.trans_a));
  RETURN_IF_ERROR(MakeGemmOperand(session, b, request.trans_b));
  request.a = a.stored;
  request.b = b.stored;
  // Of C and the bias, --dtype says nothing if the result is of another type.
  std::optional<DType> result_dtype = request.out_data_type;
  if (!result_dtype && common.dtype != DType::kI8) result_dtype = common.dtype;
  if (args.Has("c") && *request.beta != 0) {
    ASSIGN_OR_RETURN(NpyArray c, session.Read(args.String("c", ""), result_dtype));
    RETURN_IF_ERROR(session.MakeRowMajor(c));  // op applies to A and B only
    request.c = c.stored;
  }
  if (args.Has("bias")) {
    ASSIGN_OR_RETURN(NpyArray bias, session.Read(args.String("bias", ""), result_dtype));
    RETURN_IF_ERROR(session.MakeRowMajor(bias));
    request.bias = bias.stored;
  }
  const std::string output = args.String("output", "");
  ASSIGN_OR_RETURN(Result result, session.Compute("gemm", std::move(request), session.To(output)));
  return session.Write(output, result.array, result.tensor, false);
}

absl::Status RunReduce(const Args& args, const CommonFlags& common) {
  RETURN_IF_ERROR(TakesFiles(args, 1));
  ASSIGN_OR_RETURN(Session session, OpenSession(args, common));
  if (!args.Has("op")) return UsageError("reduce: --op NAME is missing, as --op sum");
  ReduceArgs request;
  request.variant = common.variant;
  ASSIGN_OR_RETURN(request.op, ReduceOpFlag(args, "op"));
  ASSIGN_OR_RETURN(request.out_data_type, DTypeFlag(args, "out-dtype"));
  ASSIGN_OR_USAGE(const std::int64_t ddof, args.Integer("ddof", 0, 0, std::numeric_limits<int>::max()));
  request.ddof = static_cast<int>(ddof);
  ASSIGN_OR_USAGE(const std::vector<int> axes, args.Integers("axes"));
  ASSIGN_OR_USAGE(request.keepdims, args.Bool("keepdims"));
  ASSIGN_OR_RETURN(NpyArray x, session.Read(args.positionals()[1], common.dtype));
  // The index that argmin and argmax give over all axes counts in row-major order.
  const bool gives_index = request.op == v1::REDUCE_OP_ARGMIN || request.op == v1::REDUCE_OP_ARGMAX;
  // What stays on the server has no flag that says that it is in Fortran order.
  const std::string output = args.String("output", "");
  if ((gives_index && axes.size() != 1) || session.To(output).keep) RETURN_IF_ERROR(session.MakeRowMajor(x));
  ASSIGN_OR_USAGE(request.axes, StoredAxes(x, axes));
  request.x = x.stored;
  ASSIGN_OR_RETURN(Result result, session.Compute("reduce", std::move(request), session.To(output)));
  return session.Write(output, result.array, result.tensor, x.fortran && result.array.shape().rank > 1);
}

absl::Status RunInfo(const Args& args, const CommonFlags& common) {
  if (args.positionals().size() > 1) return UsageError("info takes no file");
  Client client(common.server, {.channel = common.channel()});
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
  ASSIGN_OR_USAGE(const bool quiet, args.Bool("quiet"));
  Client client(common.server, {.channel = common.channel()});
  ASSIGN_OR_RETURN(const bool serving, client.IsServing(args.String("service", ""), common.deadline));
  if (!serving) return absl::UnavailableError("NOT_SERVING");
  if (!quiet) std::puts("SERVING");
  return absl::OkStatus();
}

}  // namespace warpline::client
