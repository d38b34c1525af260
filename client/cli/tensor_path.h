// Tensors on the server in the place of files: "@ID" is read, and "@" is where a result stays.
#ifndef WARPLINE_CLIENT_CLI_TENSOR_PATH_H_
#define WARPLINE_CLIENT_CLI_TENSOR_PATH_H_

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "warpline/client.h"

namespace warpline::client {

// The output that leaves a result on the server.
inline constexpr std::string_view kKeptPath = "@";

bool IsTensorPath(std::string_view path);
// Returns the path in a form that may be shown: an id is a secret.
std::string Shown(std::string_view path);

// The id in "@ID", or in "ID" alone where only an id can stand. A usage error if it is empty.
absl::StatusOr<std::string> TensorId(std::string_view path);

// The tensor that "@ID" names, whose lease is renewed once. An error has the path as Shown() has it before
// its text; if there is no such tensor, but a file has this name, it says how to name the file.
absl::StatusOr<Tensor> FindTensor(Client& client, const std::string& path, absl::Duration deadline);

// Prints the id of a tensor that is ours on a line of standard output, and leaves the tensor to its lease. If
// that fails, the tensor is dropped with its handle, as nobody knows the id.
absl::Status PrintId(Tensor& tensor);

}  // namespace warpline::client

#endif  // WARPLINE_CLIENT_CLI_TENSOR_PATH_H_
