// Variant `interpreter`: a block runs the instructions of a map one after another, each for all of its
// elements. A value that only the next instruction reads stays in registers. All other values are in shared
// memory. Each thread reads and writes only its own elements, so instructions do not wait for other threads.
//
// Limit: each instruction is decoded once for each 8 elements of f32 that a thread has
// (docs/benchmarks/2026-11-27-h200-maps.md).
// Next, `packs`: one operation per instance, and loads and stores of 16 bytes.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <type_traits>

#include "kernels/allow_shared_bytes.h"
#include "kernels/ceil_div.h"
#include "kernels/fast_divisor.h"
#include "kernels/gpu/raw_vector.cuh"
#include "kernels/gpu/real.cuh"
#include "kernels/map/functions.h"
#include "kernels/map/kernels.h"

namespace warpline {
namespace {

using map::ComplexNumber;
using map::kIsComplex;

constexpr int kMaxThreads = 256;

// The layout of the input elements that a thread loads together.
enum class Layout : std::uint32_t {
  kDense,      // same as in the result
  kVector,     // contiguous
  kBroadcast,  // one element for all
  kScattered,  // located one by one
};

constexpr int kMaxInstructions = kMaxMapNodes + kMaxMapInputs;
constexpr int kMaxUniforms = kMaxMapNodes + kMaxMapInputs;
// The objects that a load can name: inputs and indices.
constexpr int kMaxSources = kMaxMapInputs + kMaxRank;

// A source of loads: an input array, or the indices along an axis. Indices have no data: they count from
// `first`.
struct InputTable {
  const void* data;
  std::int64_t first;  // for positions: the position of the first element
  Layout layout;
  std::uint32_t unused;
};

// An instruction in the form that one instance of the kernel uses. Places are in words: see PlaceOf.
struct Instruction {
  std::uint32_t code;
  std::uint32_t dtype;   // a DType
  std::uint32_t rounds;  // 1: round to dtype
  std::uint32_t to;
  std::uint32_t from[3];
  std::uint32_t unused;
};

// A result. Its place holds numbers, like the places of instructions.
struct ResultTable {
  void* data;
  std::uint32_t place;
  std::uint32_t dtype;  // a DType
  Layout layout;        // of the elements that a thread stores together
  std::uint32_t unused;
};

// Everything that a launch needs. Counts and the spans of all arrays are less than FastDivisor::kMax.
struct Parameters {
  const StepScalars* scalars;
  std::uint32_t count;
  std::uint32_t rank;
  std::uint32_t source_count, instruction_count, uniform_count;
  std::uint32_t result_count;
  alignas(16) FastDivisor sizes[kMaxRank];  // innermost axis first
  // Also innermost axis first. The strides of the results come after those of the sources.
  alignas(16) std::int32_t strides[kMaxSources + 1][kMaxRank];
  InputTable inputs[kMaxSources];
  ResultTable results[kMaxMapOutputs];
  Instruction instructions[kMaxInstructions];
  MapUniform uniforms[kMaxUniforms];
};

template <NumberType kType>
struct NumberAs;
// clang-format off
template <> struct NumberAs<NumberType::kI32> { using type = std::int32_t; };
template <> struct NumberAs<NumberType::kU32> { using type = std::uint32_t; };
template <> struct NumberAs<NumberType::kF32> { using type = float; };
template <> struct NumberAs<NumberType::kI64> { using type = std::int64_t; };
template <> struct NumberAs<NumberType::kU64> { using type = std::uint64_t; };
template <> struct NumberAs<NumberType::kF64> { using type = double; };
template <> struct NumberAs<NumberType::kC64> { using type = ComplexNumber<float>; };
template <> struct NumberAs<NumberType::kC128> { using type = ComplexNumber<double>; };
// clang-format on

// Contiguous values of one thread: 16 bytes of slots of kBytes each.
template <int kBytes>
struct Word {
  static constexpr int kSize = 16 / kBytes;
  static constexpr int kUnits = kBytes / 4;
  std::uint32_t units[4];

