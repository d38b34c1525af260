#include "tests/kernels/conformance.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <optional>
#include <sstream>

#include "absl/base/internal/raw_logging.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "kernels/align.h"
#include "kernels/operand_sizes.h"
#include "kernels/status_macros.h"
#include "tests/testing/index_reference.h"
#include "tests/testing/map_reference.h"
#include "tests/testing/order_reference.h"
#include "tests/testing/random_tensor.h"
#include "tests/testing/reference.h"
#include "tests/testing/shapes.h"
#include "tests/testing/tolerance.h"

namespace warpline::testing {
namespace {

// Fills the outputs and what is behind them: a number that no test expects, -4.3e8 in f32.
constexpr std::byte kPoison{0xCD};
// Fills the memory around the inputs, and what is behind it: NaN in every float format. Not the same as
// kPoison, or a copy that runs on from the inputs to behind the outputs would leave no trace.
constexpr std::byte kUnread{0xFF};
// Poisoned bytes behind them. Small overruns are the likely ones.
constexpr std::size_t kGuardBytes = 4096;
// No launch here takes a second; the rest is for sanitizers and a busy machine.
constexpr absl::Duration kLaunchTimeout = absl::Minutes(2);

TensorSpec Spec(DType dtype, const Shape& shape, std::int64_t elements) {
  return {dtype, shape, static_cast<std::size_t>(elements) * SizeOf(dtype)};
}

void AddOperand(Program& program, const TensorSpec& spec) {
  program.steps.back().inputs.push_back(static_cast<int>(program.tensors.size()));
  program.tensors.push_back(spec);
}

void AddTensors(Program& program, const TransposeProblem& p) {
  AddOperand(program, Spec(p.dtype, p.shape, StorageElements(p.shape, p.row_stride)));
  program.tensors.push_back(Spec(p.dtype, p.OutputShape(), p.shape.Count()));
}

void AddTensors(Program& program, const GemmProblem& p) {
  const DType out = p.OutDType();
  AddOperand(program, Spec(p.dtype, {ElementsOfA(p)}, ElementsOfA(p)));
  AddOperand(program, Spec(p.dtype, {ElementsOfB(p)}, ElementsOfB(p)));
  if (p.has_c) AddOperand(program, Spec(out, {ElementsOfC(p)}, ElementsOfC(p)));
  if (p.has_bias) AddOperand(program, Spec(out, {p.n}, p.n));
  const std::int64_t count = p.batch.Count();
  program.tensors.push_back(Spec(out, {count, p.m, p.n}, count * p.m * p.n));
}

void AddTensors(Program& program, const ReduceProblem& p) {
  AddOperand(program, Spec(p.dtype, p.shape, StorageElements(p.shape, p.row_stride)));
  const Shape y_shape = p.OutputShape(false);
  program.tensors.push_back(Spec(p.OutDType(), y_shape, y_shape.Count()));
}

void AddTensors(Program& program, const MapProblem& p) {
  for (const MapInput& input : p.inputs) {
    const std::int64_t elements = StorageElements(p.shape, input.strides);
    AddOperand(program, Spec(input.dtype, {elements}, elements));
    program.steps.back().input_offsets.push_back(
        static_cast<std::size_t>(ElementsBefore(p.shape, input.strides)) * SizeOf(input.dtype));
  }
  const std::int64_t elements = StorageElements(p.shape, p.OutStrides());
  for (int i = 0; i < p.ResultCount(); ++i) {
    program.tensors.push_back(Spec(p.ResultDType(i), p.shape, elements));
  }
  program.steps.back().output_offset =
      static_cast<std::size_t>(ElementsBefore(p.shape, p.OutStrides())) * SizeOf(p.OutDType());
}

// Dense operands, and a dense result.
template <typename ProblemT>
void AddTensors(Program& program, const ProblemT& p) {
  for (const OperandSize& size : InputSizes(p)) {
    AddOperand(program, Spec(size.dtype, {size.count}, size.count));
  }
  const OperandSize out = OutputSize(p);
  program.tensors.push_back(Spec(out.dtype, {out.count}, out.count));
  if constexpr (std::is_same_v<ProblemT, TakeProblem>) {
    program.steps.back().input_offsets = {static_cast<std::size_t>(ElementsBeforeFirst(p)) * SizeOf(p.dtype),
                                          0};
  }
  if constexpr (std::is_same_v<ProblemT, SortProblem>) {
    if (p.ResultCount() > 1) program.tensors.push_back(Spec(DType::kI64, {out.count}, out.count));
  }
  if constexpr (std::is_same_v<ProblemT, CompressProblem>) {
    program.tensors.push_back(Spec(DType::kI64, {}, 1));
  }
}

bool IsPoison(std::span<const std::byte> bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](std::byte b) { return b == kPoison; });
}

