#include "server/device/cuda_workbench.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/align.h"
#include "kernels/gpu/capture.h"
#include "kernels/gpu/count_different.h"
#include "kernels/gpu/random_data.h"
#include "kernels/gpu/status.h"
#include "kernels/operand_sizes.h"
#include "kernels/problem_text.h"
#include "kernels/status_macros.h"
#include "server/device/cuda_program.h"
#include "server/device/trial_memory.h"
#include "server/device/tuning_use.h"
#include "server/tuning/agreement.h"
#include "server/tuning/candidates.h"

namespace warpline {
namespace {

using gpu::ToStatus;

constexpr char kDoing[] = "tuning";
constexpr double kSecondsPerTiming = 0.5e-3;
constexpr double kLongestLaunch = 25e-3;  // seconds
constexpr int kMaxLaunches = 256;         // in a row
constexpr std::size_t kMaxBytes = std::size_t{8} << 30;
constexpr auto kQuiet = std::chrono::milliseconds(2);
constexpr auto kStep = std::chrono::microseconds(200);

class CudaWorkbench;

class CudaTrial : public Trial {
 public:
  CudaTrial(CudaWorkbench& bench, const Problem& problem, std::vector<std::string_view> candidates,
            const TrialLayout& layout, TrialBlock block);
  ~CudaTrial() override;

  // Fills the operands and keeps the result of the first candidate.
  absl::Status Begin();
  std::span<const std::string_view> candidates() const override { return candidates_; }
  absl::StatusOr<std::optional<double>> Time(std::size_t candidate) override;

 private:
  struct Entrant {
    gpu::GraphExec graph;
    int launches = 0;  // in the graph; 0: it has not run yet
  };
  Operands OperandsOf(int set) const;
  // Whatever is launched belongs to one of these, until Completion has been told of its error.
  TuningUse Try(std::size_t candidate);
  void Report(const absl::Status& status);
  absl::Status Fill();
  absl::Status KeepFirst(const TuningUse& use);
  absl::Status Launch(std::size_t candidate, int set);
  // Runs it for the first time. The result is all of its own: what it does not write is seen.
  absl::StatusOr<double> RunFirst(std::size_t candidate);
  // Looks at its result, and makes its graph, unless others used the device meanwhile: then times say
  // nothing.
  absl::Status Enter(std::size_t candidate, const TuningUse& use);
  absl::Status CheckResult(std::size_t candidate);
  absl::StatusOr<gpu::GraphExec> Capture(std::size_t candidate, int launches);
  // Between the events around what `enqueue` does. Waits for it, without keeping a core busy. What was
  // enqueued before an error is waited for too: a lost context is its fault, and not that of whoever comes
  // next.
  template <typename Enqueue>
  absl::StatusOr<double> Seconds(const Enqueue& enqueue);

  CudaWorkbench& bench_;
  const Problem problem_;
  const std::string text_ = ProblemText(problem_);
  const std::vector<std::string_view> candidates_;
  const TrialLayout layout_;
  const TrialBlock block_;
  std::vector<Entrant> entrants_;
};

class CudaWorkbench : public Workbench {
 public:
  CudaWorkbench(CudaDevice& device, const DeviceRates& rates, FailedVariants failed, Attempts& attempts)
      : device_(device), rates_(rates), failed_(std::move(failed)), attempts_(attempts) {}

  absl::Status Open() {
    RETURN_IF_ERROR(ToStatus(cudaSetDevice(device_.cuda_ordinal), kDoing));
    ASSIGN_OR_RETURN(stream_, device_.partition ? device_.partition->CreateStream() : gpu::CreateStream());
    ASSIGN_OR_RETURN(begin_, gpu::CreateTimedEvent());
    ASSIGN_OR_RETURN(end_, gpu::CreateTimedEvent());
    int l2_bytes = 0;
    RETURN_IF_ERROR(
        ToStatus(cudaDeviceGetAttribute(&l2_bytes, cudaDevAttrL2CacheSize, device_.cuda_ordinal), kDoing));
    l2_bytes_ = static_cast<std::size_t>(l2_bytes);
    return absl::OkStatus();
  }

