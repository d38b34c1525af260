// `warpline transpose`, `gemm`, `reduce`, `info` and `health`.
#include <CLI/CLI.hpp>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "client/cli/args.h"
#include "client/cli/command_line.h"
#include "client/cli/message_json.h"
#include "client/cli/operands.h"
#include "client/cli/output.h"
#include "client/cli/session.h"
#include "kernels/status_macros.h"
#include "warpline/client.h"

namespace warpline::client {
namespace {

// The flags of a command that runs one operation.
struct OperationFlags : SessionFlags {
  std::string output;

  void AddTo(CLI::App& app, CommonFlags& common) {
    app.add_option("-o,--output", output, kOutputHelp)
        ->required()
        ->multi_option_policy(CLI::MultiOptionPolicy::Throw)
        ->check(NotAnOption)
        ->type_name("FILE");
    common.AddVariant(app);
    common.AddReproducible(app);
    common.AddDType(app);
    SessionFlags::AddTo(app, common);
  }
};

struct TransposeFlags : OperationFlags {
  std::string x;
  std::vector<int> perm;
};

struct GemmFlags : OperationFlags {
  std::string a, b;
  std::optional<std::string> c, bias;
  GemmArgs request{.precision = v1::PRECISION_IEEE};
};

struct ReduceFlags : OperationFlags {
  std::string x;
  ReduceArgs request;
};

struct HealthFlags {
  std::string service;
  bool quiet = false;
};

struct NoFlags {};

void AddOutDType(CLI::App& app, std::optional<DType>& into) {
  AddChoice(app, "--out-dtype", into, DTypes(),
            "data type of the result (default: what the operation gives)");
}

// A Fortran matrix is the transpose of a row-major one, so the product can use it as a transposed operand. In
// a batch of Fortran matrices the batch axes are in the wrong place. So the server first makes the batch
// row-major.
absl::Status MakeGemmOperand(Session& session, NpyArray& array, bool& transposed) {
  if (!array.fortran) return absl::OkStatus();
  if (array.stored.shape.rank != 2) return session.MakeRowMajor(array);
  transposed = !transposed;
  array.fortran = false;
  return absl::OkStatus();
}

// The result of a program that has only one step.
struct Computed {
  Array array;
  std::optional<Tensor> tensor;
};
absl::StatusOr<Computed> Compute(Session& session, std::string_view op, RunArgs request,
                                 const std::string& output) {
  request.destinations = {session.To(output)};
  ASSIGN_OR_RETURN(RunResult run, session.Compute(op, std::move(request)));
  return Computed{std::move(run.outputs.front().second), std::move(run.tensors.front())};
}

absl::Status RunTranspose(const TransposeFlags& flags, const CommonFlags& common) {
  ASSIGN_OR_RETURN(Session session, Session::Create(flags, common, {&flags.output, 1}));
  ASSIGN_OR_RETURN(const NpyArray x, session.Read(flags.x, common.dtype));
  ASSIGN_OR_USAGE(std::vector<int> stored_perm, StoredPerm(x, flags.perm));
  TransposeArgs request{.x = x.stored,
                        .perm = std::move(stored_perm),
                        .variant = common.variant,
                        .reproducible = common.reproducible};
  ASSIGN_OR_RETURN(Computed result, Compute(session, "transpose", OneStep(request), flags.output));
  return session.Write(flags.output, result.array, result.tensor, false);
}

absl::Status RunGemm(const GemmFlags& flags, const CommonFlags& common) {
  ASSIGN_OR_RETURN(Session session, Session::Create(flags, common, {&flags.output, 1}));
  GemmArgs request = flags.request;
  request.variant = common.variant;
  request.reproducible = common.reproducible;
  if (flags.c && !request.beta) request.beta = 1;
  if (!flags.c && request.beta.value_or(0) != 0) return UsageError("--beta needs --c C.npy");

  ASSIGN_OR_RETURN(NpyArray a, session.Read(flags.a, common.dtype));
  ASSIGN_OR_RETURN(NpyArray b, session.Read(flags.b, common.dtype));
  RETURN_IF_ERROR(MakeGemmOperand(session, a, request.trans_a));
  RETURN_IF_ERROR(MakeGemmOperand(session, b, request.trans_b));
  request.a = a.stored;
  request.b = b.stored;
  // If --dtype is not the type of the result, it does not apply to C and the bias.
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
  ASSIGN_OR_RETURN(Computed result, Compute(session, "gemm", OneStep(request), flags.output));
  return session.Write(flags.output, result.array, result.tensor, false);
}

absl::Status RunReduce(const ReduceFlags& flags, const CommonFlags& common) {
  ASSIGN_OR_RETURN(Session session, Session::Create(flags, common, {&flags.output, 1}));
  ReduceArgs request = flags.request;
  request.variant = common.variant;
  request.reproducible = common.reproducible;
  ASSIGN_OR_RETURN(NpyArray x, session.Read(flags.x, common.dtype));
  // If argmin or argmax run over all axes, the index counts in row-major order.
  const bool gives_index = request.op == v1::REDUCE_OP_ARGMIN || request.op == v1::REDUCE_OP_ARGMAX;
  // A result that stays on the server cannot be marked as being in Fortran order.
  if ((gives_index && request.axes.size() != 1) || session.To(flags.output).keep) {
    RETURN_IF_ERROR(session.MakeRowMajor(x));
  }
  ASSIGN_OR_USAGE(request.axes, StoredAxes(x, flags.request.axes));
  request.x = x.stored;
  ASSIGN_OR_RETURN(Computed result, Compute(session, "reduce", OneStep(request), flags.output));
  return session.Write(flags.output, result.array, result.tensor, x.fortran && result.array.shape().rank > 1);
}

absl::Status RunInfo(const NoFlags&, const CommonFlags& common) {
  Client client(common.server, {.channel = common.channel()});
  ASSIGN_OR_RETURN(const v1::GetInfoResponse info, client.GetInfo(common.deadline));
  if (!common.json) {
    std::fputs(FormatInfo(info).c_str(), stdout);
    return absl::OkStatus();
  }
  std::fputs(JsonLine(ToJson(info)).c_str(), stdout);
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
  auto [app, flags, common] = line.Add("transpose", "permute the axes of an array",
                                       "transpose images.npy -o planes.npy --perm 0,3,1,2", RunTranspose);
  app.add_option("IN.npy", flags.x)->required()->type_name("FILE");
  AddIntegers(app, "--perm", flags.perm,
              "axis i of the result is axis AXES[i] of the input (default: swap the last two)");
  flags.AddTo(app, common);
}

void AddGemm(CommandLine& line) {
  auto [app, flags, common] =
      line.Add("gemm", "D = activation(alpha * op(A) * op(B) + beta * C + bias)",
               "gemm x.npy weights.npy -o y.npy --trans-b --bias bias.npy --activation relu", RunGemm);
  GemmArgs& request = flags.request;
  app.add_option("A.npy", flags.a)->required()->type_name("FILE");
  app.add_option("B.npy", flags.b)->required()->type_name("FILE");
  AddNumber(app, "--alpha", request.alpha, "factor of the product (default: 1)");
  AddNumber(app, "--beta", request.beta, "factor of C (default: 0, or 1 with --c)");
  app.add_option("--c", flags.c, "the matrix C, of the type of the result")->type_name("FILE");
  app.add_option("--bias", flags.bias, "a vector that is added to every row, of the type of the result")
      ->type_name("FILE");
  AddChoice(app, "--activation", request.activation, Activations(),
            "applied to each element at the end (default: none)");
  app.add_flag("--trans-a", request.trans_a, "op(A) is A with its last two axes swapped");
  app.add_flag("--trans-b", request.trans_b, "op(B) is B with its last two axes swapped");
  const Choices<v1::Precision> precisions = {{"ieee", v1::PRECISION_IEEE}, {"tf32", v1::PRECISION_TF32}};
  AddChoice(app, "--precision", request.precision, precisions, "precision of f32 products (default: ieee)");
  AddOutDType(app, request.out_data_type);
  flags.AddTo(app, common);
}

void AddReduce(CommandLine& line) {
  auto [app, flags, common] =
      line.Add("reduce", "reduce an array over some of its axes",
               "reduce samples.npy -o deviation.npy --op std --axes 0 --ddof 1", RunReduce);
  ReduceArgs& request = flags.request;
  app.add_option("IN.npy", flags.x)->required()->type_name("FILE");
  AddChoice(app, "--op", request.op, ReduceOps(), "the reduction")->required();
  AddIntegers(app, "--axes", request.axes, "axes to reduce, such as 0,-1 (default: all)");
  app.add_flag("--keepdims", request.keepdims, "keep the reduced axes, with size 1");
  app.add_option("--ddof", request.ddof, "var and std divide the sum of squares by n - ddof (default: 0)")
      ->check(CLI::Range(0, std::numeric_limits<int>::max()));
  AddOutDType(app, request.out_data_type);
  flags.AddTo(app, common);
}

void AddInfo(CommandLine& line) {
  line.Add("info", "describe the server: version, devices, limits, variants", "info --server gpu-node:50051",
           RunInfo);
}

void AddHealth(CommandLine& line) {
  auto [app, flags, common] = line.Add("health", "exit with 0 if the server is serving, with 1 if it is not",
                                       "health --service warpline.v1.KernelService", RunHealth);
  app.add_option("--service", flags.service,
                 "ask for one service, such as warpline.v1.KernelService (default: the whole server)");
  app.add_flag("-q,--quiet", flags.quiet, "do not print SERVING; the exit code tells");
}

}  // namespace warpline::client