// The first element that differs, in words, or nothing.
std::optional<std::string> FindDifference(DType dtype, const Bytes& got, const Bytes& want) {
  if (got.size() != want.size()) return absl::StrCat("got ", got.size(), " bytes, want ", want.size());
  // Sanitizers look at each byte that std::equal reads, and at memcmp once.
  if (got.empty() || std::memcmp(got.data(), want.data(), got.size()) == 0) return std::nullopt;
  const auto at = std::mismatch(got.begin(), got.end(), want.begin()).first - got.begin();
  const std::int64_t index = at / static_cast<std::int64_t>(SizeOf(dtype));
  std::ostringstream message;
  message.precision(std::numeric_limits<double>::max_digits10);
  message << "the first wrong element is [" << index << "]: got " << Load(dtype, got, index) << ", want "
          << Load(dtype, want, index) << ", bit for bit (byte " << at << ": " << std::hex
          << std::to_integer<int>(got[at]) << ", want " << std::to_integer<int>(want[at]) << ")";
  return message.str();
}

std::optional<std::string> Compare(const TransposeProblem& p, const std::vector<StepScalars>&,
                                   const std::vector<Bytes>& in, const std::vector<Bytes>& got) {
  return FindDifference(p.dtype, got[0], Transpose(p, in[0]));
}

std::optional<std::string> Compare(const GemmProblem& p, const std::vector<StepScalars>& scalars,
                                   const std::vector<Bytes>& in, const std::vector<Bytes>& got) {
  const Reference want =
      Gemm(p, scalars[0], in[0], in[1], p.has_c ? in[2] : Bytes(), p.has_bias ? in[p.BiasIndex()] : Bytes());
  return FindWorstError(want, Tolerance(p, want), got[0]);
}

std::optional<std::string> Compare(const ReduceProblem& p, const std::vector<StepScalars>&,
                                   const std::vector<Bytes>& in, const std::vector<Bytes>& got) {
  const Reference want = Reduce(p, in[0]);
  return FindWorstError(want, Tolerance(p, want), got[0]);
}

// The elements of a result that need not be dense, in their order.
Bytes Gathered(const MapProblem& p, const Bytes& got) {
  const Strides strides = p.OutStrides();
  const auto size = static_cast<std::int64_t>(SizeOf(p.OutDType()));
  Bytes elements;
  PerAxis<std::int64_t> index{};
  for (std::int64_t element = 0; element < p.shape.Count(); ++element) {
    std::int64_t at = ElementsBefore(p.shape, strides);
    for (int axis = 0; axis < p.shape.rank; ++axis) {
      at += index[static_cast<std::size_t>(axis)] * strides[axis];
    }
    elements.insert(elements.end(), got.begin() + at * size, got.begin() + (at + 1) * size);
    for (int axis = p.shape.rank - 1; axis >= 0; --axis) {
      if (++index[static_cast<std::size_t>(axis)] < p.shape[axis]) break;
      index[static_cast<std::size_t>(axis)] = 0;
    }
  }
  return elements;
}

