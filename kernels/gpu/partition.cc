#include "kernels/gpu/partition.h"

#include <cudaTypedefs.h>

#include <optional>

#include "absl/strings/str_cat.h"
#include "kernels/gpu/status.h"
#include "kernels/status_macros.h"

namespace warpline::gpu {
namespace {

// The runtime and the driver use the same error numbers.
absl::Status ToStatus(CUresult result, const char* what) {
  return gpu::ToStatus(static_cast<cudaError_t>(result), what);
}

// Functions of the installed driver, found at run time. If the program linked to the driver, it would not
// start where there is none.
struct Driver {
  PFN_cuDeviceGetDevResource_v12040 get_resource = nullptr;
  PFN_cuDevSmResourceSplitByCount_v12040 split = nullptr;
  PFN_cuDevResourceGenerateDesc_v12040 describe = nullptr;
  PFN_cuGreenCtxCreate_v12040 create = nullptr;
  PFN_cuGreenCtxDestroy_v12040 destroy = nullptr;
  PFN_cuGreenCtxStreamCreate_v12050 create_stream = nullptr;
};

template <typename Function>
bool Find(const char* name, Function& function) {
  constexpr unsigned kVersion = 12050;
  void* found = nullptr;
  cudaDriverEntryPointQueryResult result = cudaDriverEntryPointSymbolNotFound;
  const cudaError_t error =
      cudaGetDriverEntryPointByVersion(name, &found, kVersion, cudaEnableDefault, &result);
  function = reinterpret_cast<Function>(found);
  return error == cudaSuccess && result == cudaDriverEntryPointSuccess;
}

std::optional<Driver> FindDriver() {
  Driver driver;
  const bool found = Find("cuDeviceGetDevResource", driver.get_resource) &&
                     Find("cuDevSmResourceSplitByCount", driver.split) &&
                     Find("cuDevResourceGenerateDesc", driver.describe) &&
                     Find("cuGreenCtxCreate", driver.create) && Find("cuGreenCtxDestroy", driver.destroy) &&
                     Find("cuGreenCtxStreamCreate", driver.create_stream);
  return found ? std::optional(driver) : std::nullopt;
}

const std::optional<Driver>& GetDriver() {
  static const auto driver = FindDriver();
  return driver;
}

}  // namespace

absl::StatusOr<Partition> Partition::LeavingOut(int kept) {
  if (!GetDriver())
    return absl::UnimplementedError("the CUDA driver has no green contexts (12.5 or later has)");
  const Driver& driver = *GetDriver();
  int ordinal = 0;  // also the driver's handle
  RETURN_IF_ERROR(gpu::ToStatus(cudaGetDevice(&ordinal), "asking for the device"));
  RETURN_IF_ERROR(gpu::ToStatus(cudaInitDevice(ordinal, 0, 0), "making the device's context"));
  CUdevResource all{}, left_out{}, rest{};
  RETURN_IF_ERROR(
      ToStatus(driver.get_resource(ordinal, &all, CU_DEV_RESOURCE_TYPE_SM), "counting multiprocessors"));
  unsigned groups = 1;
  const CUresult split = driver.split(&left_out, &groups, &all, &rest, 0, static_cast<unsigned>(kept));
  if (split != CUDA_SUCCESS && split != CUDA_ERROR_INVALID_VALUE &&
      split != CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION) {
    return ToStatus(split, "dividing multiprocessors");
  }
  if (split != CUDA_SUCCESS || groups != 1 || rest.type != CU_DEV_RESOURCE_TYPE_SM || rest.sm.smCount == 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "of the ", all.sm.smCount, " multiprocessors of the device ", kept, " cannot be left out"));
  }
  CUdevResourceDesc description = nullptr;
  RETURN_IF_ERROR(ToStatus(driver.describe(&description, &rest, 1), "describing multiprocessors"));
  Partition partition;
  CUgreenCtx context = nullptr;
  RETURN_IF_ERROR(ToStatus(driver.create(&context, description, ordinal, CU_GREEN_CTX_DEFAULT_STREAM),
                           "making a green context"));
  partition.context_.reset(context);
  partition.multiprocessors_ = static_cast<int>(rest.sm.smCount);
  return partition;
}

absl::StatusOr<Stream> Partition::CreateStream() const {
  CUstream stream = nullptr;
  RETURN_IF_ERROR(ToStatus(GetDriver()->create_stream(&stream, context_.get(), CU_STREAM_NON_BLOCKING, 0),
                           "creating a stream"));
  return Stream(stream);
}

void Partition::Destroy::operator()(CUgreenCtx context) const {
  static_cast<void>(GetDriver()->destroy(context));
}

}  // namespace warpline::gpu
