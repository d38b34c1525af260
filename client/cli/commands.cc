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

#include "client/cli/args.h"
#include "client/cli/operands.h"
#include "client/cli/output.h"
#include "client/cli/session.h"
#include "kernels/status_macros.h"
#include "warpline/client.h"

namespace warpline::client {
namespace {

struct TransposeFlags : SessionFlags {
  std::string x, output;
  std::vector<int> perm;
};

struct GemmFlags : SessionFlags {
  std::string a, b, output;
  std::optional<std::string> c, bias;
  std::optional<double> alpha, beta;
  std::optional<DType> out_dtype;
  v1::Activation activation = v1::ACTIVATION_UNSPECIFIED;
  v1::Precision precision = v1::PRECISION_IEEE;
  bool trans_a = false, trans_b = false;
};

struct ReduceFlags : SessionFlags {
  std::string x, output;
  v1::ReduceOp op = v1::REDUCE_OP_UNSPECIFIED;
  std::vector<int> axes;
  std::optional<DType> out_dtype;
  int ddof = 0;
  bool keepdims = false;
};

struct HealthFlags {
  std::string service;
  bool quiet = false;
};

struct NoFlags {};

void AddOutDType(CLI::App& app, std::optional<DType>& into) {
  AddChoice(app, "--out-dtype", into, DTypes(), "of the result, if it is not to be what the operation gives")
      ->type_name("TYPE");
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

absl::Status RunTranspose(const TransposeFlags& flags, const CommonFlags& common) {
  ASSIGN_OR_RETURN(Session session, Session::Create(flags, common, {&flags.output, 1}));
  ASSIGN_OR_RETURN(const NpyArray x, session.Read(flags.x, common.dtype));
  ASSIGN_OR_USAGE(std::vector<int> stored_perm, StoredPerm(x, flags.perm));
  TransposeArgs request{.x = x.stored, .perm = std::move(stored_perm), .variant = common.variant};
  ASSIGN_OR_RETURN(Result result, session.Compute("transpose", std::move(request), session.To(flags.output)));
  return session.Write(flags.output, result.array, result.tensor, false);
}

absl::Status RunGemm(const GemmFlags& flags, const CommonFlags& common) {
  ASSIGN_OR_RETURN(Session session, Session::Create(flags, common, {&flags.output, 1}));
  GemmArgs request;
  request.variant = common.variant;
  request.alpha = flags.alpha;
  request.beta = flags.beta;
  request.trans_a = flags.trans_a;
  request.trans_b = flags.trans_b;
  request.activation = flags.activation;
  request.out_data_type = flags.out_dtype;
  request.precision = flags.precision;
  if (flags.c && !request.beta) request.beta = 1;
  if (!flags.c && request.beta.value_or(0) != 0) return UsageError("--beta needs --c C.npy");

  ASSIGN_OR_RETURN(NpyArray a, session.Read(flags.a, common.dtype));
  ASSIGN_OR_RETURN(NpyArray b, session.Read(flags.b, common.dtype));
  RETURN_IF_ERROR(MakeGemmOperand(session, a, request.trans_a));
  RETURN_IF_ERROR(MakeGemmOperand(session, b, request.trans_b));
  request.a = a.stored;
  request.b = b.stored;
  // Of C and the bias, --dtype says nothing if the result is of another type.
  std::optional<DType> result_dtype = request.out_data_type;
  if (!result_dtype && common.dtype != DType::kI8) result_dtype = common.dtype;
  if (flags.c && *request.beta != 0) {
    ASSIGN_OR_RETURN(NpyArray c, session.Read(*flags.c, result_dtype));
    RETURN_IF_ERROR(session.MakeRowMajor(c));  // op applies to A and B only
    request.c = c.stored;
  }
  if (flags.bias) {
    ASSIGN_OR_RETURN(NpyArray bias, session.Read(*flags.bias, result_dtype));
    RETURN_IF_ERROR(session.MakeRowMajor(bias));
    request.bias = bias.stored;
  }
  ASSIGN_OR_RETURN(Result result, session.Compute("gemm", std::move(request), session.To(flags.output)));
  return session.Write(flags.output, result.array, result.tensor, false);
}

absl::Status RunReduce(const ReduceFlags& flags, const CommonFlags& common) {
  ASSIGN_OR_RETURN(Session session, Session::Create(flags, common, {&flags.output, 1}));
  ReduceArgs request;
  request.variant = common.variant;
  request.op = flags.op;
  request.out_data_type = flags.out_dtype;
  request.ddof = flags.ddof;
  request.keepdims = flags.keepdims;
  ASSIGN_OR_RETURN(NpyArray x, session.Read(flags.x, common.dtype));
  // The index that argmin and argmax give over all axes counts in row-major order.
  const bool gives_index = request.op == v1::REDUCE_OP_ARGMIN || request.op == v1::REDUCE_OP_ARGMAX;
  // What stays on the server has no flag that says that it is in Fortran order.
  if ((gives_index && flags.axes.size() != 1) || session.To(flags.output).keep) {
    RETURN_IF_ERROR(session.MakeRowMajor(x));
  }
  ASSIGN_OR_USAGE(request.axes, StoredAxes(x, flags.axes));
  request.x = x.stored;
  ASSIGN_OR_RETURN(Result result, session.Compute("reduce", std::move(request), session.To(flags.output)));
  return session.Write(flags.output, result.array, result.tensor, x.fortran && result.array.shape().rank > 1);
}

absl::Status RunInfo(const NoFlags&, const CommonFlags& common) {
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

absl::Status RunHealth(const HealthFlags& flags, const CommonFlags& common) {
  Client client(common.server, {.channel = common.channel()});
  ASSIGN_OR_RETURN(const bool serving, client.IsServing(flags.service, common.deadline));
  if (!serving) return absl::UnavailableError("NOT_SERVING");
  if (!flags.quiet) std::puts("SERVING");
  return absl::OkStatus();
}

}  // namespace

void AddTranspose(CommandLine& line) {
  auto [app, flags] = line.Add("transpose", "permute the axes of an array",
                               "transpose images.npy -o planes.npy --perm 0,3,1,2", RunTranspose);
  app.add_option("IN.npy", flags.x)->required()->type_name("FILE");
  AddOutput(app, flags.output);
  AddIntegers(app, "--perm", flags.perm,
              "axis i of the result is axis AXES[i] of the input (default: swap the last two)")
      ->type_name("AXES");
  line.common().AddVariant(app);
  line.common().AddDType(app);
  flags.AddTo(app, line.common());
}

void AddGemm(CommandLine& line) {
  auto [app, flags] =
      line.Add("gemm", "D = activation(alpha * op(A) * op(B) + beta * C + bias)",
               "gemm x.npy weights.npy -o y.npy --trans-b --bias bias.npy --activation relu", RunGemm);
  app.add_option("A.npy", flags.a)->required()->type_name("FILE");
  app.add_option("B.npy", flags.b)->required()->type_name("FILE");
  AddOutput(app, flags.output);
  AddNumber(app, "--alpha", flags.alpha, "factor of the product (default: 1)")->type_name("X");
  AddNumber(app, "--beta", flags.beta, "factor of C (default: 0, or 1 with --c)")->type_name("X");
  app.add_option("--c", flags.c, "the matrix C, of the type of the result")->type_name("FILE");
  app.add_option("--bias", flags.bias, "a vector that is added to every row, of the type of the result")
      ->type_name("FILE");
  AddChoice(app, "--activation", flags.activation, Activations(),
            "applied to each element at the end (default: none)")
      ->type_name("NAME");
  app.add_flag("--trans-a", flags.trans_a, "op(A) is A with its last two axes swapped");
  app.add_flag("--trans-b", flags.trans_b, "op(B) is B with its last two axes swapped");
  const std::vector<std::pair<std::string, v1::Precision>> precisions = {{"ieee", v1::PRECISION_IEEE},
                                                                         {"tf32", v1::PRECISION_TF32}};
  AddChoice(app, "--precision", flags.precision, precisions, "of f32 products (default: ieee)")
      ->type_name("NAME");
  line.common().AddVariant(app);
  line.common().AddDType(app);
  AddOutDType(app, flags.out_dtype);
  flags.AddTo(app, line.common());
}

void AddReduce(CommandLine& line) {
  auto [app, flags] = line.Add("reduce", "reduce an array over some of its axes",
                               "reduce samples.npy -o deviation.npy --op std --axes 0 --ddof 1", RunReduce);
  app.add_option("IN.npy", flags.x)->required()->type_name("FILE");
  AddOutput(app, flags.output);
  AddChoice(app, "--op", flags.op, ReduceOps(), "what to do")->required()->type_name("NAME");
  AddIntegers(app, "--axes", flags.axes, "axes to reduce, as 0,-1 (default: all)")->type_name("AXES");
  app.add_flag("--keepdims", flags.keepdims, "keep the reduced axes, with size 1");
  app.add_option("--ddof", flags.ddof, "of var and std: divide by n - N (default: 0)")
      ->check(CLI::Range(0, std::numeric_limits<int>::max()))
      ->type_name("N");
  line.common().AddVariant(app);
  line.common().AddDType(app);
  AddOutDType(app, flags.out_dtype);
  flags.AddTo(app, line.common());
}

void AddInfo(CommandLine& line) {
  line.Add("info", "what the server is and can do", "info --server gpu-node:50051", RunInfo);
}

void AddHealth(CommandLine& line) {
  auto [app, flags] = line.Add("health", "exit with 0 if the server is serving, with 1 if it is not",
                               "health --service warpline.v1.KernelService", RunHealth);
  app.add_option("--service", flags.service,
                 "one service, as warpline.v1.KernelService (default: the whole server)")
      ->type_name("NAME");
  app.add_flag("-q,--quiet", flags.quiet, "do not print SERVING: the exit code tells");
}

}  // namespace warpline::client
