#include "client/cli/tensor_path.h"

#include <unistd.h>

#include <cstdio>

#include "absl/strings/str_cat.h"
#include "client/cli/error.h"
#include "kernels/status_macros.h"

namespace warpline::client {

bool IsTensorPath(std::string_view path) { return !path.empty() && path.front() == '@'; }

std::string Shown(std::string_view path) {
  if (!IsTensorPath(path) || path == kKeptPath) return std::string(path);
  return absl::StrCat("@", ShortId(path.substr(1)));
}

absl::StatusOr<std::string> TensorId(std::string_view path) {
  if (IsTensorPath(path)) path.remove_prefix(1);
  if (path.empty()) return UsageError("@ alone names no tensor: expected @ID, as `warpline put` prints it");
  return std::string(path);
}

absl::StatusOr<Tensor> FindTensor(Client& client, const std::string& path, absl::Duration deadline) {
  ASSIGN_OR_RETURN(const std::string id, TensorId(path));
  absl::StatusOr<Tensor> tensor = client.Attach(id, deadline);
  if (tensor.ok()) return tensor;
  const absl::Status named = WithSubject(tensor.status(), Shown(path));
  if (!absl::IsNotFound(named) || ::access(path.c_str(), F_OK) != 0) return named;
  return WithAdvice(named, absl::StrCat("the file of that name is ./", path));
}

absl::Status PrintId(Tensor& tensor) {
  const bool printed = std::printf("%s\n", tensor.id().c_str()) > 0 && std::fflush(stdout) == 0;
  if (!printed) return LocalError("standard output: cannot write");
  tensor.Release();
  return absl::OkStatus();
}

}  // namespace warpline::client
