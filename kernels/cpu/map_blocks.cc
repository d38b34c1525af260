// Maps on the CPU: the instructions run one after another on blocks of elements that stay in the L1 cache.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "kernels/cpu/float16.h"
#include "kernels/cpu/launchers.h"
#include "kernels/cpu/looks.h"
#include "kernels/cpu/real.h"
#include "kernels/cpu/vector_math.h"
#include "kernels/map/code.h"
#include "kernels/map/functions.h"
#include "kernels/map/walk.h"

namespace warpline::cpu {
namespace {

using map::ComplexNumber;

// Elements of a block: 4 KiB of f32 per slot, so that a map of ten live values fits into the L1 cache.
constexpr int kBlock = 1024;

template <NumberType kType>
using Number =
    std::tuple_element_t<static_cast<std::size_t>(kType),
                         std::tuple<std::int32_t, std::uint32_t, float, std::int64_t, std::uint64_t, double,
                                    ComplexNumber<float>, ComplexNumber<double>>>;

// The operands of an instruction, and the destination of its results, for one block.
struct Block {
  const void* from[3] = {};
  void* to = nullptr;
  int count = 0;
};

// Applies the function of an operation to numbers of one type. An instruction may write to its own operands:
// each element is read before it is written, and iterations are independent.
template <typename Function, int kOperands, typename T>
[[gnu::always_inline]] inline void ApplyTo(const Block& block) {
  const int count = block.count;  // a local variable, which stores cannot change
  const T* x = static_cast<const T*>(block.from[0]);
  if constexpr (kOperands == 1) {
    auto* to = static_cast<decltype(Function::Apply(T{}))*>(block.to);
#ifdef WARPLINE_HAS_VECTOR_MATH
    if constexpr (VectorMath<Function>::kHas && std::is_floating_point_v<T>)
      return ApplyToVectors<Function>(x, to, count);
#endif
#pragma GCC ivdep
    for (int i = 0; i < count; ++i) to[i] = Function::Apply(x[i]);
  } else if constexpr (kOperands == 2) {
    const T* y = static_cast<const T*>(block.from[1]);
    auto* to = static_cast<decltype(Function::Apply(T{}, T{}))*>(block.to);
#pragma GCC ivdep
    for (int i = 0; i < count; ++i) to[i] = Function::Apply(x[i], y[i]);
  } else {
    const T* y = static_cast<const T*>(block.from[1]);
    const T* z = static_cast<const T*>(block.from[2]);
    auto* to = static_cast<decltype(Function::Apply(T{}, T{}, T{}))*>(block.to);
#pragma GCC ivdep
    for (int i = 0; i < count; ++i) to[i] = Function::Apply(x[i], y[i], z[i]);
  }
}

// The same loops, compiled for every processor and for AVX2.
template <typename Function, int kOperands, typename T>
void ApplyNarrow(const Block& block) {
  ApplyTo<Function, kOperands, T>(block);
}
#ifdef WARPLINE_HAS_VECTOR_MATH
template <typename Function, int kOperands, typename T>
WARPLINE_AVX2 void ApplyWide(const Block& block) {
  ApplyTo<Function, kOperands, T>(block);
}
bool IsWide() { return VectorBytes() >= 32; }
#else
template <typename Function, int kOperands, typename T>
void ApplyWide(const Block& block) {
  ApplyTo<Function, kOperands, T>(block);
}
bool IsWide() { return false; }
#endif

struct Runner {
  void (*narrow)(const Block&) = nullptr;
  void (*wide)(const Block&) = nullptr;
};

template <MapOp kOp, typename Function, int kOperands, std::size_t... kType>
constexpr std::array<Runner, kNumberTypes> RunnersOf(std::index_sequence<kType...>) {
  const auto of = []<NumberType kOf>() -> Runner {
    if constexpr (HasFunction(kOp, kOf)) {
      return {&ApplyNarrow<Function, kOperands, Number<kOf>>, &ApplyWide<Function, kOperands, Number<kOf>>};
    }
    return {};
  };
  return {of.template operator()<static_cast<NumberType>(kType)>()...};
}

// The rows without a scalar function. They are never applied.
namespace none {
struct Constant {};
struct Cast {};
struct Where {};
struct Index {};
}  // namespace none
using namespace map;   // NOLINT(google-build-using-namespace): the functions, by the names of their rows
using namespace none;  // NOLINT(google-build-using-namespace)

// Indexed by operation and type.
constexpr std::array kRunners = {
#define WARPLINE_RUNNERS(identifier, name, operands, ...) \
  RunnersOf<MapOp::k##identifier, identifier, operands>(std::make_index_sequence<kNumberTypes>()),
    WARPLINE_MAP_OPERATIONS(WARPLINE_RUNNERS)
#undef WARPLINE_RUNNERS
};

// Calls f with std::type_identity of the number type.
template <typename F>
void VisitNumber(NumberType type, F&& f) {
  switch (type) {
    case NumberType::kI32:
      return f(std::type_identity<std::int32_t>());
    case NumberType::kU32:
      return f(std::type_identity<std::uint32_t>());
    case NumberType::kF32:
      return f(std::type_identity<float>());
    case NumberType::kI64:
      return f(std::type_identity<std::int64_t>());
    case NumberType::kU64:
      return f(std::type_identity<std::uint64_t>());
    case NumberType::kF64:
      return f(std::type_identity<double>());
    case NumberType::kC64:
      return f(std::type_identity<ComplexNumber<float>>());
    case NumberType::kC128:
      return f(std::type_identity<ComplexNumber<double>>());
  }
}

// Calls f with std::type_identity of the element type.
template <typename F>
void VisitElement(DType dtype, F&& f) {
  if (dtype == DType::kC64) return f(std::type_identity<ComplexNumber<float>>());
  if (dtype == DType::kC128) return f(std::type_identity<ComplexNumber<double>>());
  VisitReal(dtype, f);
}

// Converts an element to a number of its type.
template <typename T>
auto Widen(T x) {
  if constexpr (std::is_same_v<T, Bool>) {
    return std::uint32_t{x.byte != 0};
  } else if constexpr (kIsHalf<T>) {
    return static_cast<float>(x);
  } else if constexpr (std::is_integral_v<T> && sizeof(T) < 4) {
    return static_cast<std::conditional_t<std::is_signed_v<T>, std::int32_t, std::uint32_t>>(x);
  } else {
    return x;
  }
}

// Converts a number to an element of another type, by the rules of casts.
template <typename T, typename From>
T CastTo(From x) {
  if constexpr (kIsComplex<T> && kIsComplex<From>) {
    return {static_cast<decltype(T::re)>(x.re), static_cast<decltype(T::re)>(x.im)};
  } else if constexpr (kIsComplex<T>) {
    return {static_cast<decltype(T::re)>(x), 0};
  } else if constexpr (std::is_same_v<T, Bool> && kIsComplex<From>) {
    return Bool{x.re != 0 || x.im != 0};
  } else if constexpr (kIsComplex<From>) {
    return T{};  // the rules refuse this
  } else if constexpr (std::is_same_v<From, std::int32_t>) {
    return ConvertTo<T>(std::int64_t{x});
  } else if constexpr (std::is_same_v<From, std::uint32_t>) {
    return ConvertTo<T>(std::uint64_t{x});
  } else {
    return ConvertTo<T>(x);
  }
}

void RunCast(NumberType from, DType dtype, const Block& block) {
  const int count = block.count;
  VisitNumber(from, [&]<typename From>(std::type_identity<From>) {
    VisitElement(dtype, [&]<typename T>(std::type_identity<T>) {
      const From* x = static_cast<const From*>(block.from[0]);
      auto* to = static_cast<decltype(Widen(T{}))*>(block.to);
#pragma GCC ivdep
      for (int i = 0; i < count; ++i) to[i] = Widen(CastTo<T>(x[i]));
    });
  });
}

template <typename T>
void Select(const Block& block) {
  const int count = block.count;
  const auto* condition = static_cast<const std::uint32_t*>(block.from[0]);
  const T* x = static_cast<const T*>(block.from[1]);
  const T* y = static_cast<const T*>(block.from[2]);
  T* to = static_cast<T*>(block.to);
#pragma GCC ivdep
  for (int i = 0; i < count; ++i) {
    const T chosen = x[i], other = y[i];  // load both, so that there is no branch
    to[i] = condition[i] != 0 ? chosen : other;
  }
}

// Selects by bits, so only the size of the numbers matters.
void RunWhere(NumberType type, const Block& block) {
  switch (BytesOf(type)) {
    case 4:
      return Select<std::uint32_t>(block);
    case 8:
      return Select<std::uint64_t>(block);
    default:
      return Select<ComplexNumber<double>>(block);
  }
}

// Rounds numbers of a type to a narrower type.
void RoundNumbers(DType dtype, void* data, int count) {
  VisitReal(dtype, [&]<typename T>(std::type_identity<T>) {
    using V = decltype(Widen(T{}));
    V* values = static_cast<V*>(data);
    for (int i = 0; i < count; ++i) values[i] = Widen(static_cast<T>(values[i]));
  });
}

// One input with its strides.
struct Source {
  DType dtype = DType::kF32;
  const std::byte* data = nullptr;
  const Strides* strides = nullptr;
};

// Consecutive elements of the result along the innermost axis.
struct Run {
  std::int64_t offset = 0;  // in the source
  int count = 0;
};

// Calls f(run, done) for the runs of elements [first, first + count). `done` is the number of elements before
// the run.
template <typename F>
void ForEachRun(const MapWalk& walk, const Strides& strides, std::int64_t first, int count, F&& f) {
  if (walk.rank == 0) return f(Run{0, count}, 0);
  const int inner = walk.rank - 1;
  for (int done = 0; done < count;) {
    std::int64_t index = first + done, offset = 0, in_row = index % walk.dims[inner];
    const std::int64_t left = walk.dims[inner] - in_row;
    offset = in_row * strides[inner];
    index /= walk.dims[inner];
    for (int axis = inner - 1; axis >= 0; --axis) {
      offset += index % walk.dims[axis] * strides[axis];
      index /= walk.dims[axis];
    }
    const Run run{offset, static_cast<int>(std::min<std::int64_t>(left, count - done))};
    f(run, done);
    done += run.count;
  }
}

void LoadInto(void* data, const MapWalk& walk, const Source& source, std::int64_t first, int count) {
  const std::int64_t step = walk.rank == 0 ? 0 : (*source.strides)[walk.rank - 1];
  VisitElement(source.dtype, [&]<typename T>(std::type_identity<T>) {
    auto* to = static_cast<decltype(Widen(T{}))*>(data);
    ForEachRun(walk, *source.strides, first, count, [&](const Run& run, int done) {
      const T* from = reinterpret_cast<const T*>(source.data) + run.offset;
      if (step == 1) {
        for (int i = 0; i < run.count; ++i) to[done + i] = Widen(from[i]);
      } else if (step == 0) {
        std::fill_n(to + done, run.count, Widen(*from));
      } else {
        for (int i = 0; i < run.count; ++i) to[done + i] = Widen(from[i * step]);
      }
    });
  });
}

// Returns the address of numbers that can be used in place; null if they must be copied to a slot.
const std::byte* InPlace(const MapWalk& walk, const Source& source, std::int64_t first, int count) {
  if (source.dtype == DType::kBool ||
      static_cast<int>(SizeOf(source.dtype)) != BytesOf(NumberTypeOf(source.dtype))) {
    return nullptr;
  }
  if (walk.rank == 0 || (*source.strides)[walk.rank - 1] != 1) return nullptr;
  if (first % walk.dims[walk.rank - 1] + count > walk.dims[walk.rank - 1]) return nullptr;
  const std::byte* data = nullptr;
  ForEachRun(walk, *source.strides, first, count, [&](const Run& run, int) {
    data = source.data + run.offset * static_cast<std::int64_t>(SizeOf(source.dtype));
  });
  return data;
}

// Writes positions along the axis that has these strides in the walk.
void IndexInto(void* data, DType dtype, const MapWalk& walk, const Strides& strides, std::int64_t first,
               int count) {
  const std::int64_t step = walk.rank == 0 ? 0 : strides[walk.rank - 1];
  const auto fill = [&]<typename T>(T* to) {
    ForEachRun(walk, strides, first, count, [&](const Run& run, int done) {
      for (int i = 0; i < run.count; ++i) to[done + i] = static_cast<T>(run.offset + i * step);
    });
  };
  if (dtype == DType::kI64) return fill(static_cast<std::int64_t*>(data));
  fill(static_cast<std::int32_t*>(data));
}

template <typename T, typename Number>
T Narrow(Number number) {
  if constexpr (std::is_same_v<T, Bool>) {
    return Bool{number != 0};
  } else {
    return static_cast<T>(number);
  }
}

void StoreFrom(const void* data, DType dtype, std::byte* out, const MapWalk& walk, std::int64_t first,
               int count) {
  const std::int64_t step = walk.rank == 0 ? 1 : walk.of_result()[walk.rank - 1];
  VisitElement(dtype, [&]<typename T>(std::type_identity<T>) {
    const auto* numbers = static_cast<const decltype(Widen(T{}))*>(data);
    ForEachRun(walk, walk.of_result(), first, count, [&](const Run& run, int done) {
      const auto* from = numbers + done;
      T* to = reinterpret_cast<T*>(out) + run.offset;
      if (step == 1) {
        for (int i = 0; i < run.count; ++i) to[i] = Narrow<T>(from[i]);
      } else {
        for (int i = 0; i < run.count; ++i) to[i * step] = Narrow<T>(from[i]);
      }
    });
  });
}

void FillConstant(DType dtype, const StepScalars& scalars, void* data) {
  VisitElement(dtype, [&]<typename T>(std::type_identity<T>) {
    T value{};
    if constexpr (kIsComplex<T>) {
      value = {static_cast<decltype(T::re)>(scalars.alpha_f64),
               static_cast<decltype(T::re)>(scalars.beta_f64)};
    } else if constexpr (std::is_same_v<T, Bool> || std::is_integral_v<T>) {
      value = ConvertTo<T>(scalars.alpha_i64);
    } else {
      value = ConvertTo<T>(scalars.alpha_f64);
    }
    std::fill_n(static_cast<decltype(Widen(T{}))*>(data), kBlock, Widen(value));
  });
}

// Copies the elements of one row, which are `from_step` and `to_step` apart.
template <typename T>
void CopyRow(const std::byte* from, std::int64_t from_step, std::byte* to, std::int64_t to_step,
             std::int64_t count) {
  const T* x = reinterpret_cast<const T*>(from);
  T* y = reinterpret_cast<T*>(to);
  if (to_step == 1) {
    for (std::int64_t i = 0; i < count; ++i) y[i] = x[i * from_step];
  } else {
    for (std::int64_t i = 0; i < count; ++i) y[i * to_step] = x[i * from_step];
  }
}

using RowCopy = void (*)(const std::byte*, std::int64_t, std::byte*, std::int64_t, std::int64_t);

RowCopy RowCopyOf(std::size_t size) {
  switch (size) {
    case 1:
      return &CopyRow<std::uint8_t>;
    case 2:
      return &CopyRow<std::uint16_t>;
    case 4:
      return &CopyRow<std::uint32_t>;
    case 8:
      return &CopyRow<std::uint64_t>;
    default:
      return &CopyRow<ComplexNumber<double>>;
  }
}

// A map that returns its input is a copy, row by row.
void Copy(const MapProblem& problem, const Operands& operands) {
  const MapWalk walk = MapWalk::Of(problem);
  const auto size = static_cast<std::int64_t>(SizeOf(problem.dtype));
  const int inner = std::max(walk.rank - 1, 0);
  const std::int64_t row = walk.rank == 0 ? 1 : walk.dims[inner];
  const Strides &from = walk.strides.front(), &to = walk.of_result();
  const bool whole = row == 1 || (from[inner] == 1 && to[inner] == 1);
  const RowCopy copy = RowCopyOf(SizeOf(problem.dtype));
  const auto* x = static_cast<const std::byte*>(operands.in[0]);
  auto* y = static_cast<std::byte*>(operands.out);
  std::int64_t index[kMaxRank] = {}, x_at = 0, y_at = 0;
  Looks looks(operands.interest);
  for (std::int64_t done = 0; done < walk.count; done += row) {
    const bool ends = whole ? CopyInPieces(looks, y + y_at * size, x + x_at * size, row * size)
                            : InPieces(looks, row, 2, [&](std::int64_t begin, std::int64_t end) {
                                copy(x + (x_at + begin * from[inner]) * size, from[inner],
                                     y + (y_at + begin * to[inner]) * size, to[inner], end - begin);
                              });
    if (!ends) return;
    for (int axis = inner - 1; axis >= 0; --axis) {
      x_at += from[axis];
      y_at += to[axis];
      if (++index[axis] < walk.dims[axis]) break;
      x_at -= walk.dims[axis] * from[axis];
      y_at -= walk.dims[axis] * to[axis];
      index[axis] = 0;
    }
  }
}

class Interpreter {
 public:
  Interpreter(const MapProblem& problem, const MapCode& code, const Operands& operands)
      : problem_(problem),
        code_(code),
        operands_(operands),
        walk_(MapWalk::Of(problem)),
        is_dense_(problem.OutStrides() == RowMajorStrides(problem.shape)) {
    const std::size_t slot = static_cast<std::size_t>(code.slot_bytes) * kBlock;
    auto* next = static_cast<std::byte*>(operands.workspace);
    for (int i = 0; i < code.slots + 2; ++i, next += slot) slots_.push_back(next);
    places_.resize(static_cast<std::size_t>(code.slots));
    for (const MapUniform& uniform : code.uniforms) {
      if (uniform.is_input) {
        LoadInto(next, MapWalk(), SourceOf(uniform.index), 0, kBlock);
      } else {
        FillConstant(uniform.dtype, operands.scalars[uniform.index], next);
      }
      uniforms_.push_back(next);
      next += slot;
    }
    in_place_.resize(code.instructions.size(), -1);
    for (int i = 0; i < problem.ResultCount(); ++i) {
      if (!ComputeInPlace(i)) stored_.push_back(i);
    }
  }

