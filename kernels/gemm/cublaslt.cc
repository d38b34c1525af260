#include "kernels/gemm/cublaslt.h"

#include <dlfcn.h>

#include <cstdlib>
#include <vector>

namespace warpline {
namespace {

constexpr char kSoname[] = "libcublasLt.so.13";

void* Open(std::string* why_not) {
  std::vector<std::string> paths;
  if (const char* directory = std::getenv("WARPLINE_CUDA_LIB"); directory != nullptr && *directory != '\0') {
    paths.push_back(std::string(directory) + "/" + kSoname);
  }
  paths.push_back(kSoname);
  paths.push_back(std::string("/usr/local/cuda/lib64/") + kSoname);
#ifdef __aarch64__
  paths.push_back(std::string("/usr/local/cuda/targets/sbsa-linux/lib/") + kSoname);
#else
  paths.push_back(std::string("/usr/local/cuda/targets/x86_64-linux/lib/") + kSoname);
#endif
  for (const std::string& path : paths) {
    if (void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) return library;
    if (!why_not->empty()) *why_not += "; ";
    *why_not += dlerror();
  }
  return nullptr;
}

template <typename Function>
bool Find(void* library, const char* name, Function* function, std::string* why_not) {
  *function = reinterpret_cast<Function>(dlsym(library, name));
  if (*function == nullptr) *why_not = std::string(kSoname) + " has no " + name;
  return *function != nullptr;
}

}  // namespace

std::unique_ptr<CublasLt> CublasLt::Load(std::string* why_not) {
  // Each of these variables lets the environment replace f32 or f64 arithmetic by a narrower or emulated one.
  for (const char* name : {"NVIDIA_TF32_OVERRIDE", "CUBLAS_EMULATE_SINGLE_PRECISION",
                           "CUBLAS_EMULATE_DOUBLE_PRECISION", "CUBLAS_EMULATION_STRATEGY"}) {
    unsetenv(name);
  }
  why_not->clear();
  void* library = Open(why_not);
  if (library == nullptr) return nullptr;
  Functions f;
  if (!Find(library, "cublasLtCreate", &f.create, why_not) ||
      !Find(library, "cublasLtDestroy", &f.destroy, why_not) ||
      !Find(library, "cublasLtMatmulDescInit_internal", &f.matmul_desc_init, why_not) ||
      !Find(library, "cublasLtMatmulDescSetAttribute", &f.matmul_desc_set, why_not) ||
      !Find(library, "cublasLtMatrixLayoutInit_internal", &f.layout_init, why_not) ||
      !Find(library, "cublasLtMatrixLayoutSetAttribute", &f.layout_set, why_not) ||
      !Find(library, "cublasLtMatmulPreferenceInit_internal", &f.preference_init, why_not) ||
      !Find(library, "cublasLtMatmulPreferenceSetAttribute", &f.preference_set, why_not) ||
      !Find(library, "cublasLtMatmulAlgoGetHeuristic", &f.get_heuristic, why_not) ||
      !Find(library, "cublasLtMatmul", &f.matmul, why_not)) {
    return nullptr;
  }
  std::unique_ptr<CublasLt> cublaslt(new CublasLt(f));
  if (cublasStatus_t status = f.create(&cublaslt->handle_); status != CUBLAS_STATUS_SUCCESS) {
    cublaslt->handle_ = nullptr;
    *why_not = "cublasLtCreate: status " + std::to_string(status);
    return nullptr;
  }
  why_not->clear();
  return cublaslt;
}

CublasLt::~CublasLt() {
  if (handle_ != nullptr) functions_.destroy(handle_);
}

}  // namespace warpline
