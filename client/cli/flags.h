// The flags that several commands of the `warpline` program share.
#ifndef WARPLINE_CLIENT_CLI_FLAGS_H_
#define WARPLINE_CLIENT_CLI_FLAGS_H_

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "client/cli/args.h"
#include "client/cli/error.h"
#include "kernels/dtype.h"
#include "kernels/status_macros.h"
#include "warpline/options.h"
#include "warpline/v1/warpline.pb.h"

namespace warpline::client {

// Return the possible values of a flag with their names.
Choices<DType> DTypes();
Choices<v1::ReduceOp> ReduceOps();
// Returns the elementwise operations that an expression can call.
Choices<v1::MapOp> MapOps();
Choices<v1::Activation> Activations();

struct CommonFlags {
  std::string server = "127.0.0.1";  // includes the port once completed
  std::string regions;               // path of the region socket; empty: derived from `server`
  TlsOptions tls;
  std::string token_file;
  std::string token;  // empty: no token
  absl::Duration deadline = absl::Seconds(60);
  std::string variant;
  bool reproducible = false;
  std::optional<DType> dtype;
  int retries = 0;
  bool timings = false;
  bool json = false;

  // Adds the flags that every command has. For this and the other Add functions, the object must outlive the
  // parse.
  void AddTo(CLI::App& program);
  void AddRegions(CLI::App& command, const std::string& help);
  void AddVariant(CLI::App& command);
  void AddReproducible(CLI::App& command);
  void AddDType(CLI::App& command);
  void AddRetries(CLI::App& command);

  // Checks the address and reads the token. Call it after the parse. Every error is a usage error.
  absl::Status Complete(const CLI::App& program);

  ChannelOptions channel() const { return {.tls = tls, .token = token}; }
};

}  // namespace warpline::client

#endif  // WARPLINE_CLIENT_CLI_FLAGS_H_