std::optional<std::string> Compare(const MapProblem& p, const std::vector<StepScalars>& scalars,
                                   const std::vector<Bytes>& in, const std::vector<Bytes>& got) {
  for (int i = 0; i < p.ResultCount(); ++i) {
    MapProblem one = p;  // the result alone, as that of the last node
    one.nodes.resize(p.ResultNode(i) + 1);
    one.further.clear();
    const MapAnswer answer = Map(one, scalars, in);
    const auto error =
        FindWorstError(answer.want, answer.bounds, Gathered(one, got[static_cast<std::size_t>(i)]));
    if (error.has_value()) return absl::StrCat("result ", i, ": ", *error);
  }
  return std::nullopt;
}

std::optional<std::string> Compare(const TakeProblem& p, const std::vector<StepScalars>&,
                                   const std::vector<Bytes>& in, const std::vector<Bytes>& got) {
  return FindDifference(p.dtype, got[0], Take(p, in));
}

std::optional<std::string> Compare(const PutProblem& p, const std::vector<StepScalars>&,
                                   const std::vector<Bytes>& in, const std::vector<Bytes>& got) {
  return FindDifference(p.dtype, got[0], Put(p, in));
}

std::optional<std::string> Compare(const CompressProblem& p, const std::vector<StepScalars>&,
                                   const std::vector<Bytes>& in, const std::vector<Bytes>& got) {
  const Bytes want = Compress(p, in);
  const auto count = static_cast<std::int64_t>(Load(DType::kI64, got[1], 0));
  const auto taken = std::ssize(in[1]) - std::count(in[1].begin(), in[1].end(), std::byte{0});
  if (count != taken) return absl::StrCat("counts ", count, ", want ", taken);
  return FindDifference(p.dtype, Bytes(got[0].begin(), got[0].begin() + std::ssize(want)), want);
}

std::optional<std::string> Compare(const ScanProblem& p, const std::vector<StepScalars>&,
                                   const std::vector<Bytes>& in, const std::vector<Bytes>& got) {
  const Reference want = Scan(p, in[0]);
  return FindWorstError(want, Tolerance(p, want), got[0]);
}

std::optional<std::string> Compare(const SortProblem& p, const std::vector<StepScalars>&,
                                   const std::vector<Bytes>& in, const std::vector<Bytes>& got) {
  std::vector<Bytes> want = Sort(p, in[0]), results = got;
  OrderBetweenKth(p, want);
  OrderBetweenKth(p, results);
  for (std::size_t i = 0; i < want.size(); ++i) {
    const DType dtype = i == 0 && p.values ? p.dtype : DType::kI64;
    if (auto difference = FindDifference(dtype, results[i], want[i])) {
      return absl::StrCat("result ", i, ": ", *difference);
    }
  }
  return std::nullopt;
}

std::optional<std::string> Compare(const SearchProblem& p, const std::vector<StepScalars>&,
                                   const std::vector<Bytes>& in, const std::vector<Bytes>& got) {
  return FindDifference(DType::kI64, got[0], Search(p, in));
}

}  // namespace

Harness::Harness(Backend& backend) : backend_(backend), lane_(backend.CreateLane(0)) {}

absl::Status Harness::Reserve(std::size_t bytes) {
  if (memory_.bytes().size() >= bytes) return absl::OkStatus();
  // Page-locked memory is slow to get: take it once, for nearly all problems.
  ASSIGN_OR_RETURN(memory_, backend_.AllocateHost(std::max(bytes, std::size_t{16} << 20)));
  return absl::OkStatus();
}

bool Harness::NextIsShared() {
  static const bool all = std::getenv("WARPLINE_CONFORMANCE_SHARED") != nullptr;
  return ++problems_ % 4 == 0 || all;
}

