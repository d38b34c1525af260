// The backends that conformance_test.cc runs on.
#include <iostream>

#include "absl/status/statusor.h"
#include "server/device/cpu_backend.h"
#ifdef WARPLINE_HAVE_CUDA
#include "server/device/cuda_backend.h"
#endif
#include "tests/kernels/conformance.h"

namespace warpline::testing {
namespace {

std::unique_ptr<Backend> ValueOrNull(std::string_view name,
                                     absl::StatusOr<std::unique_ptr<Backend>> backend) {
  if (backend.ok()) return *std::move(backend);
  std::cerr << "no backend " << name << ": " << backend.status() << "\n";
  return nullptr;
}

}  // namespace

std::unique_ptr<Backend> MakeTestBackend(std::string_view name) {
  if (name == "cpu") return ValueOrNull(name, CreateCpuBackend({}));
#ifdef WARPLINE_HAVE_CUDA
  if (name == "cuda") return ValueOrNull(name, CreateCudaBackend({}));
#endif
  return nullptr;
}

}  // namespace warpline::testing