  // Computes elements [first, first + count) of the result.
  void Run(std::int64_t first, int count) {
    for (std::size_t i = 0; i < code_.instructions.size(); ++i) {
      const MapInstruction& instruction = code_.instructions[i];
      // Results that are passed on use two extra slots alternately, because they must not overwrite the
      // operand that is being read.
      std::byte* to =
          instruction.to == kLastResult ? slots_[slots_.size() - 1 - i % 2] : slots_[instruction.to];
      if (in_place_[i] >= 0)
        to = ResultAt(in_place_[i]) + static_cast<std::size_t>(first) * SizeOf(instruction.dtype);
      const std::byte* result = to;
      if (instruction.code == kLoadCode) {
        result = Load(instruction, to, first, count);
      } else if (instruction.code == kIndexCode) {
        IndexInto(to, instruction.dtype, walk_, walk_.strides[instruction.from[0]], first, count);
      } else {
        Execute(instruction, to, count);
      }
      (instruction.to == kLastResult ? last_ : places_[instruction.to]) = result;
    }
    for (const int i : stored_) {
      StoreFrom(PlaceOf(code_.results[static_cast<std::size_t>(i)]), problem_.ResultDType(i), ResultAt(i),
                walk_, first, count);
    }
  }

 private:
  // If numbers and elements have the same type, the last instruction that writes a result's place computes
  // directly into the output. Returns false if this is not possible for this result.
  bool ComputeInPlace(int result) {
    const DType dtype = problem_.ResultDType(result);
    const bool is_number =
        dtype != DType::kBool && static_cast<int>(SizeOf(dtype)) == BytesOf(NumberTypeOf(dtype));
    if (!is_dense_ || !is_number) return false;
    const std::uint16_t place = code_.results[static_cast<std::size_t>(result)];
    for (std::size_t i = code_.instructions.size(); i-- > 0;) {
      if (code_.instructions[i].to != place) continue;
      // The elements of an input may be used in place, and another result may have the same place.
      if (code_.instructions[i].code == kLoadCode || in_place_[i] >= 0) return false;
      in_place_[i] = result;
      return true;
    }
    return false;
  }
  std::byte* ResultAt(int result) const {
    return static_cast<std::byte*>(result == 0 ? operands_.out : operands_.further[result - 1]);
  }

