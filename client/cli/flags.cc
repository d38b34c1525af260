#include "client/cli/flags.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "client/cli/session.h"
#include "client/src/enum_names.h"
#include "client/src/tls.h"
#include "warpline/array.h"

namespace warpline::client {
namespace {

constexpr char kTransports[] = R"(--transport:
    auto    shm for large arrays if the server is at unix:/path or --regions is given; otherwise stream for
            arrays of 16 MiB and more, and for those that are too large for one request; inline for all others.
            With --regions, a server without shared memory is an error
    inline  in the request and in the response
    shm     in memory that is shared with the server: files are read into it, and results written from it
    stream  apart from the request, in pieces over several connections

An input may also be - (standard input) or @ID, a tensor on the server (`warpline put --help`).

)";

constexpr char kDefaultPort[] = "50051";

template <typename Enum>
Choices<Enum> Values(const google::protobuf::EnumDescriptor& type) {
  Choices<Enum> values;
  for (const std::string& name : EnumValueNames(type)) {
    values.emplace_back(name, static_cast<Enum>(*EnumValueNamed(type, name)));
  }
  return values;
}

// Returns the address in gRPC's form. `source` says where the address was given.
absl::StatusOr<std::string> ServerAddress(const std::string& source, std::string address) {
  const std::string said = absl::StrCat(source, "=", address);
  if (address.empty()) return UsageError(absl::StrCat(source, " is empty"));
  for (const char* scheme : {"http://", "https://"}) {
    if (!absl::StartsWithIgnoreCase(address, scheme)) continue;
    return UsageError(absl::StrCat(said, ": expected host:port: leave ", scheme, " out"));
  }
  if (address[0] == '/') return UsageError(absl::StrCat(said, ": expected unix:", address, " for a socket"));
  if (absl::StartsWith(address, "unix:")) return address;
  const std::size_t colon = address.rfind(':');
  // gRPC's default would be port 443.
  if (colon == std::string::npos) return absl::StrCat(address, ":", kDefaultPort);
  // gRPC would truncate a number that is too large, and use 0 for text that is not a number.
  int port = 0;
  const bool is_port = absl::SimpleAtoi(address.substr(colon + 1), &port) && port >= 1 && port <= 65535;
  const bool is_ipv6 = address[0] == '[' && address.back() == ']';
  if (colon == 0 || (!is_port && !is_ipv6)) {
    return UsageError(
        absl::StrCat(said, ": expected host[:port] with a port from 1 to 65535, or unix:/path"));
  }
  return is_ipv6 ? absl::StrCat(address, ":", kDefaultPort) : address;
}

// Reads a token from a file. An argument would be visible to every process on the machine.
absl::StatusOr<std::string> ReadToken(const std::string& path) {
  if (path.empty()) return std::string();
  std::ifstream in(path);
  if (!in) return UsageError(absl::StrCat("--token-file=", path, ": ", std::strerror(errno)));
  std::string token;
  if (!(in >> token)) return UsageError(absl::StrCat("--token-file=", path, ": the file has no token"));
  for (const char c : token) {
    if (c <= ' ' || c > '~') {
      return UsageError(
          absl::StrCat("--token-file=", path, ": the token has characters other than printable ASCII"));
    }
  }
  return token;
}

}  // namespace

Choices<DType> DTypes() {
  Choices<DType> values;
  for (DType dtype : kAllDTypes) values.emplace_back(Name(dtype), dtype);
  return values;
}

Choices<v1::ReduceOp> ReduceOps() { return Values<v1::ReduceOp>(*v1::ReduceOp_descriptor()); }

Choices<v1::MapOp> MapOps() {
  Choices<v1::MapOp> ops;
  for (const auto& [name, op] : Values<v1::MapOp>(*v1::MapOp_descriptor())) {
    // The excluded operations cannot be called in an expression.
    if (op != v1::MAP_OP_CONSTANT && op != v1::MAP_OP_CAST && op != v1::MAP_OP_INDEX)
      ops.emplace_back(name, op);
  }
  return ops;
}

Choices<v1::Activation> Activations() { return Values<v1::Activation>(*v1::Activation_descriptor()); }

void CommonFlags::AddTo(CLI::App& program) {
  program
      .add_option("--server", server,
                  "host[:port] or unix:/path (default: $WARPLINE_SERVER, else 127.0.0.1:50051)")
      ->type_name("ADDR")
      ->envname("WARPLINE_SERVER");
  AddTime(program, "--deadline", deadline,
          "give up on a request after this time, such as 5s or 200ms (default: 60s)");
  const auto add_file = [&](const char* name, std::string& into, const char* variable, const char* help) {
    program.add_option(name, into, help)->type_name("FILE")->envname(variable);
  };
  add_file(
      "--tls-ca", tls.ca, "WARPLINE_TLS_CA",
      "use TLS, and trust servers whose certificate is signed by this CA; PEM (default: $WARPLINE_TLS_CA, "
      "else no TLS)");
  add_file("--tls-cert", tls.cert, "WARPLINE_TLS_CERT",
           "this client's certificate, for servers that ask for one; PEM (default: $WARPLINE_TLS_CERT)");
  add_file("--tls-key", tls.key, "WARPLINE_TLS_KEY",
           "private key of --tls-cert; PEM (default: $WARPLINE_TLS_KEY)");
  add_file("--token-file", token_file, "WARPLINE_TOKEN_FILE",
           "file with this client's token, for servers that ask for one (default: $WARPLINE_TOKEN_FILE)");
  program.add_flag("--json", json, "print JSON (info, tensors, bench, --timings, errors)");
}

void CommonFlags::AddRegions(CLI::App& command, const std::string& help) {
  command.add_option("--regions", regions, help)->type_name("PATH");
}

void CommonFlags::AddVariant(CLI::App& command) {
  command.add_option("--variant", variant,
                     "run this kernel variant (`warpline info` lists them; default: the server chooses)");
}

void CommonFlags::AddReproducible(CLI::App& command) {
  command.add_flag("--reproducible", reproducible, "use only variants that give the same bits every time");
}

void CommonFlags::AddDType(CLI::App& command) {
  AddChoice(command, "--dtype", dtype, DTypes(),
            "data type of the elements; files of raw memory need it: bf16 for |V2, f8e4m3 or f8e5m2 for |V1");
}

void CommonFlags::AddRetries(CLI::App& command) {
  command.add_option("--retries", retries, "send again when the server is full or restarting (default: 0)")
      ->check(CLI::Range(0, 1000));
}

void SessionFlags::AddTo(CLI::App& command, CommonFlags& common) {
  AddTime(command, "--ttl", ttl, "how long a tensor stays on the server after its last use (default: 10m)");
  common.AddRetries(command);
  command.add_flag("--timings", common.timings, "print what ran, how arrays travelled, and how long it took");
  AddTransport(command, transport);
  common.AddRegions(command,
                    "the server's region socket (default: /path.regions for a server at unix:/path)");
  command.footer(kTransports + command.get_footer());
}

absl::Status CommonFlags::Complete(const CLI::App& program) {
  const std::vector<CLI::Option*>& given = program.parse_order();  // excluding options from the environment
  const bool is_given = std::find(given.begin(), given.end(), program.get_option("--server")) != given.end();
  ASSIGN_OR_RETURN(server, ServerAddress(is_given ? "--server" : "$WARPLINE_SERVER", server));
  const absl::Status usable = CredentialsFor(server, tls).status();
  if (!usable.ok()) return AsUsageError(usable);
  ASSIGN_OR_RETURN(token, ReadToken(token_file));
  return absl::OkStatus();
}

}  // namespace warpline::client
