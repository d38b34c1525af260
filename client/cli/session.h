// The common part of the commands that compute: arrays in, one or more requests, arrays out. Arrays are
// files, or tensors on the server.
#ifndef WARPLINE_CLIENT_CLI_SESSION_H_
#define WARPLINE_CLIENT_CLI_SESSION_H_

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/cli/flags.h"
#include "client/cli/npy/file.h"
#include "client/cli/transport.h"
#include "kernels/dtype.h"
#include "warpline/client.h"

namespace warpline::client {

// The flags of a command that computes.
struct SessionFlags {
  absl::Duration ttl;  // zero: the server's default
  TransportKind transport = TransportKind::kAuto;

  void AddTo(CLI::App& command, CommonFlags& common);  // in flags.cc
};
inline constexpr char kOutputHelp[] =
    "where the result goes, a .npy file; - is standard output, @ leaves it on the server";

// Errors are as error.h tells them apart. Not thread-safe.
class Session {
 public:
  // A usage error if there is no output, if two are one file, if one is a terminal, which would show bytes,
  // or if --ttl is given and nothing stays on the server.
  static absl::StatusOr<Session> Create(const SessionFlags& flags, const CommonFlags& common,
                                        std::span<const std::string> outputs);

  // The array in a file, or for "@ID" the tensor with that id. `dtype`: what raw elements are, see
  // ParseNpyHeader; a tensor must have it.
  absl::StatusOr<NpyArray> Read(const std::string& path, std::optional<DType> dtype);
  // For a result that goes to this output.
  Destination To(const std::string& path) const;
  // Writes a result to its file; or, if it has stayed on the server, prints the id of the tensor, which lasts
  // for as long as its lease from then on.
  absl::Status Write(const std::string& path, const Array& array, std::optional<Tensor>& tensor,
                     bool fortran) const;

  // One request, which has the whole deadline. Prints its timing, as that of `op`, if that is wanted.
  absl::StatusOr<RunResult> Compute(std::string_view op, RunArgs request);

  // Has the server bring a Fortran array into row-major order, where no renumbering of axes will do.
  absl::Status MakeRowMajor(NpyArray& array);

 private:
  Session(const CommonFlags& common, bool prints_to_stderr, const SessionFlags& flags);
  absl::StatusOr<RunResult> Send(std::string_view op, const RunArgs& request);
  std::vector<std::string_view> WaysOf(const RunArgs& request, const Streamed& streamed) const;

  CommonFlags common_;
  bool prints_to_stderr_;  // as a result, or its id, goes to standard output
  absl::Duration ttl_;     // of what stays on the server; zero: the server's default
  bool streams_;           // some arrays, perhaps
  std::unique_ptr<Client> client_;
  Transport transport_;  // what it has put goes before the client
};

}  // namespace warpline::client

#endif  // WARPLINE_CLIENT_CLI_SESSION_H_
