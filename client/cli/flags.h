// The flags that several commands of the `warpline` program take.
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

// The values of a flag, by their names.
Choices<DType> DTypes();
Choices<v1::ReduceOp> ReduceOps();
// The elementwise operations that an expression can call.
Choices<v1::MapOp> MapOps();
Choices<v1::Activation> Activations();

struct CommonFlags {
  std::string server = "127.0.0.1";  // with its port, once completed
  std::string regions;               // path of its region socket; empty: as of its own
  TlsOptions tls;
  std::string token_file;
  std::string token;  // empty: none
  absl::Duration deadline = absl::Seconds(60);
  std::string variant;
  bool reproducible = false;
  std::optional<DType> dtype;
  int retries = 0;
  bool timings = false;
  bool json = false;

  // Adds the flags that every command takes. As with each of the other functions, this object must outlive
  // the parse.
  void AddTo(CLI::App& program);
  void AddRegions(CLI::App& command, const std::string& help);
  void AddVariant(CLI::App& command);
  void AddReproducible(CLI::App& command);
  void AddDType(CLI::App& command);
  void AddRetries(CLI::App& command);

  // After the parse: checks the address and reads the token. Every error is one of usage.
  absl::Status Complete(const CLI::App& program);

  ChannelOptions channel() const { return {.tls = tls, .token = token}; }
};

}  // namespace warpline::client

#endif  // WARPLINE_CLIENT_CLI_FLAGS_H_
