// Names of server tensors that are used like file names: "@ID" is read, and "@" leaves a result on the
// server.
#ifndef WARPLINE_CLIENT_CLI_TENSOR_PATH_H_
#define WARPLINE_CLIENT_CLI_TENSOR_PATH_H_

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "warpline/client.h"

namespace warpline::client {

// The output path that leaves a result on the server.
inline constexpr std::string_view kKeptPath = "@";

bool IsTensorPath(std::string_view path);
// Returns the path in a form that may be displayed: an id is a secret.
std::string Shown(std::string_view path);

// Returns the id in "@ID", or in "ID" where only an id is possible. A usage error if it is empty.
absl::StatusOr<std::string> TensorId(std::string_view path);

// Finds the tensor named "@ID", and renews its lease once. Errors start with the path, as Shown() formats it.
// If there is no such tensor, but a file has this name, the error says how to name the file.
absl::StatusOr<Tensor> FindTensor(Client& client, const std::string& path, absl::Duration deadline);

// Prints the id of an owned tensor on a line of standard output, and lets the tensor live until its lease
// ends. If printing fails, the handle drops the tensor, since nobody knows the id.
absl::Status PrintId(Tensor& tensor);

}  // namespace warpline::client

#endif  // WARPLINE_CLIENT_CLI_TENSOR_PATH_H_