  template <typename T>
  __device__ __forceinline__ T Get(int i) const {
    static_assert(sizeof(T) <= kBytes);
    T value;
    memcpy(&value, &units[i * kUnits], sizeof(T));
    return value;
  }
  template <typename T>
  __device__ __forceinline__ void Set(int i, T value) {
    static_assert(sizeof(T) <= kBytes);
    memcpy(&units[i * kUnits], &value, sizeof(T));
  }
};

// Returns the block's shared memory: tables, a word for each uniform, and the slots. It is an array, so that
// the compiler knows that it is shared memory.
__device__ __forceinline__ uint4* Shared() {
  extern __shared__ uint4 words[];
  return words;
}

template <int kBytes>
__device__ __forceinline__ Word<kBytes> ReadWord(unsigned from) {
  const uint4 raw = Shared()[from];
  return {{raw.x, raw.y, raw.z, raw.w}};
}
template <int kBytes>
__device__ __forceinline__ void WriteWord(unsigned to, const Word<kBytes>& word) {
  Shared()[to] = {word.units[0], word.units[1], word.units[2], word.units[3]};
}

// Conversions between elements and numbers of any type, including complex types.
template <typename T>
using NumberOfElement = typename std::conditional_t<
    kIsComplex<T>, std::type_identity<T>,
    std::type_identity<NumberOf<std::conditional_t<kIsComplex<T>, float, T>>>>::type;

template <typename T>
__device__ __forceinline__ NumberOfElement<T> ToNumber(T element) {
  if constexpr (kIsComplex<T>) {
    return element;
  } else {
    return Widen<NumberOf<T>>(element);
  }
}

// Converts by the rules of casts.
template <typename T, typename From>
__device__ __forceinline__ T ToElement(From x) {
  if constexpr (kIsComplex<T> && kIsComplex<From>) {
    using Part = decltype(T::re);
    return {static_cast<Part>(x.re), static_cast<Part>(x.im)};
  } else if constexpr (kIsComplex<T>) {
    return {static_cast<decltype(T::re)>(x), 0};
  } else if constexpr (kIsComplex<From>) {
    return static_cast<T>(x.re != 0 || x.im != 0 ? 1 : 0);  // to bool; the rules refuse other types
  } else {
    return Narrow<T>(x);
  }
}

// Calls f with an element of the type, if its number fits into slots of kBytes.
template <int kBytes, typename F>
__device__ __forceinline__ void VisitElement(DType dtype, F&& f) {
  if constexpr (kBytes >= 8) {
    if (dtype == DType::kC64) return f(ComplexNumber<float>());
  }
  if constexpr (kBytes >= 16) {
    if (dtype == DType::kC128) return f(ComplexNumber<double>());
  }
  VisitRealOfSize(dtype, [&]<typename T>(T element) {
    if constexpr (sizeof(NumberOf<T>) <= kBytes) f(element);
  });
}

// Shared memory begins with tables that threads read at different indices. In constant memory, each such
// access would be slow.
struct Tables {
  unsigned uniforms, slots;  // offsets, in words

  static constexpr unsigned kStrides = sizeof(FastDivisor) * kMaxRank / sizeof(uint4);
  static constexpr unsigned kStridesOfArray = sizeof(std::int32_t) * kMaxRank / sizeof(uint4);

  // The result counts as an array too.
  __host__ __device__ Tables(unsigned source_count, unsigned uniform_count)
      : uniforms(kStrides + (source_count + 1) * kStridesOfArray), slots(uniforms + uniform_count) {}