  Source SourceOf(std::size_t input) const {
    return {problem_.inputs[input].dtype, static_cast<const std::byte*>(operands_.in[input]),
            &walk_.strides[input]};
  }
  const std::byte* PlaceOf(std::uint16_t place) const {
    if (place == kLastResult) return last_;
    return (place & kUniformBit) != 0 ? uniforms_[place ^ kUniformBit] : places_[place];
  }

  // Returns the address of the numbers: in the input itself, or `to`.
  const std::byte* Load(const MapInstruction& instruction, std::byte* to, std::int64_t first,
                        int count) const {
    const Source source = SourceOf(instruction.from[0]);
    if (const std::byte* numbers = InPlace(walk_, source, first, count)) return numbers;
    LoadInto(to, walk_, source, first, count);
    return to;
  }

  void Execute(const MapInstruction& instruction, std::byte* to, int count) const {
    Block block{.from = {}, .to = to, .count = count};
    const auto op = static_cast<MapOp>(instruction.code / kNumberTypes);
    for (int i = 0; i < RowOf(op).operands; ++i) block.from[i] = PlaceOf(instruction.from[i]);
    const auto type = static_cast<NumberType>(instruction.code % kNumberTypes);
    if (op == MapOp::kCast) return RunCast(type, instruction.dtype, block);
    if (op == MapOp::kWhere) return RunWhere(type, block);
    const Runner& runner = kRunners[static_cast<std::size_t>(op)][static_cast<std::size_t>(type)];
    (is_wide_ ? runner.wide : runner.narrow)(block);
    if (instruction.rounds != 0) RoundNumbers(instruction.dtype, to, count);
  }

