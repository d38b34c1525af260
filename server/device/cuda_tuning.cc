#include "server/device/cuda_tuning.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kernels/gpu/status.h"
#include "kernels/problem_text.h"
#include "kernels/status_macros.h"
#include "server/device/cuda_rates.h"
#include "server/device/cuda_workbench.h"
#include "server/observe/log.h"
#include "server/tuning/candidates.h"

namespace warpline {
namespace {

absl::StatusOr<DeviceKind> KindOf(const CudaDevice& device) {
  int driver = 0;
  RETURN_IF_ERROR(gpu::ToStatus(cudaDriverGetVersion(&driver), "asking for the driver's version"));
  return DeviceKind{
      .name = device.info.name,
      .compute_capability = device.info.compute_capability,
      .multiprocessors = device.context.traits.multiprocessors,
      .cublaslt = device.cublaslt != nullptr ? static_cast<std::int64_t>(device.cublaslt->version()) : 0,
      .driver = driver};
}

// Makes those of the file's choices that count the device's, and known to its tuner, if it has one.
void TakeOver(const TuningStore& store, const DeviceKind& kind, CudaDevice& device) {
  const TuningFile::Choices choices = store.Of(kind);
  const FailedVariants failed = store.FailedOf(kind);
  const DeviceTraits& traits = device.context.traits;
  const int ordinal = device.info.ordinal;
  int taken = 0, kept = 0, void_ones = 0;
  for (const auto& [text, choice] : choices) {
    const absl::StatusOr<Problem> problem = ParseProblem(text);
    const bool holds = problem.ok() && IsUntuned(*problem, choice.untuned, traits) &&
                       !ChosenVariant(*problem, choice.variant, traits).empty() &&
                       !HasFailed(failed, text, choice.variant);
    if (!holds) {
      ++void_ones;
      continue;
    }
    if (device.tuner != nullptr) device.tuner->Know(text);
    if (choice.variant == choice.untuned) {
      ++kept;
    } else {
      device.choices->Set(text, choice.variant);
      ++taken;
    }
  }
  if (choices.empty()) {
    Log("info", "the tuning file has no choices for this kind of device",
        {{"device", absl::StrCat(ordinal)},
         {"name", kind.name},
         {"multiprocessors", absl::StrCat(kind.multiprocessors)},
         {"cublaslt", absl::StrCat(kind.cublaslt)},
         {"driver", absl::StrCat(kind.driver)}});
    return;
  }
  // A void one names variants that this version does not have, or does not choose, or that have failed since:
  // it is tuned anew.
  Log("info", "tuning file read",
      {{"device", absl::StrCat(ordinal)},
       {"changed", absl::StrCat(taken)},
       {"kept", absl::StrCat(kept)},
       {"void", absl::StrCat(void_ones)}});
}

absl::StatusOr<std::unique_ptr<Tuner>> MakeTuner(CudaDevice& device, const DeviceKind& kind,
                                                 TuningStore& store, Attempts& attempts, Metrics& metrics) {
  const DeviceRates rates = CudaRates(device.roofline, device.context.traits);
  FailedVariants failed = store.FailedOf(kind);
  for (const auto& [problem, variants] : failed) {
    Log("warning", "variants are not tried again, since the device failed with them: see the tuning file",
        {{"problem", problem}, {"variants", absl::StrJoin(variants, ",")}});
  }
  attempts.SetCondemn(device.info.ordinal,
                      [kind, &store](const std::string& problem, const std::string& variant) {
                        store.AddFailed(kind, problem, variant);
                      });
  ASSIGN_OR_RETURN(std::unique_ptr<Workbench> workbench,
                   CreateCudaWorkbench(device, rates, std::move(failed), attempts));
  return std::make_unique<Tuner>(
      std::move(workbench), *device.choices,
      [kind, &store](const std::string& problem, const TunedChoice& choice) {
        store.Set(kind, problem, choice);
      },
      metrics.Tuning(device.info.ordinal));
}

}  // namespace

absl::Status SetUpTuning(std::span<const std::unique_ptr<CudaDevice>> devices, TuningStore& store,
                         Attempts& attempts, Metrics& metrics) {
  if (store.writes()) RETURN_IF_ERROR(store.CheckWritable());
  std::vector<std::pair<DeviceKind, const CudaDevice*>> known;
  for (const auto& device : devices) {
    ASSIGN_OR_RETURN(const DeviceKind kind, KindOf(*device));
    const auto same = std::find_if(known.begin(), known.end(), [&](const auto& kind_and_choices) {
      return kind_and_choices.first == kind;
    });
    if (same != known.end()) {
      device->choices = same->second->choices;
      device->asks = same->second->asks;
      continue;
    }
    known.emplace_back(kind, device.get());
    if (store.writes()) {
      ASSIGN_OR_RETURN(device->tuner, MakeTuner(*device, kind, store, attempts, metrics));
      device->asks = device->tuner.get();
    }
    TakeOver(store, kind, *device);
  }
  return absl::OkStatus();
}

}  // namespace warpline
