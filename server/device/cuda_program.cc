#include "server/device/cuda_program.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/align.h"
#include "kernels/gpu/capture.h"
#include "kernels/gpu/empty_kernel.h"
#include "kernels/gpu/status.h"
#include "kernels/status_macros.h"
#include "server/base/errors.h"
#include "server/observe/nvtx.h"

namespace warpline {
namespace {

using gpu::ToStatus;

template <typename ProblemT>
absl::StatusOr<std::string_view> LaunchChoice(const ProblemT& problem, std::string_view variant,
                                              const Operands& operands, const CudaContext& context,
                                              KernelChoices& choices, cudaStream_t stream) {
  const auto kept = choices.Get(problem, variant, context.traits, operands);
  CudaChoice<ProblemT> next;  // for this launch only: a refusal may pass, as one for want of memory
  const CudaChoice<ProblemT>* choice = kept.get();
  while (choice != nullptr && choice->row != nullptr) {
    const cudaError_t error = choice->Launch(problem, operands, context, stream);
    if (error != cudaErrorNotSupported) {
      RETURN_IF_ERROR(ToStatus(error, choice->row->name));
      return choice->name();
    }
    if (!variant.empty()) break;
    next = ChooseAfter(*choice, problem, context.traits);
    choice = &next;
  }
  if (variant.empty()) return absl::InternalError("no variant runs a validated problem");
  return FieldError("variant", absl::StrCat("\"", std::string(variant), "\" cannot run this problem after ",
                                            "all; leave the choice to the server"));
}

}  // namespace

absl::StatusOr<std::string_view> LaunchProblem(const Problem& problem, std::string_view variant,
                                               const Operands& operands, const CudaContext& context,
                                               KernelChoices& choices, cudaStream_t stream) {
  return std::visit(
      [&](const auto& p) { return LaunchChoice(p, variant, operands, context, choices, stream); }, problem);
}

absl::Status RecordTime(const TimingEvents* timing, std::size_t index, cudaStream_t stream) {
  if (timing == nullptr) return absl::OkStatus();
  cudaStreamCaptureStatus capturing = cudaStreamCaptureStatusNone;
  RETURN_IF_ERROR(ToStatus(cudaStreamIsCapturing(stream, &capturing), "recording a timing event"));
  // External: can be read outside the graph.
  const unsigned flags =
      capturing == cudaStreamCaptureStatusNone ? cudaEventRecordDefault : cudaEventRecordExternal;
  return ToStatus(cudaEventRecordWithFlags(timing->events[index].get(), stream, flags),
                  "recording a timing event");
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
                          std::vector<std::string_view>& variants) {
  variants.clear();
  if (launch.timing != nullptr) {
    RETURN_IF_ERROR(RecordTime(launch.timing, TimingEvents::kAfterCopyIn, launch.stream));
    // After a copy an event would come long before the kernel behind it: see EventOverhead.
    RETURN_IF_ERROR(ToStatus(gpu::LaunchEmptyKernel(1, launch.stream), "timing a kernel"));
    RETURN_IF_ERROR(RecordTime(launch.timing, TimingEvents::BeforeStep(0), launch.stream));
  }
  for (std::size_t i = 0; i < program.steps.size(); ++i) {
    const Step& step = program.steps[i];
    Operands operands = addresses.OperandsOf(step, i);
    operands.bad_index = launch.bad_index;
    operands.bad_index.step = static_cast<std::int32_t>(i);
    ASSIGN_OR_RETURN(
        const std::string_view name,
        LaunchProblem(step.problem, step.variant, operands, launch.context, launch.choices, launch.stream));
    variants.push_back(name);
    RETURN_IF_ERROR(RecordTime(launch.timing, TimingEvents::AfterStep(i), launch.stream));
  }
  return absl::OkStatus();
}

std::size_t PoolBytes(const Program& program, const MemoryPlan& plan, const DeviceTraits& traits,
                      std::size_t lane_bytes, const CutOptions& cutting) {
  // Blocks of few different sizes leave fewer fragments behind that nobody can use.
  constexpr std::size_t kUnit = std::size_t{2} << 20;
  const std::size_t needed = BlockLayout(plan).workspace + WorkspaceBytes(program, traits);
  if (needed <= lane_bytes) return 0;
  // Each piece begins at an aligned address, in the input and in the output.
  return AlignUp(needed + 2 * cutting.max_pieces * kTensorAlignment, kUnit);
}

std::size_t WorkspaceBytes(const Problem& problem, const DeviceTraits& traits, std::string_view variant) {
  std::size_t bytes = 0;
  std::visit(
      [&](const auto& p) {
        // A sort that names no variant runs by the rules alone, and the others need gigabytes more than some.
        if (std::is_same_v<decltype(p), const SortProblem&> && variant.empty()) {
          bytes = Choose(p, {}, traits, Operands()).row->workspace_bytes(p, traits);
          return;
        }
        for (const auto& row : CudaTable(p)) {
          if (Suits(row, p, traits)) bytes = std::max(bytes, row.workspace_bytes(p, traits));
        }
      },
      problem);
  return bytes;
}

std::size_t WorkspaceBytes(const Program& program, const DeviceTraits& traits) {
  std::size_t bytes = 0;
  for (const Step& step : program.steps) {
    bytes = std::max(bytes, WorkspaceBytes(step.problem, traits, step.variant));
  }
  return bytes;
}

absl::StatusOr<CudaGraph> CudaGraph::Capture(const StagedProgram& staged, const DeviceImage& image,
                                             const StepLaunch& launch,
                                             std::vector<std::string_view>& variants) {
  cudaStream_t stream = launch.stream;
  CudaGraph result;
  result.device_input_ = image.input;
  result.device_output_ = image.output;
  result.input_ = staged.input.data();
  result.output_ = staged.output.data();
  ASSIGN_OR_RETURN(gpu::Capture capture, gpu::Capture::Begin(stream));
  RETURN_IF_ERROR(RecordTime(launch.timing, TimingEvents::kBeforeCopyIn, stream));
  RETURN_IF_ERROR(CopyIn(staged, image, stream));
  if (!staged.input.empty()) {
    ASSIGN_OR_RETURN(result.h2d_, capture.LastNode());
  }
  RETURN_IF_ERROR(EnqueueSteps(*staged.program, image.addresses, launch, variants));
  RETURN_IF_ERROR(CopyOut(staged, image, stream));
  if (!staged.output.empty()) {
    ASSIGN_OR_RETURN(result.d2h_, capture.LastNode());
  }
  RETURN_IF_ERROR(
      RecordTime(launch.timing, TimingEvents::AfterCopyOut(staged.program->steps.size()), stream));
  ASSIGN_OR_RETURN(result.graph_, std::move(capture).End());
  RETURN_IF_ERROR(ToStatus(cudaGraphGetNodes(result.graph_.get(), nullptr, &result.nodes_),
                           "counting the nodes of a graph"));
  const nvtx::Range range(nvtx::Name::kInstantiateGraph);
  ASSIGN_OR_RETURN(result.exec_, gpu::Instantiate(result.graph_));
  RETURN_IF_ERROR(ToStatus(cudaGraphUpload(result.exec_.get(), stream), "uploading a graph"));
  return result;
}

absl::Status CudaGraph::Launch(const StagedProgram& staged, cudaStream_t stream) {
  const nvtx::Range range(nvtx::Name::kLaunchGraph);
  // An exec whose nodes have changed is uploaded again at its launch, so they change only when they must:
  // a client that sends one request after the other meets the same slots.
  if (h2d_ != nullptr && staged.input.data() != input_) {
    RETURN_IF_ERROR(
        ToStatus(cudaGraphExecMemcpyNodeSetParams1D(exec_.get(), h2d_, device_input_, staged.input.data(),
                                                    staged.input.size(), cudaMemcpyHostToDevice),
                 "pointing the copy in at its slot"));
    input_ = staged.input.data();
  }
  if (d2h_ != nullptr && staged.output.data() != output_) {
    RETURN_IF_ERROR(
        ToStatus(cudaGraphExecMemcpyNodeSetParams1D(exec_.get(), d2h_, staged.output.data(), device_output_,
                                                    staged.output.size(), cudaMemcpyDeviceToHost),
                 "pointing the copy out at its slot"));
    output_ = staged.output.data();
  }
  return ToStatus(cudaGraphLaunch(exec_.get(), stream), "launching a graph");
}

}  // namespace warpline