  __device__ const FastDivisor& size(unsigned axis) const {
    return reinterpret_cast<const FastDivisor*>(Shared())[axis];
  }
  __device__ const std::int32_t* strides(unsigned array) const {
    return reinterpret_cast<const std::int32_t*>(Shared() + kStrides + array * kStridesOfArray);
  }
};

// All threads of the block copy the tables, except the uniforms.
__device__ __forceinline__ void CopyTables(const Parameters& p, const Tables& tables) {
  const auto copy = [](const void* from, unsigned to, unsigned words) {
    for (unsigned i = threadIdx.x; i < words; i += blockDim.x) {
      Shared()[to + i] = static_cast<const uint4*>(from)[i];
    }
  };
  copy(p.sizes, 0, Tables::kStrides);
  copy(p.strides, Tables::kStrides, tables.uniforms - Tables::kStrides);
}

// An operand of an instruction: a slot, or a uniform, which is the same word for all threads. Instructions
// contain the first word of a slot of thread 0, or a uniform with the flag kUniform.
struct Place {
  unsigned word;
  unsigned step;
};
constexpr std::uint32_t kUniform = 0x80000000, kLast = 0x40000000;

__device__ __forceinline__ Place PlaceOf(unsigned place, unsigned threads) {
  if ((place & kUniform) != 0) return {place ^ kUniform, 0};
  return {place + threadIdx.x, threads};
}

// Functions that need many registers or instructions are not inlined, because the kernel has dozens of them.
template <MapOp kOp, typename T>
inline constexpr bool kCalls = WeightOf(kOp, kIsComplex<T>               ? DType::kC64
                                             : std::is_same_v<T, double> ? DType::kF64
                                                                         : DType::kF32) == MapWeight::kHeavy;

template <typename Function, typename... T>
__device__ __noinline__ auto Call(T... x) {
  return Function::Apply(x...);
}

template <MapOp kOp, typename Function, typename... T>
__device__ __forceinline__ auto Apply(T... x) {
  if constexpr ((kCalls<kOp, T> || ...)) {
    return Call<Function>(x...);
  } else {
    return Function::Apply(x...);
  }
}

// One thread's values of an operand or a result.
template <int kBytes, int kWords>
struct Values {
  Word<kBytes> words[kWords];
};

template <int kBytes, int kWords>
__device__ __forceinline__ Values<kBytes, kWords> Read(Place place) {
  Values<kBytes, kWords> values;
#pragma unroll
  for (int v = 0; v < kWords; ++v) values.words[v] = ReadWord<kBytes>(place.word + v * place.step);
  return values;
}

// Calls f(word, i, v) for each value of x, which f may change.
template <int kBytes, int kWords, typename F>
__device__ __forceinline__ void Change(Values<kBytes, kWords>& x, F&& f) {
#pragma unroll
  for (int v = 0; v < kWords; ++v) {
#pragma unroll
    for (int i = 0; i < Word<kBytes>::kSize; ++i) f(x.words[v], i, v);
  }
}

// Replaces x by the result. `y` and `third` are the other operands.
template <MapOp kOp, typename Function, int kOperands, typename T, int kBytes, int kWords>
__device__ __forceinline__ void Execute(Values<kBytes, kWords>& x, const Values<kBytes, kWords>& y,
                                        Place third) {
  if constexpr (kOperands == 1) {
    Change(x, [](auto& word, int i, int) { word.Set(i, Apply<kOp, Function>(word.template Get<T>(i))); });
  } else if constexpr (kOperands == 2) {
    Change(x, [&](auto& word, int i, int v) {
      word.Set(i, Apply<kOp, Function>(word.template Get<T>(i), y.words[v].template Get<T>(i)));
    });
  } else {
    const auto z = Read<kBytes, kWords>(third);
    Change(x, [&](auto& word, int i, int v) {
      word.Set(i, Apply<kOp, Function>(word.template Get<T>(i), y.words[v].template Get<T>(i),
                                       z.words[v].template Get<T>(i)));
    });
  }
}

template <int kBytes, int kWords>
__device__ __forceinline__ void RoundTo(DType dtype, Values<kBytes, kWords>& x) {
  VisitElement<kBytes>(dtype, [&]<typename T>(T) {
    if constexpr (!kIsComplex<T>) {
      if constexpr (sizeof(T) < sizeof(NumberOf<T>)) {
        Change(x, [](auto& word, int i, int) {
          word.Set(i, ToNumber(ToElement<T>(word.template Get<NumberOf<T>>(i))));
        });
      }
    }
  });
}

template <typename From, int kBytes, int kWords>
__device__ __forceinline__ void RunCast(DType dtype, Values<kBytes, kWords>& x) {
  VisitElement<kBytes>(dtype, [&]<typename T>(T) {
    Change(x,
           [](auto& word, int i, int) { word.Set(i, ToNumber(ToElement<T>(word.template Get<From>(i)))); });
  });
}

// Selects whole slots, so the type of the numbers does not matter. x is the condition.
template <int kBytes, int kWords>
__device__ __forceinline__ void RunWhere(Values<kBytes, kWords>& x, const Values<kBytes, kWords>& y,
                                         Place third) {
  const auto z = Read<kBytes, kWords>(third);
#pragma unroll
  for (int v = 0; v < kWords; ++v) {
#pragma unroll
    for (int i = 0; i < Word<kBytes>::kSize; ++i) {
      constexpr int kUnits = Word<kBytes>::kUnits;
      const bool is_true = x.words[v].units[i * kUnits] != 0;
#pragma unroll
      for (int unit = i * kUnits; unit < (i + 1) * kUnits; ++unit) {
        x.words[v].units[unit] = is_true ? y.words[v].units[unit] : z.words[v].units[unit];
      }
    }
  }
}

// The elements of a launch, and their axes.
struct Elements {
  Tables tables;
  std::uint32_t count, rank;
};

// Consecutive elements of an array (a source or the result) along the innermost axis. They start at the
// element for element `index` of the result and end with the axis. Offsets may be negative.
struct Run {
  std::int32_t offset;
  std::uint32_t left;
};

// Not inlined: it is called for each data type, and needs several divisions.
__device__ __noinline__ Run RunAt(Elements elements, unsigned array, std::uint32_t index) {
  const std::int32_t* strides = elements.tables.strides(array);
  Run run = {0, elements.count - index};
  if (elements.rank == 0) return run;
#pragma unroll 1
  for (unsigned i = 0; i + 1 < elements.rank; ++i) {
    const std::uint32_t coordinate = TakeRemainder(index, elements.tables.size(i));
    if (i == 0) run.left = elements.tables.size(0).divisor - coordinate;
    run.offset += static_cast<std::int32_t>(coordinate) * strides[i];
  }
  run.offset += static_cast<std::int32_t>(index) * strides[elements.rank - 1];
  return run;
}

// Calls f(i, offset) for the existing elements of [index, index + kSize).
template <int kSize, typename F>
__device__ __forceinline__ void ForEachOffset(const Elements& elements, unsigned array, std::uint32_t index,
                                              F&& f) {
  if (index >= elements.count) return;
  const std::int32_t stride = elements.tables.strides(array)[0];
  Run run = RunAt(elements, array, index);
#pragma unroll
  for (int i = 0; i < kSize; ++i) {
    if (index + i >= elements.count) break;
    if (run.left == 0) run = RunAt(elements, array, index + i);
    f(i, std::int64_t{run.offset});
    run.offset += stride;
    --run.left;
  }
}

// Loads elements [index, index + kSize) of the result, as far as they exist, from an input.
template <int kBytes, typename T>
__device__ __forceinline__ Word<kBytes> LoadElements(const Elements& elements, unsigned input,
                                                     const void* from, Layout layout, std::uint32_t index) {
  constexpr int kSize = Word<kBytes>::kSize;
  const T* data = static_cast<const T*>(from);
  Word<kBytes> word = {};
  if (layout <= Layout::kVector && index + kSize <= elements.count) {
    constexpr int kVectorBytes = kSize * static_cast<int>(sizeof(T));
    const std::int64_t offset =
        layout == Layout::kDense ? std::int64_t{index} : std::int64_t{RunAt(elements, input, index).offset};
    const auto vector = *reinterpret_cast<const RawVector<kVectorBytes>*>(data + offset);
#pragma unroll
    for (int i = 0; i < kSize; ++i) word.Set(i, ToNumber(Element<T>(vector, i)));
    return word;
  }
  if (layout == Layout::kBroadcast && index < elements.count) {  // packs end at the end of the result
    const auto number = ToNumber(data[RunAt(elements, input, index).offset]);
#pragma unroll
    for (int i = 0; i < kSize; ++i) word.Set(i, number);
    return word;
  }
  if (layout == Layout::kDense) {
#pragma unroll
    for (int i = 0; i < kSize; ++i) {
      if (index + i < elements.count) word.Set(i, ToNumber(data[index + i]));
    }
    return word;
  }
  ForEachOffset<kSize>(elements, input, index,
                       [&](int i, std::int64_t offset) { word.Set(i, ToNumber(data[offset])); });
  return word;
}

template <int kBytes, int kWords>
__device__ __forceinline__ void Load(const Elements& elements, unsigned number, InputTable input, DType dtype,
                                     std::uint32_t first, Values<kBytes, kWords>& to) {
  VisitElement<kBytes>(dtype, [&]<typename T>(T) {
#pragma unroll
    for (int v = 0; v < kWords; ++v) {
      to.words[v] = LoadElements<kBytes, T>(elements, number, input.data, input.layout,
                                            first + v * blockDim.x * Word<kBytes>::kSize);
    }
  });
}

// Loads positions along an axis, as i64, or as i32 if slots have 4 bytes.
template <int kBytes, int kWords>
__device__ __forceinline__ void LoadIndex(const Elements& elements, unsigned number, std::int64_t start,
                                          DType dtype, std::uint32_t first, Values<kBytes, kWords>& to) {
#pragma unroll
  for (int v = 0; v < kWords; ++v) {
    const std::uint32_t index = first + v * blockDim.x * Word<kBytes>::kSize;
    ForEachOffset<Word<kBytes>::kSize>(elements, number, index, [&](int i, std::int64_t offset) {
      const std::int64_t position = start + offset;
      if constexpr (kBytes >= 8) {
        if (dtype == DType::kI64) return to.words[v].Set(i, position);
      }
      to.words[v].Set(i, static_cast<std::int32_t>(position));
    });
  }
}

template <int kBytes, int kWords>
__device__ __forceinline__ void Store(const ResultTable& result, const Elements& elements, unsigned sources,
                                      const Values<kBytes, kWords>& x, unsigned threads,
                                      std::uint32_t first) {
  constexpr int kSize = Word<kBytes>::kSize;
  VisitElement<kBytes>(static_cast<DType>(result.dtype), [&]<typename T>(T) {
    T* out = static_cast<T*>(result.data);
#pragma unroll
    for (int v = 0; v < kWords; ++v) {
      const std::uint32_t index = first + v * threads * kSize;
      const Word<kBytes>& word = x.words[v];
      const auto element = [&](int i) { return ToElement<T>(word.template Get<NumberOfElement<T>>(i)); };
      const auto store = [&](int i, std::int64_t offset) { out[offset] = element(i); };
      if (result.layout > Layout::kVector) {
        ForEachOffset<kSize>(elements, sources, index, store);
        continue;
      }
      if (index + kSize <= elements.count) {
        const bool is_dense = result.layout == Layout::kDense;
        T* to = out + (is_dense ? std::int64_t{index} : std::int64_t{RunAt(elements, sources, index).offset});
        RawVector<kSize* static_cast<int>(sizeof(T))> vector = {};
#pragma unroll
        for (int i = 0; i < kSize; ++i) SetElement(vector, i, element(i));
        *reinterpret_cast<decltype(vector)*>(to) = vector;
        continue;
      }
      // Vectors that are not dense end at the end of the result.
#pragma unroll
      for (int i = 0; i < kSize; ++i) {
        if (index + i < elements.count) store(i, index + i);
      }
    }
  });
}

template <int kBytes>
__device__ __forceinline__ void FillUniform(const Parameters& p, const MapUniform& uniform, unsigned to) {
  VisitElement<kBytes>(uniform.dtype, [&]<typename T>(T element) {
    if (uniform.is_input) {
      element = *static_cast<const T*>(p.inputs[uniform.index].data);
    } else {
      const StepScalars& scalars = p.scalars[uniform.index];
      if constexpr (kIsComplex<T>) {
        using Part = decltype(T::re);
        element = {static_cast<Part>(scalars.alpha_f64), static_cast<Part>(scalars.beta_f64)};
      } else if constexpr (std::is_floating_point_v<NumberOf<T>>) {
        element = Narrow<T>(scalars.alpha_f64);
      } else {
        element = Narrow<T>(scalars.alpha_i64);
      }
    }
    Word<kBytes> word = {};
#pragma unroll
    for (int i = 0; i < Word<kBytes>::kSize; ++i) word.Set(i, ToNumber(element));
    WriteWord<kBytes>(to, word);
  });
}

// Returns whether an instance has code for an operation on numbers of a type.
constexpr bool HasCode(MapOp op, NumberType type, int bytes, bool heavy) {
  if (BytesOf(type) > bytes) return false;
  if (op == MapOp::kCast) return true;
  return HasFunction(op, type) && (heavy || WeightOf(op, TypeOf(type)) == MapWeight::kLight);
}

// The codes of an instance, without gaps. (The compiler still turns its switch into a tree of branches.)
constexpr std::uint16_t kLoad = 0, kWhere = 1, kIndex = 2, kFirstFunction = 3;
struct Codes {
  std::uint16_t of[kIndexCode + 1] = {};
};
constexpr Codes CodesOf(int bytes, bool heavy) {
  Codes codes;
  std::uint16_t next = kFirstFunction;
  for (std::size_t i = 0; i < kMapOps.size(); ++i) {
    for (int type = 0; type < kNumberTypes; ++type) {
      const auto op = static_cast<MapOp>(i);
      std::uint16_t& code = codes.of[CodeOf(op, static_cast<NumberType>(type))];
      if (HasCode(op, static_cast<NumberType>(type), bytes, heavy)) {
        code = next++;
      } else {
        code =
            static_cast<std::uint16_t>(0x8000 + i * kNumberTypes + static_cast<std::size_t>(type));  // unused
      }
    }
  }
  codes.of[kLoadCode] = kLoad;
  codes.of[kIndexCode] = kIndex;
  return codes;
}
// Variables, because device code can use their values but cannot call host functions.
template <int kBytes, bool kHeavy>
inline constexpr Codes kCodes = CodesOf(kBytes, kHeavy);
template <MapOp kOp, NumberType kType, int kBytes, bool kHeavy>
inline constexpr std::uint16_t kCodeOf = kCodes<kBytes, kHeavy>.of[CodeOf(kOp, kType)];
template <MapOp kOp, NumberType kType, int kBytes, bool kHeavy>
inline constexpr bool kHasCode = HasCode(kOp, kType, kBytes, kHeavy);

// The rows without a scalar function.
namespace none {
struct Constant {};
struct Cast {};
struct Where {};
struct Index {};
}  // namespace none

namespace rows {
using namespace map;   // NOLINT(google-build-using-namespace): the functions, by the names of their rows
using namespace none;  // NOLINT(google-build-using-namespace)

template <bool kHeavy, int kBytes, int kWords>
__device__ __forceinline__ void Dispatch(std::uint32_t code, DType dtype, Values<kBytes, kWords>& x,
                                         const Values<kBytes, kWords>& y, Place third) {
  if (code == kWhere) return RunWhere(x, y, third);
  switch (code) {
#define WARPLINE_CASE(identifier, operands, number)                               \
  case kCodeOf<MapOp::k##identifier, number, kBytes, kHeavy>:                     \
    if constexpr (kHasCode<MapOp::k##identifier, number, kBytes, kHeavy>) {       \
      using Number = typename NumberAs<number>::type;                             \
      if constexpr (MapOp::k##identifier == MapOp::kCast) {                       \
        RunCast<Number>(dtype, x);                                                \
      } else {                                                                    \
        Execute<MapOp::k##identifier, identifier, operands, Number>(x, y, third); \
      }                                                                           \
    }                                                                             \
    break;
#define WARPLINE_CASES(identifier, name, operands, ...) \
  WARPLINE_CASE(identifier, operands, NumberType::kI32) \
  WARPLINE_CASE(identifier, operands, NumberType::kU32) \
  WARPLINE_CASE(identifier, operands, NumberType::kF32) \
  WARPLINE_CASE(identifier, operands, NumberType::kI64) \
  WARPLINE_CASE(identifier, operands, NumberType::kU64) \
  WARPLINE_CASE(identifier, operands, NumberType::kF64) \
  WARPLINE_CASE(identifier, operands, NumberType::kC64) \
  WARPLINE_CASE(identifier, operands, NumberType::kC128)
    WARPLINE_MAP_OPERATIONS(WARPLINE_CASES)
#undef WARPLINE_CASES
#undef WARPLINE_CASE
    default:
      break;
  }
}
}  // namespace rows

template <int kBytes, int kWords, bool kHeavy>
__global__ void __launch_bounds__(kMaxThreads) Interpret(const __grid_constant__ Parameters p) {
  const Elements elements = {Tables(p.source_count, p.uniform_count), p.count, p.rank};
  CopyTables(p, elements.tables);
  for (unsigned i = threadIdx.x; i < p.uniform_count; i += blockDim.x) {
    FillUniform<kBytes>(p, p.uniforms[i], elements.tables.uniforms + i);
  }
  __syncthreads();
  const unsigned threads = blockDim.x;
  const std::uint32_t of_block = threads * kWords * Word<kBytes>::kSize;
  for (std::uint32_t base = blockIdx.x * of_block; base < elements.count; base += gridDim.x * of_block) {
    const std::uint32_t first = base + threadIdx.x * Word<kBytes>::kSize;
    Values<kBytes, kWords> x = {};  // the result of the previous instruction
    // Members of p are accessed here and not in functions. So they are read from constant memory at an index
    // that is the same for all threads, and all threads take the same branches.
#pragma unroll 1
    for (unsigned i = 0; i < p.instruction_count; ++i) {
      const std::uint32_t code = p.instructions[i].code;
      const auto dtype = static_cast<DType>(p.instructions[i].dtype);
      const std::uint32_t from = p.instructions[i].from[0], second = p.instructions[i].from[1];
      if (code == kLoad) {
        Load(elements, from, p.inputs[from], dtype, first, x);
      } else if (code == kIndex) {
        LoadIndex(elements, from, p.inputs[from].first, dtype, first, x);
      } else {
        Values<kBytes, kWords> y = x;
        if (from != kLast) x = Read<kBytes, kWords>(PlaceOf(from, threads));
        if (second == from) {
          y = x;
        } else if (second != kLast) {
          y = Read<kBytes, kWords>(PlaceOf(second, threads));
        }
        rows::Dispatch<kHeavy>(code, dtype, x, y, PlaceOf(p.instructions[i].from[2], threads));
        if (p.instructions[i].rounds != 0) RoundTo(dtype, x);
      }
      const std::uint32_t to = p.instructions[i].to;
      if (to == kLast) continue;
#pragma unroll
      for (int v = 0; v < kWords; ++v) WriteWord<kBytes>(to + threadIdx.x + v * threads, x.words[v]);
    }
#pragma unroll 1
    for (unsigned i = 0; i < p.result_count; ++i) {
      const std::uint32_t place = p.results[i].place;
      Store(p.results[i], elements, p.source_count,
            place == kLast ? x : Read<kBytes, kWords>(PlaceOf(place, threads)), threads, first);
    }
  }
}

// A part of a map whose offsets fit into 31 bits.
struct Part {
  MapWalk walk;
  std::int64_t offsets[kMaxSources + 1] = {};  // of its first element in each source and in the result
};

bool Fits(const MapWalk& walk) {
  if (walk.count >= FastDivisor::kMax) return false;
  return std::all_of(walk.strides.begin(), walk.strides.end(), [&](const Strides& strides) {
    std::int64_t span = 1;
    for (int axis = 0; axis < walk.rank; ++axis) span += (walk.dims[axis] - 1) * std::abs(strides[axis]);
    return span < FastDivisor::kMax;
  });
}

// Calls f for the parts of a map. It is split in halves along its outermost axis.
template <typename F>
cudaError_t ForEachPart(const Part& part, const F& f) {
  if (Fits(part.walk)) return f(part);
  Part half = part;
  MapWalk& walk = half.walk;
  if (walk.dims[0] == 1) {
    for (int axis = 1; axis < walk.rank; ++axis) walk.dims[axis - 1] = walk.dims[axis];
    for (Strides& strides : walk.strides) std::rotate(strides.begin(), strides.begin() + 1, strides.end());
    --walk.rank;
    return ForEachPart(half, f);
  }
  const std::int64_t row = walk.count / walk.dims[0], rows = walk.dims[0] / 2;
  walk.dims[0] = rows;
  walk.count = rows * row;
  if (const cudaError_t error = ForEachPart(half, f); error != cudaSuccess) return error;
  for (std::size_t i = 0; i < walk.strides.size(); ++i) half.offsets[i] += rows * walk.strides[i][0];
  walk.dims[0] = part.walk.dims[0] - rows;
  walk.count = walk.dims[0] * row;
  return ForEachPart(half, f);
}

bool IsAligned(const void* address, std::size_t bytes) {
  return reinterpret_cast<std::uintptr_t>(address) % bytes == 0;
}

// `pack`: the number of elements that a thread loads together.
Layout LayoutOf(const MapWalk& walk, const Strides& strides, const void* data, std::size_t element,
                int pack) {
  const int inner = walk.rank - 1;
  if (walk.rank == 0) return Layout::kDense;  // one element
  const bool aligned = IsAligned(data, std::min<std::size_t>(16, element * static_cast<std::size_t>(pack)));
  std::int64_t dense = 1;
  bool is_dense = true, in_vectors = aligned && strides[inner] == 1;
  for (int axis = inner; axis >= 0; --axis) {
    is_dense = is_dense && strides[axis] == dense;
    dense *= walk.dims[axis];
    if (axis != inner) in_vectors = in_vectors && strides[axis] % pack == 0;
  }
  if (is_dense && aligned) return Layout::kDense;
  if (walk.dims[inner] % pack != 0) return Layout::kScattered;
  if (strides[inner] == 0) return Layout::kBroadcast;
  return in_vectors ? Layout::kVector : Layout::kScattered;
}

// Converts a place of MapCode to one of a launch.
struct PlaceWords {
  Tables tables;
  std::uint32_t of_slot;  // distance between slots in words

