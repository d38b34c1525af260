// A row of a variant table: one implementation of one operation on one backend.
//
// A table is a priority-ordered array: the first row that supports a problem is the server's choice, the
// last row is the plain, always-correct one that also serves as the oracle of the others' tests. Adding an
// implementation is one file and one row.
#ifndef WARPLINE_KERNELS_VARIANT_H_
#define WARPLINE_KERNELS_VARIANT_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "kernels/dtype.h"
#include "kernels/problem.h"

namespace warpline {

// The properties of a device that selection may know. Zeros on the CPU.
struct DeviceTraits {
  int compute_capability = 0;  // 90 for 9.0
  int multiprocessors = 0;
  bool has_cublaslt = false;
  // The capability that the code which runs there was compiled for. A build without code for the device falls
  // back on that for an earlier one. 0: the same.
  int code_capability = 0;

  // Returns whether kernels copy rows to shared memory by the device itself.
  bool copies_bulk() const {
    return compute_capability >= 90 && (code_capability == 0 || code_capability >= 90);
  }
};

// Says whether a launch is wanted still, for kernels on the CPU that may take long: what they have not
// computed yet is not read if they stop.
struct Interest {
  bool (*ends)(const void* of) = nullptr;  // null: it never ends
  const void* of = nullptr;

  bool HasEnded() const { return ends != nullptr && ends(of); }
};

// The first index of a program that is out of range: of the step that comes first, that at the least place
// among its indices. Kernels on a GPU write it under the lock.
struct BadIndex {
  static constexpr std::int32_t kNone = 0x7fffffff;

  std::int32_t step = kNone;
  std::int32_t locked = 0;
  std::int64_t place = 0, value = 0;
};

// The place where kernels report such an index; null: nowhere. `seen` is a copy of it that the host can read,
// if there is one.
struct BadIndexReport {
  BadIndex* found = nullptr;
  BadIndex* seen = nullptr;
  std::int32_t step = 0;
};

// Addresses for one launch, all in the memory of the backend. `in` holds the operands in their order: A, B,
// then C if has_c, then the bias if has_bias for a gemm; the inputs of a map; x and the indices of a take; x,
// the indices and the values of a put; x1, x2 and the sorter of a search; x otherwise. Bases are aligned to
// 256 bytes by the server; kernels require only the alignment of an element. `scalars` points at
// ScalarCount(problem) of them, and is null if that is 0. The workspace has the bytes the row asked for, or
// more, and holds nothing between launches.
struct Operands {
  const void* in[kMaxMapInputs] = {};
  void* out = nullptr;
  void* further[kMaxMapOutputs - 1] =
      {};  // MapProblem::further, the indices of a sort with values, or the count of a compress
  const StepScalars* scalars = nullptr;
  void* workspace = nullptr;
  std::size_t workspace_bytes = 0;
  Interest interest;
  BadIndexReport bad_index;
};

// The cost of a variant, beyond what the rates of its device say about the problem (server/plan/cost.h).
struct VariantCost {
  // Times as long as moving each byte of the problem once, and as doing its arithmetic, take at full rate.
  double transfer = 1;
  double arithmetic = 1;
  // The work that one thread does element after element. On the CPU it is all of the work of plain loops. On
  // a GPU it is the longest chain of loads that wait for one another. Unit: elements of the plainest sum. An
  // element of another loop counts more or less than one.
  double serial = 0;
  // Kernels, or library calls on the CPU, that start one after the other: each takes a fixed time of its own.
  double launches = 1;
};

// `Launch` is a function type of the backend: see kernels/cuda_variants.h and kernels/cpu/cpu_variants.h.
template <typename ProblemT, typename Launch>
struct Variant {
  std::string_view name;
  std::string_view summary;
  // The same bits from run to run on the same device.
  bool reproducible;
  bool (*supports_dtype)(DType);
  // True if the variant can run this problem, of a supported dtype, on such a device.
  bool (*supports)(const ProblemT&, const DeviceTraits&);
  // Scratch memory it needs, in bytes.
  std::size_t (*workspace_bytes)(const ProblemT&, const DeviceTraits&);
  Launch* launch;
  // True if such a device has the variant at all; null: every device has it.
  bool (*available)(const DeviceTraits&) = nullptr;
  // True if the server's own choice may be this variant, for a problem that it supports; null: it may. The
  // last row must have null.
  bool (*preferred)(const ProblemT&, const DeviceTraits&) = nullptr;
  // Returns the cost on such a device; null: VariantCost(). Admission decides by this cost. The cost may be
  // wrong by a factor of two or three. It must not be wrong by the hundred that lies between an oracle and
  // the server's choice.
  VariantCost (*cost)(const ProblemT&, const DeviceTraits&) = nullptr;
  // Further ways to run it, of the same cost and as reproducible, whose launch may find out that there are
  // not so many. They are taken by their name only, never by the rules above.
  std::span<const std::string_view> configurations = {};
  // An older name, which asks for the server's choice among the rows that have it. Nothing is reported by it.
  std::string_view group = {};
  // Its place in the ladder that docs/kernels.md climbs, from the plainest, 1; 0: beside the ladder.
  int step = 0;
};

// Which way to run the row has this name: 0 the row itself, i its configuration i - 1; nothing if it is not
// of this row.
template <typename Row>
std::optional<int> ConfigurationNamed(const Row& row, std::string_view name) {
  if (row.name == name) return 0;
  for (std::size_t i = 0; i < row.configurations.size(); ++i) {
    if (row.configurations[i] == name) return static_cast<int>(i) + 1;
  }
  return std::nullopt;
}

// Returns whether a request that names `name` may mean the row: by its own name, by that of a configuration,
// or by that of its group.
template <typename Row>
bool Answers(const Row& row, std::string_view name) {
  return ConfigurationNamed(row, name).has_value() || (!name.empty() && row.group == name);
}

// Suits: true if a request may ask for the row by its name. MayChoose: true if the row may be the server's
// choice, which is reproducible.
template <typename Row, typename ProblemT>
bool Suits(const Row& row, const ProblemT& problem, const DeviceTraits& traits) {
  return row.supports_dtype(problem.dtype) && row.supports(problem, traits);
}
template <typename Row, typename ProblemT>
bool MayChoose(const Row& row, const ProblemT& problem, const DeviceTraits& traits) {
  return Suits(row, problem, traits) && row.reproducible &&
         (row.preferred == nullptr || row.preferred(problem, traits));
}

}  // namespace warpline

#endif  // WARPLINE_KERNELS_VARIANT_H_
