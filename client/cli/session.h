// The common part of the commands that compute: they read arrays, send one or more requests, and write
// arrays. Arrays are files, or tensors on the server.
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

// Errors have the kinds of error.h. Not thread-safe.
class Session {
 public:
  // Returns a usage error if there is no output, if two outputs are the same file, if one is a terminal,
  // which would show raw bytes, or if --ttl is given but nothing stays on the server.
  static absl::StatusOr<Session> Create(const SessionFlags& flags, const CommonFlags& common,
                                        std::span<const std::string> outputs);

  // Reads the array in a file, or, for "@ID", finds the tensor with that id. `dtype`: the type of raw
  // elements, see ParseNpyHeader. A tensor must have this type.
  absl::StatusOr<NpyArray> Read(const std::string& path, std::optional<DType> dtype);
  // Returns the destination for a result that goes to this output.
  Destination To(const std::string& path) const;
  // Writes a result to its file. If the result stays on the server, prints the id of the tensor instead. The
  // tensor then exists until its lease ends.
  absl::Status Write(const std::string& path, const Array& array, std::optional<Tensor>& tensor,
                     bool fortran) const;

  // Sends one request, which may use the whole deadline. If requested, prints its timing under the name `op`.
  absl::StatusOr<RunResult> Compute(std::string_view op, RunArgs request);

  // Lets the server convert a Fortran array to row-major order, if renumbering axes is not enough.
  absl::Status MakeRowMajor(NpyArray& array);

 private:
  Session(const CommonFlags& common, bool prints_to_stderr, const SessionFlags& flags);
  absl::StatusOr<RunResult> Send(std::string_view op, const RunArgs& request);
  std::vector<std::string_view> WaysOf(const RunArgs& request, const Streamed& streamed) const;

  CommonFlags common_;
  bool prints_to_stderr_;  // because a result, or its id, goes to standard output
  absl::Duration ttl_;     // of results on the server; zero: the server's default
  bool streams_;           // some arrays may travel in ranges
  std::unique_ptr<Client> client_;
  Transport transport_;  // must be destroyed before the client, since it drops its tensors
};

}  // namespace warpline::client

#endif  // WARPLINE_CLIENT_CLI_SESSION_H_