  std::uint32_t operator()(std::uint16_t place) const {
    if (place == kLastResult) return kLast;
    if ((place & kUniformBit) != 0) return (tables.uniforms + (place ^ kUniformBit)) | kUniform;
    return tables.slots + place * of_slot;
  }
};

Parameters ParametersOf(const MapProblem& problem, const MapCode& code, const Codes& codes, const Part& part,
                        const Operands& operands, int pack, const PlaceWords& place) {
  Parameters p = Parameters();  // also zeroes the bytes between members: see gpu/repointed_graph.h
  p.scalars = operands.scalars;
  p.count = static_cast<std::uint32_t>(part.walk.count);
  p.rank = static_cast<std::uint32_t>(part.walk.rank);
  for (int i = 0; i < part.walk.rank; ++i) p.sizes[i] = FastDivisor(part.walk.dims[part.walk.rank - 1 - i]);
  for (std::size_t k = 0; k < part.walk.strides.size(); ++k) {
    for (int i = 0; i < part.walk.rank; ++i) {
      p.strides[k][i] = static_cast<std::int32_t>(part.walk.strides[k][part.walk.rank - 1 - i]);
    }
  }
  p.source_count = static_cast<std::uint32_t>(part.walk.strides.size() - 1);
  for (std::size_t k = 0; k < p.source_count; ++k) {
    InputTable& input = p.inputs[k];
    if (k >= problem.inputs.size()) {
      input.first = part.offsets[k];
      continue;
    }
    const std::size_t size = SizeOf(problem.inputs[k].dtype);
    input.data =
        static_cast<const std::byte*>(operands.in[k]) + part.offsets[k] * static_cast<std::int64_t>(size);
    input.layout = LayoutOf(part.walk, part.walk.strides[k], input.data, size, pack);
  }
  p.result_count = static_cast<std::uint32_t>(code.results.size());
  for (int i = 0; i < problem.ResultCount(); ++i) {
    const std::size_t size = SizeOf(problem.ResultDType(i));
    ResultTable& result = p.results[i];
    result.data = static_cast<std::byte*>(i == 0 ? operands.out : operands.further[i - 1]) +
                  part.offsets[p.source_count] * static_cast<std::int64_t>(size);
    result.place = place(code.results[static_cast<std::size_t>(i)]);
    result.dtype = static_cast<std::uint32_t>(problem.ResultDType(i));
    result.layout = LayoutOf(part.walk, part.walk.of_result(), result.data, size, pack);
  }
  p.instruction_count = static_cast<std::uint32_t>(code.instructions.size());
  p.uniform_count = static_cast<std::uint32_t>(code.uniforms.size());
  for (std::size_t i = 0; i < code.instructions.size(); ++i) {
    const MapInstruction& from = code.instructions[i];
    const bool selects = from.code / kNumberTypes == static_cast<int>(MapOp::kWhere);
    Instruction& to = p.instructions[i];
    to.code = selects ? kWhere : codes.of[from.code];
    to.to = place(from.to);
    const bool loads = from.code == kLoadCode || from.code == kIndexCode;
    for (int k = 0; k < 3; ++k) to.from[k] = loads ? from.from[k] : place(from.from[k]);
    to.dtype = static_cast<std::uint32_t>(from.dtype);
    to.rounds = from.rounds;
  }
  std::copy(code.uniforms.begin(), code.uniforms.end(), p.uniforms);
  return p;
}

// The shared memory of the current device, in bytes.
struct SharedMemory {
  int of_block = 0, of_multiprocessor = 0;
};
cudaError_t AskSharedMemory(SharedMemory& memory) {
  int device = 0;
  if (const cudaError_t error = cudaGetDevice(&device); error != cudaSuccess) return error;
  const cudaError_t error =
      cudaDeviceGetAttribute(&memory.of_block, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
  if (error != cudaSuccess) return error;
  return cudaDeviceGetAttribute(&memory.of_multiprocessor, cudaDevAttrMaxSharedMemoryPerMultiprocessor,
                                device);
}

constexpr int kMaxThreadsOfMultiprocessor = 2048;
constexpr int kReservedBytes = 1024;  // shared memory that the system reserves for each block

// Launches an instance. Returns cudaErrorNotSupported if not even the values of one warp fit.
template <int kBytes, int kWords, bool kHeavy>
cudaError_t LaunchInstance(const MapProblem& problem, const MapPlan& plan, const Operands& operands,
                           const CudaContext& context, cudaStream_t stream) {
  SharedMemory memory;
  if (const cudaError_t error = AskSharedMemory(memory); error != cudaSuccess) return error;
  const MapCode& code = plan.code;
  const Tables tables(static_cast<unsigned>(plan.walk.strides.size() - 1),
                      static_cast<unsigned>(code.uniforms.size()));
  const auto bytes_of = [&](int threads) {
    return static_cast<int>(tables.slots * sizeof(uint4)) + code.slots * kWords * 16 * threads;
  };
  int threads = kMaxThreads;
  while (threads >= 32 && bytes_of(threads) > memory.of_block) threads /= 2;
  // Use fewer threads per block if more threads can then be resident.
  const auto resident = [&](int count) {
    return std::min(memory.of_multiprocessor / (bytes_of(count) + kReservedBytes) * count,
                    kMaxThreadsOfMultiprocessor);
  };
  while (threads > 64 && resident(threads / 2) > resident(threads)) threads /= 2;
  if (threads < 32) return cudaErrorNotSupported;
  const auto kernel = &Interpret<kBytes, kWords, kHeavy>;
  if (const cudaError_t error = AllowSharedBytes(kernel, memory.of_block); error != cudaSuccess) return error;
  const int pack = Word<kBytes>::kSize;
  const PlaceWords place = {.tables = tables, .of_slot = static_cast<std::uint32_t>(kWords * threads)};
  if (plan.walk.count == 0) return cudaSuccess;
  return ForEachPart({.walk = plan.walk}, [&](const Part& part) {
    const std::int64_t blocks = CeilDiv(part.walk.count, std::int64_t{threads} * kWords * pack);
    const std::int64_t most =
        std::int64_t{std::max(context.traits.multiprocessors, 1)} * std::max(resident(threads) / threads, 1);
    const Parameters parameters =
        ParametersOf(problem, code, kCodes<kBytes, kHeavy>, part, operands, pack, place);
    kernel<<<static_cast<unsigned>(std::min(blocks, most)), threads,
             static_cast<std::size_t>(bytes_of(threads)), stream>>>(parameters);
    return cudaGetLastError();
  });
}

}  // namespace

cudaError_t LaunchMapInterpreter(const MapProblem& problem, const MapPlan& plan, const Operands& operands,
                                 const CudaContext& context, cudaStream_t stream) {
  const auto launch = [&]<int kBytes, int kWords, bool kHeavy>() {
    return LaunchInstance<kBytes, kWords, kHeavy>(problem, plan, operands, context, stream);
  };
  const bool heavy = plan.code.weight == MapWeight::kHeavy;
  cudaError_t error = cudaErrorNotSupported;
  switch (plan.code.slot_bytes) {
    case 4:
      error = heavy ? launch.operator()<4, 2, true>() : launch.operator()<4, 2, false>();
      break;
    case 8:
      error = heavy ? launch.operator()<8, 2, true>() : launch.operator()<8, 2, false>();
      break;
    default:
      if (!heavy) error = launch.operator()<16, 2, false>();
  }
  if (error != cudaErrorNotSupported) return error;
  // For heavy functions of the largest numbers, and for maps of too many live values, of any type.
  return launch.operator()<16, 1, true>();
}

}  // namespace warpline
