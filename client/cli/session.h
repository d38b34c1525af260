// What the commands that compute share: files in, one or more requests, files out.
#ifndef WARPLINE_CLIENT_CLI_SESSION_H_
#define WARPLINE_CLIENT_CLI_SESSION_H_

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/cli/args.h"
#include "client/cli/flags.h"
#include "client/cli/npy/file.h"
#include "kernels/dtype.h"
#include "warpline/client.h"

namespace warpline::client {

// Errors are as error.h tells them apart. Not thread-safe.
class Session {
 public:
  // A usage error if there is no output, if two are one file, or if one is a terminal, which would show
  // bytes.
  static absl::StatusOr<Session> Create(const Args& args, const CommonFlags& common,
                                        std::span<const std::string> outputs);

  // `dtype`: what raw elements are; see ParseNpyHeader.
  absl::StatusOr<NpyArray> Read(const std::string& path, std::optional<DType> dtype) const;
  absl::Status Write(const std::string& path, const Array& array, bool fortran) const;

  // One request, which has the whole deadline: how long its inputs took to come is not its fault. Prints its
  // timing, if that is wanted.
  absl::StatusOr<Result> Compute(std::string_view op, const OperationArgs& request);
  absl::StatusOr<RunResult> Compute(const RunArgs& request);

  // Has the server bring a Fortran array into row-major order, where no renumbering of axes will do.
  absl::Status MakeRowMajor(NpyArray& array);

 private:
  Session(const CommonFlags& common, bool prints_to_stderr, int retries);
  template <typename Send>
  auto Timed(const absl::Status& sendable, std::string_view op, Send send) -> decltype(send());

  CommonFlags common_;
  bool prints_to_stderr_;  // as a result goes to standard output
  std::unique_ptr<Client> client_;
};

}  // namespace warpline::client

#endif  // WARPLINE_CLIENT_CLI_SESSION_H_
