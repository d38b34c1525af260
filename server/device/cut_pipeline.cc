#include "server/device/cut_pipeline.h"

#include "kernels/gpu/status.h"
#include "kernels/status_macros.h"

namespace warpline {
namespace {

using gpu::ToStatus;

absl::Status CopyIn(const CutPipeline::Launch& launch, const PieceCopy& copy, cudaStream_t stream) {
  std::byte* const to = launch.arena.data() + copy.device;
  const std::byte* const from = launch.input.data() + copy.host;
  return ToStatus(copy.rows == 1 ? cudaMemcpyAsync(to, from, copy.width, cudaMemcpyHostToDevice, stream)
                                 : cudaMemcpy2DAsync(to, copy.width, from, copy.host_pitch, copy.width,
                                                     copy.rows, cudaMemcpyHostToDevice, stream),
                  "copying a piece in");
}

absl::Status CopyOut(const CutPipeline::Launch& launch, const PieceCopy& copy, cudaStream_t stream) {
  std::byte* const to = launch.output.data() + copy.host;
  const std::byte* const from = launch.arena.data() + copy.device;
  return ToStatus(copy.rows == 1 ? cudaMemcpyAsync(to, from, copy.width, cudaMemcpyDeviceToHost, stream)
                                 : cudaMemcpy2DAsync(to, copy.host_pitch, from, copy.width, copy.width,
                                                     copy.rows, cudaMemcpyDeviceToHost, stream),
                  "copying a piece out");
}

// Makes all work that is enqueued on `second` from now on wait for the work that is already on `first`.
absl::Status Order(cudaStream_t first, cudaEvent_t event, cudaStream_t second) {
  if (first == second) return absl::OkStatus();
  RETURN_IF_ERROR(ToStatus(cudaEventRecord(event, first), "ordering streams"));
  return ToStatus(cudaStreamWaitEvent(second, event, cudaEventWaitDefault), "ordering streams");
}

}  // namespace

absl::StatusOr<CutPipeline> CutPipeline::Create() {
  CutPipeline pipeline;
  ASSIGN_OR_RETURN(pipeline.in_, gpu::CreateStream());
  ASSIGN_OR_RETURN(pipeline.out_, gpu::CreateStream());
  ASSIGN_OR_RETURN(pipeline.copied_in_, gpu::CreateEvent());
  ASSIGN_OR_RETURN(pipeline.computed_, gpu::CreateEvent());
  return pipeline;
}

absl::StatusOr<std::string_view> CutPipeline::Enqueue(const Launch& launch) {
  const cudaStream_t in = launch.pipelined ? in_.get() : launch.kernels;
  const cudaStream_t out = launch.pipelined ? out_.get() : launch.kernels;
  std::string_view variant;
  RETURN_IF_ERROR(RecordTime(launch.timing, 0, in));
  const auto first = static_cast<std::size_t>(launch.part), step = static_cast<std::size_t>(launch.parts);
  for (std::size_t i = first; i < launch.plan.cutting->pieces.size(); i += step) {
    const Piece& piece = launch.plan.cutting->pieces[i];
    RETURN_IF_ERROR(CopyIn(launch, piece.in, in));
    RETURN_IF_ERROR(Order(in, copied_in_.get(), launch.kernels));
    RETURN_IF_ERROR(RecordTime(launch.timing, 4 + 2 * i, launch.kernels));
    Operands operands;
    operands.in[0] = launch.arena.data() + piece.in.device;
    operands.out = launch.arena.data() + piece.out.device;
    ASSIGN_OR_RETURN(variant, LaunchPiece(piece.problem, launch.plan.ChoiceOfPiece(i), operands,
                                          launch.context, launch.kernels));
    RETURN_IF_ERROR(RecordTime(launch.timing, 5 + 2 * i, launch.kernels));
    RETURN_IF_ERROR(Order(launch.kernels, computed_.get(), out));
    if (i == first) RETURN_IF_ERROR(RecordTime(launch.timing, 2, out));
    RETURN_IF_ERROR(CopyOut(launch, piece.out, out));
  }
  RETURN_IF_ERROR(RecordTime(launch.timing, 1, in));
  RETURN_IF_ERROR(RecordTime(launch.timing, 3, out));
  return variant;
}

void CutPipeline::Drain() {
  cudaStreamSynchronize(in_.get());
  cudaStreamSynchronize(out_.get());
}

}  // namespace warpline
