#include "client/cli/flags.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "client/src/enum_names.h"
#include "client/src/tls.h"
#include "warpline/array.h"

// Set by the build.
#ifndef WARPLINE_VERSION
#define WARPLINE_VERSION "0.1.0"
#endif
#ifndef WARPLINE_REVISION
#define WARPLINE_REVISION "unknown"
#endif

namespace warpline::client {
namespace {

constexpr std::string_view kDefaultServer = "127.0.0.1";
constexpr std::string_view kDefaultPort = "50051";
constexpr absl::Duration kDefaultDeadline = absl::Seconds(60);

constexpr FlagSpec kFlags[] = {
    {"server", 0, "ADDR", "host[:port] or unix:/path (default: $WARPLINE_SERVER, else 127.0.0.1:50051)"},
    {"deadline", 0, "TIME", "give up on a request after this long, as 5s or 200ms (default: 60s)"},
    {"tls-ca", 0, "FILE",
     "speak TLS: PEM, who may have signed the server's certificate (default: $WARPLINE_TLS_CA, else no TLS)"},
    {"tls-cert", 0, "FILE",
     "PEM, this client's certificate, if the server wants one (default: $WARPLINE_TLS_CERT)"},
    {"tls-key", 0, "FILE", "PEM, its private key (default: $WARPLINE_TLS_KEY)"},
    {"token-file", 0, "FILE",
     "who this client is, to servers that ask: holds its token (default: $WARPLINE_TOKEN_FILE)"},
    {"json", 0, "", "machine-readable output (of info, tensors, bench, --timings)"},
    {"help", 'h', "", "this text; after a command, the command's"},
    {"version", 0, "", "print the version"},
    {"output", 'o', "FILE",
     "where the result goes, a .npy file; - is standard output, @ leaves it on the server"},
    {"ttl", 0, "TIME", "of a tensor on the server: how long it lasts after its last use (default: 10m)"},
    {"expr", 'e', "PROGRAM", "the program as an expression, instead of a file"},
    {"variant", 0, "NAME", "one implementation (`warpline info` lists them; default: the server's choice)"},
    {"dtype", 0, "TYPE", "of the elements; needed for raw files: bf16 for |V2, f8e4m3 or f8e5m2 for |V1"},
    {"out-dtype", 0, "TYPE", "of the result, if it is not to be what the operation gives"},
    {"timings", 0, "", "print what ran, how arrays travelled, and how long it took"},
    {"retries", 0, "N", "send again when the server is full or restarting (default: 0)"},
    {"transport", 0, "HOW", "how arrays travel (see below; default: auto)"},
    {"regions", 0, "PATH", "the server's region socket (default: of unix:/path, /path.regions)"},
    {"perm", 0, "AXES", "axis i of the result is axis AXES[i] of the input (default: swap the last two)"},
    {"alpha", 0, "X", "factor of the product (default: 1)"},
    {"beta", 0, "X", "factor of C (default: 0, or 1 with --c)"},
    {"c", 0, "FILE", "the matrix C, of the type of the result"},
    {"bias", 0, "FILE", "a vector that is added to every row, of the type of the result"},
    {"activation", 0, "none|relu|gelu", "applied to each element at the end (default: none)"},
    {"trans-a", 0, "", "op(A) is A with its last two axes swapped"},
    {"trans-b", 0, "", "op(B) is B with its last two axes swapped"},
    {"precision", 0, "ieee|tf32", "of f32 products (default: ieee)"},
    {"op", 0, "NAME", "what to do (see below)"},
    {"axes", 0, "AXES", "axes to reduce, as 0,-1 (default: all)"},
    {"keepdims", 0, "", "keep the reduced axes, with size 1"},
    {"ddof", 0, "N", "of var and std: divide by n - N (default: 0)"},
    {"service", 0, "NAME", "one service, as warpline.v1.KernelService (default: the whole server)"},
    {"quiet", 'q', "", "no progress on the terminal"},
    {"shape", 0, "AxB", "sizes of the input; of gemm MxNxK, or MxN with K = N (default: 32x32)"},
    {"reduce-op", 0, "NAME", "what --op reduce does, over all axes or --axes (default: sum)"},
    {"channels", 0, "N", "connections, with a thread each (default: by size)"},
    {"concurrency", 0, "N",
     "requests in flight, in total; with --rate, at most (default: 1, with --rate 1024)"},
    {"rate", 0, "R", "open loop: R requests/s, latency counted from the moment each was due"},
    {"arrivals", 0, "poisson|fixed", "with --rate: intervals (default: poisson)"},
    {"duration", 0, "TIME", "how long to measure (default: 5s)"},
    {"requests", 0, "N", "measure N requests instead"},
    {"warmup", 0, "TIME", "not measured, before (default: 1s; 0s for none)"},
    {"resident", 0, "NAMES", "operands that are put on the server before: x, or of gemm a,b"},
    {"keep", 0, "", "results stay on the server, where each is dropped at once"},
};

// Where a flag is something else to one command than to others.
struct OwnHelp {
  std::string_view command, flag, help;
};
constexpr OwnHelp kOwnHelp[] = {
    {"get", "output", "where the elements go, a .npy file; - is standard output"},
    {"health", "quiet", "do not print SERVING: the exit code tells"},
    {"bench", "channels", "connections, with a thread each (default: 1)"},
    {"bench", "transport", "how arrays travel (see below; default: inline)"},
    {"bench", "regions",
     "with --transport shm: the server's region socket (default: of unix:/path, /path.regions)"},
};

// Every command takes these.
constexpr std::string_view kCommon = " server deadline tls-ca tls-cert tls-key token-file json help version ";

constexpr CommandSpec kCommands[] = {
    {"transpose", "IN.npy -o OUT.npy [--perm 1,0]", "permute the axes of an array",
     " output ttl variant dtype timings retries transport regions perm ",
     "transpose images.npy -o planes.npy --perm 0,3,1,2"},
    {"gemm",
     "A.npy B.npy -o OUT.npy [--alpha X --beta X --c C.npy --bias V.npy --activation F --trans-a --trans-b]",
     "D = activation(alpha * op(A) * op(B) + beta * C + bias)",
     " output ttl variant dtype out-dtype timings retries transport regions alpha beta c bias activation "
     "trans-a trans-b "
     "precision ",
     "gemm x.npy weights.npy -o y.npy --trans-b --bias bias.npy --activation relu"},
    {"reduce", "IN.npy -o OUT.npy --op sum [--axes 0,1] [--keepdims]",
     "reduce an array over some of its axes",
     " output ttl variant dtype out-dtype timings retries transport regions op axes keepdims ddof ",
     "reduce samples.npy -o deviation.npy --op std --axes 0 --ddof 1"},
    {"run", "PROGRAM.json|--expr PROGRAM NAME=IN.npy ... -o [NAME=]OUT.npy ...",
     "run a chain of operations, whose intermediate results stay on the server",
     " output ttl expr timings retries transport regions ",
     "run -e 'reduce(transpose(gemm(a, b)), op=sum, axes=[1])' a=a.npy b=b.npy -o sums.npy",
     R"(PROGRAM.json is a warpline.v1.Program in protobuf's JSON; - reads it from standard input. Values of
enumerations may be short ("sum", "f32"). A program with one output may do without its NAME.
What NAME=IN.npy holds as raw memory is told as NAME:TYPE=IN.npy, as w:bf16=w.npy. A file in Fortran
order is brought into row-major order by a request of its own, which costs one more round trip.

An expression is a call of an operation. Its operands are calls or names; behind them are FIELD=VALUE.
A step that is read twice is named, with a ; or the end of the line behind it:
'p = gemm(a, b); add(p, transpose(p))'. Its outputs are the steps that -o NAME=OUT.npy names, in that
order; with a single -o OUT.npy, the last one. Steps without a name are called 1.gemm, 2.add and so on.

operations (a field with "= ..." has that default; each also takes variant = the server's choice):
  transpose(x)   perm = [] (axis i of the result is axis perm[i] of x; []: swap the last two)
  gemm(a, b)     activation(alpha * op(a) * op(b) + beta * c + bias)
                 trans_a = false, trans_b = false, alpha = 1, beta = 0 (1 with c), c: a matrix,
                 bias: a vector, activation = none (relu, gelu), precision = ieee (tf32),
                 out_dtype: TYPE of the result (default: what the operands give)
  reduce(x)      op: NAME, which must be given; axes = [] (all), keepdims = false,
                 ddof = 0 (of var and std: divide by n - ddof), out_dtype: TYPE as of gemm
  cast(x)        dtype: TYPE, which must be given
  scale(x)       factor: a number, which must be given
  add(x, y)

In JSON a gemm reads c, if its beta is not 0, and the bias, if it has one, behind its two operands:
{"steps": [
   {"name": "d", "inputs": ["a", "b", "c", "v"],
    "gemm": {"alpha": 0.5, "beta": 1, "hasBias": true, "activation": "relu"}},
   {"name": "sums", "inputs": ["d"], "reduce": {"op": "sum", "axes": [0]}}],
 "outputs": ["d", "sums"]}
)"},
    {"put", "X.npy [--ttl 10m] [--channels N]", "leave an array on the server, and print its id",
     " ttl channels dtype retries quiet ", "put weights.npy --ttl 1h",
     R"(Wherever a command reads an array, @ID is the tensor with that id, and -o @ leaves a result on the server
and prints its id. Each use of a tensor renews its lease, and it lasts no longer than the server's process. The
id is a secret: whoever has it may read the tensor. A file in Fortran order is brought into row-major order by
the server, which needs memory for both. A file whose name begins with @ is given as ./@NAME.

  weights=$(warpline put weights.npy --ttl 1h)
  y=$(warpline gemm x.npy @$weights -o @)
  warpline get $y -o y.npy
  warpline drop $y $weights
)"},
    {"get", "ID -o X.npy [--channels N]", "fetch a tensor from the server", " output channels retries quiet ",
     "get $id -o x.npy"},
    {"drop", "ID ...", "end the leases of tensors on the server", " retries ", "drop $id"},
    {"tensors", "[--json]", "list the tensors on the server, with their ids", " retries ", "tensors --json"},
    {"info", "[--json]", "what the server is and can do", "", "info --server gpu-node:50051"},
    {"health", "[--service NAME] [--quiet]", "exit with 0 if the server is serving, with 1 if it is not",
     " service quiet ", "health --service warpline.v1.KernelService"},
    {"bench", "[--op transpose] [--shape 32x32] [--dtype f32] [--concurrency N] [--rate R] ...",
     "requests per second, throughput and latency",
     " variant dtype op shape reduce-op axes channels concurrency rate arrivals duration requests warmup "
     "transport regions resident keep ",
     "bench --op gemm --shape 512x512x512 --channels 4 --concurrency 16 --duration 2s"},
    {"completion", "bash|zsh", "print a script that completes command lines", "",
     "completion bash >~/.local/share/bash-completion/completions/warpline",
     "Of zsh the script goes as _warpline into a folder of $fpath.\n"},
};

bool Lists(std::string_view names, std::string_view name) {
  return names.find(absl::StrCat(" ", std::string(name), " ")) != std::string_view::npos;
}

// As gRPC takes it. `source`: what said so.
absl::StatusOr<std::string> ServerAddress(std::string_view source, std::string address) {
  const std::string said = absl::StrCat(std::string(source), "=", address);
  if (address.empty()) return UsageError(absl::StrCat(std::string(source), " is empty"));
  for (const char* scheme : {"http://", "https://"}) {
    if (!absl::StartsWithIgnoreCase(address, scheme)) continue;
    return UsageError(absl::StrCat(said, ": expected host:port: leave ", scheme, " out"));
  }
  if (address[0] == '/') return UsageError(absl::StrCat(said, ": expected unix:", address, " for a socket"));
  // gRPC would take 443.
  if (address.find(':') == std::string::npos) absl::StrAppend(&address, ":", std::string(kDefaultPort));
  return address;
}

absl::Status BadChoice(std::string_view name, const std::string& value,
                       const std::vector<std::string>& choices) {
  return UsageError(
      absl::StrCat("--", std::string(name), "=", value, ": expected one of ", absl::StrJoin(choices, ", ")));
}

}  // namespace

std::span<const FlagSpec> AllFlags() { return kFlags; }
std::span<const CommandSpec> AllCommands() { return kCommands; }

bool IsCommon(const FlagSpec& flag) { return Lists(kCommon, flag.name); }

bool Takes(const CommandSpec& command, const FlagSpec& flag) {
  return IsCommon(flag) || Lists(command.flags, flag.name);
}

std::string_view HelpOf(const CommandSpec& command, const FlagSpec& flag) {
  const auto* const own = std::find_if(std::begin(kOwnHelp), std::end(kOwnHelp), [&](const OwnHelp& each) {
    return each.command == command.name && each.flag == flag.name;
  });
  return own == std::end(kOwnHelp) ? flag.help : own->help;
}

std::vector<std::string> DTypeNames() {
  std::vector<std::string> names;
  names.reserve(kAllDTypes.size());
  for (DType dtype : kAllDTypes) names.emplace_back(Name(dtype));
  return names;
}

std::vector<std::string> ValuesOf(const CommandSpec& command, const FlagSpec& flag) {
  if (flag.value == "TYPE") return DTypeNames();
  if (flag.name == "reduce-op" || (flag.name == "op" && command.name == "reduce")) {
    return EnumValueNames(*v1::ReduceOp_descriptor());
  }
  if (flag.name == "op") return {"transpose", "gemm", "reduce", "echo"};
  if (flag.name == "transport" && command.name == "bench") return {"inline", "shm"};
  if (flag.name == "transport") return {"auto", "inline", "shm", "stream"};
  if (flag.value.find('|') == std::string_view::npos) return {};
  return absl::StrSplit(absl::string_view(flag.value.data(), flag.value.size()), '|');
}

absl::StatusOr<const CommandSpec*> FindCommand(const Args& args) {
  if (args.positionals().empty()) return UsageError("a command is missing");
  const std::string& name = args.positionals().front();
  const auto* command = std::find_if(std::begin(kCommands), std::end(kCommands),
                                     [&](const CommandSpec& c) { return c.name == name; });
  if (command == std::end(kCommands)) return UsageError(absl::StrCat("unknown command ", name));
  for (const std::string& flag : args.given()) {
    if (!Takes(*command, {.name = flag})) {
      return UsageError(absl::StrCat("--", flag, " is not a flag of ", name));
    }
  }
  return command;
}

std::string VersionText() { return "warpline " WARPLINE_VERSION " (" WARPLINE_REVISION ")\n"; }

absl::StatusOr<v1::ReduceOp> ReduceOpFlag(const Args& args, std::string_view name) {
  const std::string value = args.String(name, "sum");
  const auto& type = *v1::ReduceOp_descriptor();
  const std::optional<int> op = EnumValueNamed(type, value);
  if (!op) return BadChoice(name, value, EnumValueNames(type));
  return static_cast<v1::ReduceOp>(*op);
}

absl::StatusOr<v1::Activation> ActivationFlag(const Args& args, std::string_view name) {
  if (!args.Has(name)) return v1::ACTIVATION_UNSPECIFIED;
  const std::string value = args.String(name, "");
  const auto& type = *v1::Activation_descriptor();
  const std::optional<int> activation = EnumValueNamed(type, value);
  if (!activation) return BadChoice(name, value, EnumValueNames(type));
  return static_cast<v1::Activation>(*activation);
}

absl::StatusOr<std::optional<DType>> DTypeFlag(const Args& args, std::string_view name) {
  if (!args.Has(name)) return std::nullopt;
  const std::string value = args.String(name, "");
  const std::optional<DType> dtype = DTypeNamed(value);
  if (!dtype) return BadChoice(name, value, DTypeNames());
  return dtype;
}

// The flag, else what the environment says, else nothing.
std::string StringFlag(const Args& args, std::string_view name, const char* variable) {
  const char* const environment = std::getenv(variable);
  return args.String(name, environment != nullptr ? environment : "");
}

// A token in a file. Not in an argument, where every process of the machine could read it.
absl::StatusOr<std::string> ReadToken(const std::string& path) {
  if (path.empty()) return std::string();
  std::ifstream in(path);
  std::string token;
  if (!(in >> token))
    return UsageError(absl::StrCat("--token-file=", path, ": there is no token to be read"));
  for (const char c : token) {
    if (c <= ' ' || c > '~') {
      return UsageError(absl::StrCat("--token-file=", path, ": a token is of printable ASCII characters"));
    }
  }
  return token;
}

absl::StatusOr<CommonFlags> CommonFlags::From(const Args& args) {
  CommonFlags common;
  const char* environment = std::getenv("WARPLINE_SERVER");
  const bool is_set = environment != nullptr && *environment != '\0';
  const std::string_view otherwise = is_set ? std::string_view(environment) : kDefaultServer;
  ASSIGN_OR_RETURN(common.server, ServerAddress(args.Has("server") ? "--server" : "$WARPLINE_SERVER",
                                                args.String("server", otherwise)));
  ASSIGN_OR_RETURN(common.deadline, args.Duration("deadline", kDefaultDeadline));
  common.regions = args.String("regions", "");
  common.tls = {.ca = StringFlag(args, "tls-ca", "WARPLINE_TLS_CA"),
                .cert = StringFlag(args, "tls-cert", "WARPLINE_TLS_CERT"),
                .key = StringFlag(args, "tls-key", "WARPLINE_TLS_KEY")};
  RETURN_IF_ERROR(CredentialsFor(common.server, common.tls).status());
  ASSIGN_OR_RETURN(common.token, ReadToken(StringFlag(args, "token-file", "WARPLINE_TOKEN_FILE")));
  common.variant = args.String("variant", "");
  ASSIGN_OR_RETURN(common.dtype, DTypeFlag(args, "dtype"));
  ASSIGN_OR_RETURN(common.timings, args.Bool("timings"));
  ASSIGN_OR_RETURN(common.json, args.Bool("json"));
  return common;
}

}  // namespace warpline::client
