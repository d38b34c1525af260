#include "client/cli_flags.h"

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/array.h"

// Set by the build.
#ifndef WARPLINE_VERSION
#define WARPLINE_VERSION "0.1.0"
#endif
#ifndef WARPLINE_REVISION
#define WARPLINE_REVISION "unknown"
#endif

namespace warpline::client {
namespace {

constexpr std::string_view kDefaultServer = "127.0.0.1:50051";
constexpr absl::Duration kDefaultDeadline = absl::Seconds(60);

constexpr FlagSpec kFlags[] = {
    {"server", 0, "ADDR", "host:port or unix:/path (default: $WARPLINE_SERVER, else 127.0.0.1:50051)"},
    {"deadline", 0, "TIME", "give up on a request after this long, as 5s or 200ms (default: 60s)"},
    {"quiet", 'q', "", "no status line (phase and time: gRPC does not tell how many bytes are through)"},
    {"json", 0, "", "machine-readable output (of info, bench, --timings)"},
    {"help", 'h', "", "this text; after a command, the command's"},
    {"version", 0, "", "print the version"},
    {"output", 'o', "FILE", "where the result goes, a .npy file; - is standard output"},
    {"variant", 0, "NAME", "one implementation (`warpline info` lists them; default: the server's choice)"},
    {"dtype", 0, "TYPE", "of the elements; bf16 for files whose dtype is |V2"},
    {"timings", 0, "", "print what ran, and how long it took"},
    {"retries", 0, "N", "send again when the server is full or restarting (default: 0)"},
    {"perm", 0, "AXES", "axis i of the result is axis AXES[i] of the input (default: swap the last two)"},
    {"alpha", 0, "X", "factor of the product (default: 1)"},
    {"beta", 0, "X", "factor of C (default: 0, or 1 with --c)"},
    {"c", 0, "FILE", "the matrix C of D = alpha * op(A) * op(B) + beta * C"},
    {"trans-a", 0, "", "op(A) is A with its last two axes swapped"},
    {"trans-b", 0, "", "op(B) is B with its last two axes swapped"},
    {"precision", 0, "ieee|tf32", "of f32 products (default: ieee)"},
    {"op", 0, "NAME", "reduce: sum, min, max, mean, argmax; bench: transpose, gemm, reduce, echo"},
    {"axes", 0, "AXES", "axes to reduce, as 0,-1 (default: all)"},
    {"keepdims", 0, "", "keep the reduced axes, with size 1"},
    {"service", 0, "NAME", "one service, as warpline.v1.KernelService (default: the whole server)"},
    {"shape", 0, "AxB", "sizes of the input; of gemm MxNxK, or MxN with K = N (default: 32x32)"},
    {"reduce-op", 0, "NAME", "what --op reduce does, over all axes or --axes (default: sum)"},
    {"channels", 0, "N", "connections, with a thread each (default: 1)"},
    {"concurrency", 0, "N",
     "requests in flight, in total; with --rate, at most (default: 1, with --rate 1024)"},
    {"rate", 0, "R", "open loop: R requests/s, latency counted from the moment each was due"},
    {"arrivals", 0, "KIND", "with --rate: poisson or fixed intervals (default: poisson)"},
    {"duration", 0, "TIME", "how long to measure (default: 5s)"},
    {"requests", 0, "N", "measure N requests instead"},
    {"warmup", 0, "TIME", "not measured, before (default: 1s; 0s for none)"},
};

// Every command takes these.
constexpr std::string_view kCommon = " server deadline quiet json help version ";

constexpr CommandSpec kCommands[] = {
    {"transpose", "IN.npy -o OUT.npy [--perm 1,0]", "permute the axes of an array",
     " output variant dtype timings retries perm "},
    {"gemm", "A.npy B.npy -o OUT.npy [--alpha X --beta X --c C.npy --trans-a --trans-b --precision P]",
     "D = alpha * op(A) * op(B) + beta * C",
     " output variant dtype timings retries alpha beta c trans-a trans-b precision "},
    {"reduce", "IN.npy -o OUT.npy --op sum [--axes 0,1] [--keepdims]",
     "reduce an array over some of its axes", " output variant dtype timings retries op axes keepdims "},
    {"info", "[--json]", "what the server is and can do", ""},
    {"health", "[--service NAME]", "exit with 0 if the server is serving, with 1 if it is not", " service "},
    {"bench", "[--op transpose] [--shape 32x32] [--dtype f32] [--concurrency N] [--rate R] ...",
     "requests per second, throughput and latency",
     " variant dtype op shape reduce-op axes channels concurrency rate arrivals duration requests warmup "},
};

bool Lists(std::string_view names, std::string_view name) {
  return names.find(absl::StrCat(" ", std::string(name), " ")) != std::string_view::npos;
}

std::string FlagHelp(std::string_view names) {
  std::string text;
  for (const FlagSpec& flag : kFlags) {
    if (!Lists(names, flag.name)) continue;
    std::string left =
        absl::StrCat(flag.letter != 0 ? absl::StrCat("-", std::string(1, flag.letter), ", ") : "", "--",
                     std::string(flag.name));
    if (!flag.value.empty()) absl::StrAppend(&left, " ", std::string(flag.value));
    absl::StrAppendFormat(&text, "  %-24s %s\n", left, std::string(flag.help));
  }
  return text;
}

}  // namespace

std::span<const FlagSpec> AllFlags() { return kFlags; }
std::span<const CommandSpec> AllCommands() { return kCommands; }

absl::StatusOr<const CommandSpec*> FindCommand(const Args& args) {
  if (args.positionals().empty()) return UsageError("a command is missing");
  const std::string& name = args.positionals().front();
  const auto* command = std::find_if(std::begin(kCommands), std::end(kCommands),
                                     [&](const CommandSpec& c) { return c.name == name; });
  if (command == std::end(kCommands)) return UsageError(absl::StrCat("unknown command ", name));
  for (const std::string& flag : args.given()) {
    if (!Lists(kCommon, flag) && !Lists(command->flags, flag)) {
      return UsageError(absl::StrCat("--", flag, " is not a flag of ", name));
    }
  }
  return command;
}

std::string HelpText(const CommandSpec* command) {
  if (command != nullptr) {
    return absl::StrCat("usage: warpline ", std::string(command->name), " ", std::string(command->synopsis),
                        "\n", std::string(command->help), "\n\n", FlagHelp(command->flags),
                        command->flags.empty() ? "" : "\n", FlagHelp(kCommon));
  }
  std::string text = "usage: warpline [--server ADDR] COMMAND ...\n\n";
  for (const CommandSpec& each : kCommands) {
    absl::StrAppend(&text, "  ", std::string(each.name), " ", std::string(each.synopsis), "\n      ",
                    std::string(each.help), "\n");
  }
  absl::StrAppend(&text, "\n", FlagHelp(kCommon), "\n`warpline COMMAND --help` tells more. ",
                  "Exit codes: 0 done, 1 the server refused, or reading or writing failed midway, 2 bad "
                  "usage, a wrong path "
                  "among it.\n");
  return text;
}

std::string VersionText() { return "warpline " WARPLINE_VERSION " (" WARPLINE_REVISION ")\n"; }

absl::StatusOr<v1::ReduceOp> ReduceOpFlag(const Args& args, std::string_view name) {
  const std::string value = args.String(name, "sum");
  v1::ReduceOp op = v1::REDUCE_OP_UNSPECIFIED;
  const bool known = v1::ReduceOp_Parse(absl::StrCat("REDUCE_OP_", absl::AsciiStrToUpper(value)), &op);
  if (known && op != v1::REDUCE_OP_UNSPECIFIED) return op;
  return UsageError(
      absl::StrCat("--", std::string(name), "=", value, ": expected sum, min, max, mean or argmax"));
}

absl::StatusOr<CommonFlags> CommonFlags::From(const Args& args) {
  CommonFlags common;
  const char* environment = std::getenv("WARPLINE_SERVER");
  const bool is_set = environment != nullptr && *environment != '\0';
  common.server = args.String("server", is_set ? std::string_view(environment) : kDefaultServer);
  if (common.server.empty()) return UsageError("--server is empty");
  ASSIGN_OR_RETURN(common.deadline, args.Duration("deadline", kDefaultDeadline));
  common.variant = args.String("variant", "");
  if (args.Has("dtype")) {
    const std::string name = args.String("dtype", "");
    common.dtype = DTypeNamed(name);
    if (!common.dtype) {
      return UsageError(absl::StrCat("--dtype=", name, ": expected f16, bf16, f32, f64, i32 or i64"));
    }
  }
  ASSIGN_OR_RETURN(common.quiet, args.Bool("quiet"));
  ASSIGN_OR_RETURN(common.timings, args.Bool("timings"));
  ASSIGN_OR_RETURN(common.json, args.Bool("json"));
  return common;
}

}  // namespace warpline::client