absl::StatusOr<Outcome> Harness::Run(const Program& program, const std::vector<Bytes>& inputs, bool shared) {
  RETURN_IF_ERROR(lane_.status());
  OwnMemory own;
  if (shared) {
    for (int i = 0; i < program.num_inputs; ++i) own.shared.push_back(i);
    own.shared.insert(own.shared.end(), program.outputs.begin(), program.outputs.end());
  }
  const MemoryPlan plan = PlanMemory(program, own);
  ASSIGN_OR_RETURN(const CompiledProgram compiled, backend_.Compile(program, plan));
  Bindings bindings = MakeBindings(plan);
  // The input area, a guard, the output area, a guard; then tensors with memory of their own, which begin at
  // an element that is not aligned, inputs first, with a guard behind each of the two kinds.
  std::vector<std::size_t> at(program.tensors.size());
  const auto aligned = [](std::size_t offset) { return AlignUp(offset, kTensorAlignment); };
  const auto place = [&](int tensor, std::size_t& end) {
    if (plan.tensors[tensor].area != Area::kShared) return;
    at[tensor] = aligned(end) + SizeOf(program.tensors[tensor].dtype);
    end = at[tensor] + program.tensors[tensor].bytes;
  };
  std::size_t inputs_end = plan.input_bytes;
  for (int i = 0; i < program.num_inputs; ++i) place(i, inputs_end);
  const std::size_t output_at = aligned(inputs_end + kGuardBytes);
  std::size_t outputs_end = output_at + plan.output_bytes;
  for (const int tensor : program.outputs) place(tensor, outputs_end);
  const std::size_t total = outputs_end + kGuardBytes;
  RETURN_IF_ERROR(Reserve(total));
  const std::span<std::byte> memory = memory_.bytes().first(total);
  for (Binding& binding : bindings) {
    const std::span<std::byte> bytes =
        memory.subspan(at[binding.tensor], program.tensors[binding.tensor].bytes);
    if (binding.staged.area == Area::kInput) at[binding.tensor] = binding.staged.offset;
    if (binding.staged.area == Area::kOutput) at[binding.tensor] = output_at + binding.staged.offset;
    if (binding.staged.area == Area::kShared) {
      binding.memory = Buffer(bytes, {.kind = Place::Kind::kPinned}, nullptr);
    }
  }
  std::fill_n(memory.begin(), output_at, kUnread);
  std::fill(memory.begin() + output_at, memory.end(), kPoison);
  for (int i = 0; i < program.num_inputs; ++i) {
    std::copy(inputs[i].begin(), inputs[i].end(), memory.begin() + static_cast<std::ptrdiff_t>(at[i]));
  }
  for (std::size_t i = 0; i < program.steps.size(); ++i) {
    std::vector<StepScalars> scalars = program.steps[i].scalars;
    scalars.resize(static_cast<std::size_t>(ScalarCount(program.steps[i].problem)));
    if (scalars.empty()) continue;
    std::memcpy(memory.data() + plan.scalars[i], scalars.data(), scalars.size() * sizeof(StepScalars));
  }
  const Bytes before(memory.begin(), memory.begin() + output_at);

  StagedProgram staged;
  staged.program = &program;
  staged.plan = &plan;
  staged.compiled = compiled.program.get();
  staged.bindings = bindings;
  staged.input = memory.first(plan.input_bytes);
  staged.output = memory.subspan(output_at, plan.output_bytes);
  LaunchReport report;
  absl::Notification done;
  (*lane_)->Launch(staged, [&](LaunchReport r) {
    report = std::move(r);
    done.Notify();
  });
  if (!done.WaitForNotificationWithTimeout(kLaunchTimeout)) {
    // The launch still owns this stack frame: there is no way to go on.
    ABSL_RAW_LOG(FATAL, "Lane::Launch did not complete");
  }
  RETURN_IF_ERROR(report.status);
  if (std::memcmp(before.data(), memory.data(), before.size()) != 0) {
    return absl::DataLossError("the launch wrote into its inputs or behind them");
  }
  if (!IsPoison(memory.last(kGuardBytes))) {
    return absl::DataLossError("the launch wrote behind the outputs");
  }
  Outcome outcome;
  for (int tensor : program.outputs) {
    const auto first = memory.begin() + static_cast<std::ptrdiff_t>(at[tensor]);
    outcome.outputs.emplace_back(first, first + static_cast<std::ptrdiff_t>(program.tensors[tensor].bytes));
  }
  for (std::string_view variant : report.variants) outcome.variants.emplace_back(variant);
  return outcome;
}