  bool AwaitQuiet(const std::function<bool()>& stopping, MonotonicTime deadline) override {
    if (stopping()) return false;
    if (device_.running.load() == 0 && device_.launched.load() == last_seen_) return true;
    while (MonotonicClock::now() < deadline) {
      const std::uint64_t before = device_.launched.load();
      for (auto waited = kStep * 0; waited < kQuiet; waited += kStep) {
        if (stopping()) return false;
        std::this_thread::sleep_for(kStep);
      }
      if (device_.running.load() != 0 || device_.launched.load() != before) continue;
      last_seen_ = before;
      return true;
    }
    return false;
  }

  absl::StatusOr<std::unique_ptr<Trial>> Prepare(const Problem& problem) override {
    RETURN_IF_ERROR(ToStatus(cudaSetDevice(device_.cuda_ordinal), kDoing));
    const TrialLayout layout(problem, traits(), l2_bytes_);
    if (layout.end > kMaxBytes) {
      return absl::OutOfRangeError(
          absl::StrCat("operands and workspace take ", layout.end, " bytes; the limit is ", kMaxBytes));
    }
    std::vector<std::string_view> candidates = TuningCandidates(problem, traits(), rates_, kLongestLaunch);
    if (candidates.empty()) {
      return absl::OutOfRangeError(absl::StrCat("a launch takes more than ", kLongestLaunch * 1e3, " ms"));
    }
    RETURN_IF_ERROR(LeaveOutFailed(failed_, ProblemText(problem), candidates));
    ASSIGN_OR_RETURN(TrialBlock block, TrialBlock::Take(layout.end, stream_.get()));
    auto trial = std::make_unique<CudaTrial>(*this, problem, std::move(candidates), layout, std::move(block));
    RETURN_IF_ERROR(trial->Begin());
    return trial;
  }

 private:
  friend class CudaTrial;
  const DeviceTraits& traits() const { return device_.context.traits; }
  void SawAlone() { last_seen_ = device_.launched.load(); }

