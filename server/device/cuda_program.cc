#include "server/device/cuda_program.h"

#include "absl/strings/str_cat.h"
#include "kernels/gpu/empty_kernel.h"
#include "kernels/gpu/status.h"
#include "kernels/status_macros.h"
#include "server/base/errors.h"

namespace warpline {
namespace {

using gpu::ToStatus;

template <typename ProblemT>
absl::StatusOr<std::string_view> LaunchChoice(const ProblemT& problem, std::string_view variant,
                                              const CudaChoice<ProblemT>& first, const Operands& operands,
                                              const CudaContext& context, cudaStream_t stream) {
  CudaChoice<ProblemT> next;  // for this launch only: a refusal may be temporary, e.g. for lack of memory
  for (const CudaChoice<ProblemT>* choice = &first; choice->row != nullptr; choice = &next) {
    const bool has_room =
        choice == &first || choice->row->workspace_bytes(problem, context.traits) <= operands.workspace_bytes;
    const cudaError_t error =
        has_room ? choice->Launch(problem, operands, context, stream) : cudaErrorNotSupported;
    if (error != cudaErrorNotSupported) {
      RETURN_IF_ERROR(ToStatus(error, choice->row->name));
      return choice->name();
    }
    if (!variant.empty()) break;
    next = ChooseAfter(*choice, problem, context.traits);
  }
  if (variant.empty()) return absl::InternalError("no variant runs a validated problem");
  return FieldError("variant", absl::StrCat("\"", std::string(variant), "\" cannot run this problem after ",
                                            "all; leave the choice to the server"));
}

}  // namespace

absl::StatusOr<std::string_view> LaunchProblem(const Problem& problem, std::string_view variant,
                                               const StepChoice& choice, const Operands& operands,
                                               const CudaContext& context, cudaStream_t stream) {
  return std::visit(
      [&]<typename ProblemT>(const ProblemT& p) {
        return LaunchChoice(p, variant, std::get<CudaChoice<ProblemT>>(choice), operands, context, stream);
      },
      problem);
}

absl::StatusOr<std::string_view> LaunchPiece(const TransposeProblem& problem,
                                             const CudaChoice<TransposeProblem>& choice,
                                             const Operands& operands, const CudaContext& context,
                                             cudaStream_t stream) {
  return LaunchChoice(problem, {}, choice, operands, context, stream);
}

absl::Status RecordTime(const TimingEvents* timing, std::size_t index, cudaStream_t stream) {
  if (timing == nullptr) return absl::OkStatus();
  return ToStatus(cudaEventRecord(timing->events[index].get(), stream), "recording a timing event");
}

DeviceImage::DeviceImage(const StagedProgram& staged, std::span<std::byte> block)
    : addresses(TableInBlock(*staged.plan, staged.bindings, block)) {
  const BlockLayout layout(*staged.plan);
  input = block.data() + layout.input;
  output = block.data() + layout.output;
}

namespace {

absl::Status CopyIn(std::span<const std::byte> from, std::byte* to, cudaStream_t stream) {
  if (from.empty()) return absl::OkStatus();
  return ToStatus(cudaMemcpyAsync(to, from.data(), from.size(), cudaMemcpyHostToDevice, stream),
                  "copying the inputs in");
}

absl::Status CopyOut(const std::byte* from, std::span<std::byte> to, cudaStream_t stream) {
  if (to.empty()) return absl::OkStatus();
  return ToStatus(cudaMemcpyAsync(to.data(), from, to.size(), cudaMemcpyDeviceToHost, stream),
                  "copying the outputs out");
}

}  // namespace

absl::Status CopyIn(const StagedProgram& staged, const DeviceImage& image, cudaStream_t stream) {
  RETURN_IF_ERROR(CopyIn(staged.input, image.input, stream));
  for (const Binding& binding : staged.bindings) {
    if (binding.staged.area != Area::kShared || binding.tensor >= staged.program->num_inputs) continue;
    RETURN_IF_ERROR(CopyIn(binding.memory.bytes(), image.addresses.tensors[binding.tensor], stream));
  }
  return absl::OkStatus();
}

absl::Status CopyOut(const StagedProgram& staged, const DeviceImage& image, cudaStream_t stream) {
  RETURN_IF_ERROR(CopyOut(image.output, staged.output, stream));
  for (const Binding& binding : staged.bindings) {
    if (binding.staged.area != Area::kShared || binding.tensor < staged.program->num_inputs) continue;
    RETURN_IF_ERROR(CopyOut(image.addresses.tensors[binding.tensor], binding.memory.bytes(), stream));
  }
  return absl::OkStatus();
}

absl::Status EnqueueSteps(const Program& program, const AddressTable& addresses, const StepLaunch& launch,
                          VariantNames& variants) {
  variants.clear();
  if (launch.timing != nullptr) {
    RETURN_IF_ERROR(RecordTime(launch.timing, TimingEvents::kAfterCopyIn, launch.stream));
    // Directly after a copy, the event would be recorded long before the kernel begins: see
    // MeasureEventOverhead.
    RETURN_IF_ERROR(ToStatus(gpu::LaunchEmptyKernel(1, launch.stream), "timing a kernel"));
    RETURN_IF_ERROR(RecordTime(launch.timing, TimingEvents::BeforeStep(0), launch.stream));
  }
  for (std::size_t i = 0; i < program.steps.size(); ++i) {
    const Step& step = program.steps[i];
    Operands operands = addresses.OperandsOf(step, i);
    operands.bad_index = launch.bad_index;
    operands.bad_index.step = static_cast<std::int32_t>(i);
    ASSIGN_OR_RETURN(const std::string_view name,
                     LaunchProblem(step.problem, step.variant, launch.plan.steps[i], operands, launch.context,
                                   launch.stream));
    variants.push_back(name);
    RETURN_IF_ERROR(RecordTime(launch.timing, TimingEvents::AfterStep(i), launch.stream));
  }
  return absl::OkStatus();
}

}  // namespace warpline
