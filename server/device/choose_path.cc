#include "server/device/choose_path.h"

#include <variant>

#include "kernels/reads_twice.h"
#include "kernels/transpose/canonical.h"

namespace warpline {
namespace {

enum class Access { kOnce, kScattered, kOften };

// A warp should read or write at least one sector at a time over the bus.
constexpr std::int64_t kSectorBytes = 32;

Access AccessOf(const TransposeProblem& problem) {
  const CanonicalTranspose transpose = Canonicalize(problem);
  // An identity only copies from slot to slot, which the host can do itself.
  if (transpose.IsIdentity()) return Access::kScattered;
  const int inner_in = transpose.rank - 1;
  const int inner_out = transpose.perm[transpose.rank - 1];
  const std::int64_t least = kSectorBytes / static_cast<std::int64_t>(SizeOf(problem.dtype));
  const bool wide = transpose.in_strides[inner_in] == 1 && transpose.dims[inner_in] >= least &&
                    transpose.dims[inner_out] >= least;
  return wide ? Access::kOnce : Access::kScattered;
}

Access AccessOf(const ReduceProblem& problem) {
  return HasDenseRows(problem.shape, problem.row_stride) ? Access::kOnce : Access::kScattered;
}

Access AccessOf(const GemmProblem&) { return Access::kOften; }
Access AccessOf(const TakeProblem&) { return Access::kScattered; }
Access AccessOf(const PutProblem&) { return Access::kOften; }
Access AccessOf(const ScanProblem&) { return Access::kOften; }
Access AccessOf(const SortProblem&) { return Access::kOften; }
Access AccessOf(const SearchProblem&) { return Access::kOften; }
Access AccessOf(const CompressProblem&) { return Access::kOften; }

// An element of a broadcast operand is read once for each result that uses it. An input that is broadcast
// along every axis is read once per block.
Access AccessOf(const MapProblem& problem) {
  const Strides dense = RowMajorStrides(problem.shape);
  if (problem.OutStrides() != dense) return Access::kScattered;
  for (const MapInput& input : problem.inputs) {
    bool is_dense = true, is_one = true;
    for (int i = 0; i < problem.shape.rank; ++i) {
      if (problem.shape[i] == 1) continue;
      is_dense = is_dense && input.strides[i] == dense[i];
      is_one = is_one && input.strides[i] == 0;
    }
    if (!is_dense && !is_one) return Access::kScattered;
  }
  return Access::kOnce;
}

std::size_t MostMappedBytes(const Problem& problem, bool alone, const PathLimits& limits) {
  if (ReadsTwice(OpOf(problem))) return 0;  // not for speed: a client could change bytes between the reads
  switch (std::visit([](const auto& p) { return AccessOf(p); }, problem)) {
    case Access::kOnce:
      return alone ? limits.mapped_bytes_alone : limits.mapped_bytes;
    case Access::kScattered:
      return limits.mapped_scattered_bytes;
    case Access::kOften:
      return 0;
  }
  return 0;
}

}  // namespace

Path ChoosePath(const Program& program, const MemoryPlan& plan, const PathQuestion& question,
                const PathLimits& limits) {
  const bool resident = plan.Has(Area::kResident);
  if (program.steps.size() != 1) return Path::kCopied;
  if (resident && !plan.Travels() && question.can_map && question.fits_lane) return Path::kMapped;
  const Step& step = program.steps.front();
  if (!step.variant.empty()) return Path::kCopied;
  const std::size_t bytes = plan.TravellingBytes();
  if (question.can_map && question.fits_lane &&
      bytes <= MostMappedBytes(step.problem, question.alone, limits)) {
    return Path::kMapped;
  }
  if (question.alone && question.can_cut && !resident && bytes >= limits.cut_bytes) return Path::kBlocks;
  return Path::kCopied;
}

}  // namespace warpline