  CudaDevice& device_;
  const DeviceRates rates_;
  const FailedVariants failed_;
  Attempts& attempts_;
  gpu::Stream stream_;
  gpu::Event begin_, end_;
  std::size_t l2_bytes_ = 0;
  std::uint64_t last_seen_ = ~std::uint64_t{0};  // launches of the device, when it was quiet last
};

CudaTrial::CudaTrial(CudaWorkbench& bench, const Problem& problem, std::vector<std::string_view> candidates,
                     const TrialLayout& layout, TrialBlock block)
    : bench_(bench),
      problem_(problem),
      candidates_(std::move(candidates)),
      layout_(layout),
      block_(std::move(block)),
      entrants_(candidates_.size()) {}

CudaTrial::~CudaTrial() { cudaStreamSynchronize(bench_.stream_.get()); }

Operands CudaTrial::OperandsOf(int set) const {
  Operands operands;
  std::byte* next = block_.data() + static_cast<std::size_t>(set) * layout_.set;
  int index = 0;
  for (const OperandSize& input : InputSizes(problem_)) {
    operands.in[index++] = next;
    next += AlignUp(input.Bytes(), kTensorAlignment);
  }
  operands.out = next;
  if (ScalarCount(problem_) > 0) {
    operands.scalars = reinterpret_cast<const StepScalars*>(block_.data() + layout_.scalars);
  }
  operands.workspace = block_.data() + layout_.workspace;
  operands.workspace_bytes = layout_.workspace_bytes;
  return operands;
}

absl::Status CudaTrial::Fill() {
  cudaStream_t stream = bench_.stream_.get();
  std::vector<StepScalars> scalars(static_cast<std::size_t>(ScalarCount(problem_)));
  if (const auto* gemm = std::get_if<GemmProblem>(&problem_); gemm != nullptr && gemm->has_c) {
    scalars[0].beta_f32 = 1, scalars[0].beta_f64 = 1, scalars[0].beta_i64 = 1;
  }
  RETURN_IF_ERROR(
      ToStatus(cudaMemcpyAsync(block_.data() + layout_.scalars, scalars.data(),
                               scalars.size() * sizeof(StepScalars), cudaMemcpyHostToDevice, stream),
               kDoing));
  const std::vector<OperandSize> inputs = InputSizes(problem_);
  std::uint64_t seed = 1;
  for (int set = 0; set < layout_.sets; ++set) {
    const Operands operands = OperandsOf(set);
    for (std::size_t i = 0; i < inputs.size(); ++i, ++seed) {
      auto* data = const_cast<void*>(operands.in[i]);
      RETURN_IF_ERROR(
          ToStatus(IsMapType(inputs[i].dtype)
                       ? gpu::FillNumbers(data, inputs[i].dtype, inputs[i].count, seed << 40, stream)
                       : gpu::FillBits(data, inputs[i].Bytes(), seed << 40, stream),
                   kDoing));
    }
  }
  return absl::OkStatus();
}

template <typename Enqueue>
absl::StatusOr<double> CudaTrial::Seconds(const Enqueue& enqueue) {
  cudaStream_t stream = bench_.stream_.get();
  RETURN_IF_ERROR(ToStatus(cudaEventRecord(bench_.begin_.get(), stream), kDoing));
  const absl::Status enqueued = enqueue();
  RETURN_IF_ERROR(ToStatus(cudaEventRecord(bench_.end_.get(), stream), kDoing));
  for (;;) {
    const cudaError_t error = cudaEventQuery(bench_.end_.get());
    if (error == cudaSuccess) break;
    if (error != cudaErrorNotReady) return ToStatus(error, kDoing);
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
  RETURN_IF_ERROR(enqueued);
  float milliseconds = 0;
  RETURN_IF_ERROR(
      ToStatus(cudaEventElapsedTime(&milliseconds, bench_.begin_.get(), bench_.end_.get()), kDoing));
  return milliseconds * 1e-3;
}

TuningUse CudaTrial::Try(std::size_t candidate) {
  return TuningUse(bench_.device_, bench_.attempts_, text_, candidates_[candidate]);
}

void CudaTrial::Report(const absl::Status& status) {
  // Another thread that has seen the same error may be about to blame the candidate, and find it gone.
  if (absl::IsUnavailable(status)) {
    bench_.attempts_.Blame(bench_.device_.info.ordinal, std::string(status.message()));
  }
  bench_.device_.completion->ReportError(status);
}

absl::Status CudaTrial::Begin() {
  const TuningUse use = Try(0);
  absl::Status kept = KeepFirst(use);
  Report(kept);
  return kept;
}

absl::Status CudaTrial::KeepFirst(const TuningUse& use) {
  RETURN_IF_ERROR(Fill());
  RETURN_IF_ERROR(RunFirst(0).status());
  const std::size_t bytes = OutputSize(problem_).Bytes();
  RETURN_IF_ERROR(Seconds([&] {
                    return ToStatus(cudaMemcpyAsync(block_.data() + layout_.want, OperandsOf(0).out, bytes,
                                                    cudaMemcpyDeviceToDevice, bench_.stream_.get()),
                                    kDoing);
                  }).status());
  if (use.IsAlone()) bench_.SawAlone();
  return absl::OkStatus();
}

absl::Status CudaTrial::Launch(std::size_t candidate, int set) {
  // The first of the table may refuse a problem at its launch. Without tuning the next one then runs, and it
  // is that one whose time and result the others are compared with.
  const std::string_view variant = candidate == 0 ? std::string_view() : candidates_[candidate];
  const absl::Status status = LaunchProblem(problem_, variant, OperandsOf(set), bench_.device_.context,
                                            bench_.device_.kernel_choices, bench_.stream_.get())
                                  .status();
  // A library may refuse some candidates that it has proposed, for reasons of its own.
  return status.ok() || absl::IsUnavailable(status)
             ? status
             : absl::UnimplementedError(absl::string_view(status.message().data(), status.message().size()));
}

absl::Status CudaTrial::CheckResult(std::size_t candidate) {
  cudaStream_t stream = bench_.stream_.get();
  const OperandSize out = OutputSize(problem_);
  const void* got = OperandsOf(0).out;
  const std::byte* want = block_.data() + layout_.want;
  if (candidate == 0) return absl::OkStatus();
  auto* counter = reinterpret_cast<unsigned long long*>(block_.data() + layout_.different);
  const Agreement agreement = AgreementOf(problem_);
  unsigned long long different = 0;
  RETURN_IF_ERROR(
      Seconds([&]() -> absl::Status {
        RETURN_IF_ERROR(ToStatus(cudaMemsetAsync(counter, 0, sizeof(*counter), stream), kDoing));
        RETURN_IF_ERROR(ToStatus(gpu::CountDifferent(got, want, out.dtype, out.count, agreement.absolute,
                                                     agreement.relative, counter, stream),
                                 kDoing));
        return ToStatus(
            cudaMemcpyAsync(&different, counter, sizeof(different), cudaMemcpyDeviceToHost, stream), kDoing);
      }).status());
  if (different == 0) return absl::OkStatus();
  return absl::DataLossError(
      absl::StrCat(different, " of ", out.count, " elements are not those of ", std::string(candidates_[0])));
}

absl::StatusOr<gpu::GraphExec> CudaTrial::Capture(std::size_t candidate, int launches) {
  ASSIGN_OR_RETURN(gpu::Capture capture, gpu::Capture::Begin(bench_.stream_.get()));
  for (int i = 0; i < launches; ++i) RETURN_IF_ERROR(Launch(candidate, i % layout_.sets));
  ASSIGN_OR_RETURN(const gpu::Graph graph, std::move(capture).End());
  return gpu::Instantiate(graph);
}

absl::StatusOr<double> CudaTrial::RunFirst(std::size_t candidate) {
  // All bits set, which is NaN in every floating-point type.
  RETURN_IF_ERROR(
      ToStatus(gpu::Poison(OperandsOf(0).out, OutputSize(problem_).Bytes(), bench_.stream_.get()), kDoing));
  return Seconds([&] { return Launch(candidate, 0); });
}

absl::Status CudaTrial::Enter(std::size_t candidate, const TuningUse& use) {
  const auto takes_long = [](double seconds) {
    return absl::UnimplementedError(absl::StrCat("a launch takes ", seconds * 1e3, " ms"));
  };
  ASSIGN_OR_RETURN(const double first, RunFirst(candidate));
  if (!use.IsAlone()) return absl::OkStatus();
  if (first > kLongestLaunch) return takes_long(first);
  RETURN_IF_ERROR(CheckResult(candidate));
  ASSIGN_OR_RETURN(const double one, Seconds([&] { return Launch(candidate, 0); }));
  if (!use.IsAlone()) return absl::OkStatus();
  if (one > kLongestLaunch) return takes_long(one);
  const int launches =
      static_cast<int>(std::clamp(std::ceil(kSecondsPerTiming / one), 1.0, double{kMaxLaunches}));
  ASSIGN_OR_RETURN(entrants_[candidate].graph, Capture(candidate, launches));
  RETURN_IF_ERROR(ToStatus(cudaGraphUpload(entrants_[candidate].graph.get(), bench_.stream_.get()), kDoing));
  entrants_[candidate].launches = launches;
  return absl::OkStatus();
}

absl::StatusOr<std::optional<double>> CudaTrial::Time(std::size_t candidate) {
  const TuningUse use = Try(candidate);
  Entrant& entrant = entrants_[candidate];
  if (entrant.launches == 0) {
    absl::Status entered = Enter(candidate, use);
    Report(entered);
    if (!entered.ok()) return entered;
  }
  if (entrant.launches == 0) return std::nullopt;
  const absl::StatusOr<double> seconds =
      Seconds([&] { return ToStatus(cudaGraphLaunch(entrant.graph.get(), bench_.stream_.get()), kDoing); });
  Report(seconds.status());
  if (!seconds.ok()) return seconds.status();
  if (!use.IsAlone()) return std::nullopt;
  bench_.SawAlone();
  return *seconds / entrant.launches;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Workbench>> CreateCudaWorkbench(CudaDevice& device, const DeviceRates& rates,
                                                               FailedVariants failed, Attempts& attempts) {
  auto bench = std::make_unique<CudaWorkbench>(device, rates, std::move(failed), attempts);
  RETURN_IF_ERROR(bench->Open());
  return bench;
}

}  // namespace warpline
