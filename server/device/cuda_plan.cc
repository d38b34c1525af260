#include "server/device/cuda_plan.h"

#include <algorithm>
#include <cstdint>
#include <tuple>
#include <type_traits>
#include <utility>

#include "kernels/align.h"
#include "server/plan/address_table.h"

namespace warpline {
namespace {

// Returns distinct placeholder addresses: only their alignment matters.
AddressTable AlignedTable(const MemoryPlan& memory) {
  AddressTable table(memory);
  for (std::size_t i = 0; i < table.tensors.size(); ++i) {
    table.tensors[i] = reinterpret_cast<std::byte*>((i + 1) * kTensorAlignment);
  }
  return table;
}

StepChoice ChooseFor(const Step& step, const Operands& operands, const DeviceTraits& traits) {
  return std::visit(
      [&](const auto& problem) -> StepChoice { return Choose(problem, step.variant, traits, operands); },
      step.problem);
}

// Returns the workspace that the choice needs. A library may refuse a product at its launch, so the workspace
// is also enough for the next row, unless the step names a variant.
std::size_t WorkspaceOf(const Step& step, const StepChoice& choice, const DeviceTraits& traits) {
  return std::visit(
      [&]<typename ProblemT>(const ProblemT& p) -> std::size_t {
        const auto& first = std::get<CudaChoice<ProblemT>>(choice);
        if (first.row == nullptr) return 0;
        std::size_t bytes = first.row->workspace_bytes(p, traits);
        if (std::is_same_v<ProblemT, GemmProblem> && step.variant.empty()) {
          const CudaChoice<ProblemT> next = ChooseAfter(first, p, traits);
          if (next.row != nullptr) bytes = std::max(bytes, next.row->workspace_bytes(p, traits));
        }
        return bytes;
      },
      step.problem);
}

// Returns the heap memory that a choice uses.
std::size_t HeapBytes(const StepChoice& any) {
  const auto* map = std::get_if<CudaChoice<MapProblem>>(&any);
  const auto* plan = map == nullptr ? nullptr : std::get_if<MapPlan>(&map->plan.arguments);
  if (plan == nullptr) return 0;
  return plan->code.instructions.capacity() * sizeof(MapInstruction) +
         plan->code.uniforms.capacity() * sizeof(MapUniform) +
         plan->code.results.capacity() * sizeof(std::uint16_t);
}

// Returns the bytes of the device's pool that a program needs; `workspace` is the maximum over its steps.
// Returns 0 if a lane can run the program in its own memory. The bytes are also enough for the pieces of
// CutProgram.
std::size_t PoolBytes(const MemoryPlan& memory, std::size_t workspace, const CudaPlanOptions& options) {
  // Few different block sizes leave fewer fragments that are too small to use.
  constexpr std::size_t kUnit = std::size_t{2} << 20;
  const std::size_t needed = BlockLayout(memory).workspace + workspace;
  if (needed <= options.lane_bytes) return 0;
  // Each piece begins at an aligned address, in the input and in the output.
  return AlignUp(needed + 2 * options.cutting.max_pieces * kTensorAlignment, kUnit);
}

void ChoosePaths(const Program& program, const MemoryPlan& memory, const CudaKind& kind,
                 std::size_t device_bytes, const CudaPlanOptions& options, CudaPlan& plan) {
  if (!memory.Has(Area::kResident) && memory.TravellingBytes() >= options.paths.cut_bytes) {
    plan.cutting = CutProgram(program, memory, std::max(options.lane_bytes, device_bytes), options.cutting);
  }
  PathQuestion question{.can_map = kind.uses_host_pointers,
                        .can_cut = plan.cutting.has_value(),
                        .fits_lane = device_bytes == 0};
  plan.among_others = ChoosePath(program, memory, question, options.paths);
  question.alone = true;
  plan.alone = ChoosePath(program, memory, question, options.paths);
  if (plan.alone != Path::kBlocks && plan.among_others != Path::kBlocks) plan.cutting.reset();
}

// Chooses kernels for the pieces. Pieces begin at multiples of kTensorAlignment in the arena.
void ChooseForPieces(const DeviceTraits& traits, CudaPlan& plan) {
  std::vector<const TransposeProblem*> problems;
  for (const Piece& piece : plan.cutting->pieces) {
    const auto same = std::find_if(problems.begin(), problems.end(), [&](const TransposeProblem* problem) {
      return *problem == piece.problem;
    });
    plan.cut_of.push_back(static_cast<std::size_t>(same - problems.begin()));
    if (same != problems.end()) continue;
    problems.push_back(&piece.problem);
    plan.cuts.push_back(Choose(piece.problem, {}, traits, Operands()));
  }
}

}  // namespace

bool operator==(const CudaKind& a, const CudaKind& b) {
  const auto numbers = [](const CudaKind& kind) {
    return std::tuple(kind.traits.compute_capability, kind.traits.multiprocessors, kind.traits.has_cublaslt,
                      kind.traits.code_capability, kind.uses_host_pointers);
  };
  return numbers(a) == numbers(b);
}

std::size_t CudaProgram::bytes() const {
  std::size_t bytes = sizeof(CudaProgram);
  for (const CudaPlan& plan : plans) {
    bytes += sizeof(CudaPlan) + plan.steps.capacity() * sizeof(StepChoice) +
             plan.cuts.capacity() * sizeof(CudaChoice<TransposeProblem>);
    for (const StepChoice& choice : plan.steps) bytes += HeapBytes(choice);
    if (plan.cutting.has_value())
      bytes += plan.cutting->pieces.size() * (sizeof(Piece) + sizeof(std::size_t));
  }
  return bytes;
}

std::unique_ptr<CudaProgram> CompileForCuda(const Program& program, const MemoryPlan& memory,
                                            std::span<const CudaKind> kinds, std::size_t devices,
                                            const CudaPlanOptions& options) {
  auto compiled = std::make_unique<CudaProgram>(kinds.size(), devices);
  const AddressTable addresses = AlignedTable(memory);
  for (std::size_t k = 0; k < kinds.size(); ++k) {
    const DeviceTraits& traits = kinds[k].traits;
    std::size_t workspace = 0;
    compiled->plans[k].steps.reserve(program.steps.size());
    for (std::size_t i = 0; i < program.steps.size(); ++i) {
      const Step& step = program.steps[i];
      compiled->plans[k].steps.push_back(ChooseFor(step, addresses.OperandsOf(step, i), traits));
      workspace = std::max(workspace, WorkspaceOf(step, compiled->plans[k].steps.back(), traits));
    }
    // Any device may run the program, so the kind whose kernels need the most memory decides.
    compiled->device_bytes = std::max(compiled->device_bytes, PoolBytes(memory, workspace, options));
  }
  for (std::size_t k = 0; k < kinds.size(); ++k) {
    CudaPlan& plan = compiled->plans[k];
    ChoosePaths(program, memory, kinds[k], compiled->device_bytes, options, plan);
    if (plan.cutting.has_value()) ChooseForPieces(kinds[k].traits, plan);
  }
  return compiled;
}

VariantCost CostOf(const Problem& problem, const StepChoice& choice, const DeviceTraits& traits) {
  return std::visit(
      [&]<typename ProblemT>(const ProblemT& p) {
        const auto* row = std::get<CudaChoice<ProblemT>>(choice).row;
        return row != nullptr && row->cost != nullptr ? row->cost(p, traits) : VariantCost();
      },
      problem);
}

}  // namespace warpline