Program MakeProgram(const Problem& problem, std::string_view variant, std::vector<StepScalars> scalars) {
  Program program;
  scalars.resize(static_cast<std::size_t>(ScalarCount(problem)));
  program.steps.push_back(
      {.problem = problem, .variant = std::string(variant), .inputs = {}, .scalars = std::move(scalars)});
  std::visit([&](const auto& p) { AddTensors(program, p); }, problem);
  program.num_inputs = static_cast<int>(program.steps[0].inputs.size());
  program.steps[0].output = program.num_inputs;
  for (auto tensor = program.num_inputs; tensor < static_cast<int>(program.tensors.size()); ++tensor) {
    program.outputs.push_back(tensor);
    if (tensor > program.num_inputs) program.steps[0].further.push_back(tensor);
  }
  return program;
}

std::string Check(Harness& harness, const Problem& problem, std::string_view variant,
                  const std::vector<Bytes>& inputs, const std::vector<StepScalars>& scalars, bool repeat) {
  const std::string what =
      absl::StrCat(Describe(problem), " by ", variant.empty() ? "choice" : std::string(variant), ": ");
  const Program program = MakeProgram(problem, variant, scalars);
  const bool shared = harness.NextIsShared();
  const absl::StatusOr<Outcome> outcome = harness.Run(program, inputs, shared);
  if (!outcome.ok()) return what + outcome.status().ToString();
  if (outcome->variants.size() != 1 || (!variant.empty() && outcome->variants[0] != variant)) {
    return absl::StrCat(what, "ran ", outcome->variants.empty() ? "nothing" : outcome->variants[0]);
  }
  const auto error =
      std::visit([&](const auto& p) { return Compare(p, scalars, inputs, outcome->outputs); }, problem);
  if (error.has_value()) return absl::StrCat(what, outcome->variants[0], ": ", *error);
  if (repeat) {
    const absl::StatusOr<Outcome> again = harness.Run(program, inputs, shared);
    if (!again.ok()) return absl::StrCat(what, "the second time: ", again.status().ToString());
    // Behind the rows that a mask takes anything may lie.
    const bool same =
        std::holds_alternative<CompressProblem>(problem)
            ? !std::visit([&](const auto& p) { return Compare(p, scalars, inputs, again->outputs); }, problem)
                   .has_value()
            : again->outputs == outcome->outputs;
    if (!same) return what + "other bits the second time";
  }
  return "";
}

std::vector<Bytes> RandomGemmOperands(const GemmProblem& p, std::uint64_t seed) {
  const auto matrix = [&](DType dtype, std::int64_t elements, std::int64_t cols, std::int64_t ld,
                          std::uint64_t salt) {
    Bytes data = RandomTensor(dtype, elements, 4 * seed + salt);
    const DType part = PartOf(dtype);
    const std::int64_t parts = IsComplex(dtype) ? 2 : 1;
    const long double unread = IsFloat(part) ? std::numeric_limits<long double>::quiet_NaN() : 99;
    for (std::int64_t i = 0; i < parts * elements; ++i) {
      if (i / parts % ld >= cols) Store(part, unread, data, i);
    }
    return data;
  };
  std::vector<Bytes> operands = {matrix(p.dtype, ElementsOfA(p), p.trans_a ? p.m : p.k, p.lda, 0),
                                 matrix(p.dtype, ElementsOfB(p), p.trans_b ? p.k : p.n, p.ldb, 1)};
  if (p.has_c) operands.push_back(matrix(p.OutDType(), ElementsOfC(p), p.n, p.ldc, 2));
  if (p.has_bias) operands.push_back(RandomTensor(p.OutDType(), p.n, 4 * seed + 3));
  return operands;
}

}  // namespace warpline::testing