  const MapProblem& problem_;
  const MapCode& code_;
  const Operands& operands_;
  const MapWalk walk_;
  const bool is_dense_;  // true if each result is dense
  const bool is_wide_ = IsWide();
  std::vector<int> in_place_;  // by instruction: the result that it computes in place, or -1
  std::vector<int> stored_;    // the results that are not computed in place
  std::vector<std::byte*> slots_, uniforms_;
  std::vector<const std::byte*> places_;  // current addresses of the numbers, by slot
  const std::byte* last_ = nullptr;       // address of the previous instruction's result
};

}  // namespace

std::size_t MapBlocksWorkspaceBytes(const MapProblem& problem, const DeviceTraits&) {
  const MapCode code = Lower(problem);
  return (static_cast<std::size_t>(code.slots) + 2 + code.uniforms.size()) *
         static_cast<std::size_t>(code.slot_bytes) * kBlock;
}

void MapBlocks(const MapProblem& problem, const Operands& operands) {
  const MapCode code = Lower(problem);
  if (code.uniforms.empty() && code.instructions.size() == 1 && code.instructions[0].code == kLoadCode &&
      problem.further.empty() && problem.OutDType() != DType::kBool) {
    return Copy(problem, operands);
  }
  Interpreter interpreter(problem, code, operands);
  const std::int64_t count = problem.shape.Count();
  constexpr auto kWork = 16;  // per instruction and element; some need less, a few ten times as much
  const auto instructions = static_cast<std::int64_t>(code.instructions.size()) + 1;
  Looks looks(operands.interest);
  for (std::int64_t first = 0; first < count; first += kBlock) {
    const std::int64_t elements = std::min<std::int64_t>(kBlock, count - first);
    interpreter.Run(first, static_cast<int>(elements));
    if (looks.Stop(kWork * instructions * elements)) return;
  }
}

}  // namespace warpline::cpu
