#include "server/device/cuda_tuning.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
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
void TakeOver(const TuningFile::Choices& choices, const DeviceKind& kind, CudaDevice& device) {
  const DeviceTraits& traits = device.context.traits;
  const int ordinal = device.info.ordinal;
  int taken = 0, kept = 0, void_ones = 0;
  for (const auto& [text, choice] : choices) {
    const absl::StatusOr<Problem> problem = ParseProblem(text);
    const bool holds = problem.ok() && UntunedVariant(*problem, traits) == choice.untuned &&
                       !ChosenVariant(*problem, choice.variant, traits).empty();
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
  // A void one names variants that this version does not have, or does not choose: it is tuned anew.
  Log("info", "tuning file read",
      {{"device", absl::StrCat(ordinal)},
       {"changed", absl::StrCat(taken)},
       {"kept", absl::StrCat(kept)},
       {"void", absl::StrCat(void_ones)}});
}

absl::StatusOr<std::unique_ptr<Tuner>> MakeTuner(CudaDevice& device, const DeviceKind& kind,
                                                 TuningStore& store, Metrics& metrics) {
  const DeviceRates rates = CudaRates(device.roofline, device.context.traits);
  ASSIGN_OR_RETURN(std::unique_ptr<Workbench> workbench, CreateCudaWorkbench(device, rates));
  return std::make_unique<Tuner>(
      std::move(workbench), *device.choices,
      [kind, &store](const std::string& problem, const TunedChoice& choice) {
        store.Set(kind, problem, choice);
      },
      metrics.Tuning(device.info.ordinal));
}

}  // namespace

absl::Status SetUpTuning(std::span<const std::unique_ptr<CudaDevice>> devices, TuningStore& store,
                         Metrics& metrics) {
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
      ASSIGN_OR_RETURN(device->tuner, MakeTuner(*device, kind, store, metrics));
      device->asks = device->tuner.get();
    }
    TakeOver(store.Of(kind), kind, *device);
  }
  return absl::OkStatus();
}

}  // namespace warpline
