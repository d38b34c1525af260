// A row of a variant table: one implementation of one operation on one backend.
//
// A table is an array in order of priority. The server chooses the first row that supports a problem. The
// last row is plain and always correct; it is also the oracle in tests of the other rows. A new
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

// The properties of a device that selection may use. All zero on the CPU.
struct DeviceTraits {
  int compute_capability = 0;  // 90 for 9.0
  int multiprocessors = 0;
  bool has_cublaslt = false;
  // The compute capability that the running device code was compiled for. A build without code for the device
  // uses code for an earlier one. 0: same as compute_capability.
  int code_capability = 0;

  // Returns whether the device itself can copy rows to shared memory (bulk copies).
  bool copies_bulk() const {
    return compute_capability >= 90 && (code_capability == 0 || code_capability >= 90);
  }
};

// Tells whether the result of a launch is still needed. Kernels on the CPU that may take long check it. If
// they stop early, the missing part of the result is not read.
struct Interest {
  bool (*ends)(const void* of) = nullptr;  // null: it never ends
  const void* of = nullptr;

  bool HasEnded() const { return ends != nullptr && ends(of); }
};

// The first out-of-range index of a program: that of the first step, and within this step the one at the
// smallest position among the indices. GPU kernels write it while they hold the lock.
struct BadIndex {
  static constexpr std::int32_t kNone = 0x7fffffff;

  std::int32_t step = kNone;
  std::int32_t locked = 0;
  std::int64_t place = 0, value = 0;
};

// The destination for reports of an out-of-range index; null: no report. `seen` is a copy that the host can
// read, if there is one.
struct BadIndexReport {
  BadIndex* found = nullptr;
  BadIndex* seen = nullptr;
  std::int32_t step = 0;
};

// The addresses of one launch, all in memory of the backend. `in` holds the operands in order: for a gemm A,
// B, then C if has_c, then the bias if has_bias; the inputs of a map; x and the indices of a take; x, the
// indices and the values of a put; x1, x2 and the sorter of a search; x for other operations. The server
// aligns base addresses to 256 bytes; kernels require only the alignment of an element. `scalars` points to
// ScalarCount(problem) values, and is null if that is 0. The workspace has at least the bytes that the row
// asked for. Its contents are not kept between launches.
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

// The cost of a variant, relative to what the rates of its device predict for the problem
// (server/plan/cost.h).
struct VariantCost {
  // Factors for the time at full rate: of moving each byte of the problem once, and of its arithmetic.
  double transfer = 1;
  double arithmetic = 1;
  // The work that one thread does sequentially. On the CPU it is the whole work of plain loops. On a GPU it
  // is the longest chain of loads that wait for one another. Unit: elements of the simplest sum. An element
  // of another loop may count as more or less than one.
  double serial = 0;
  // Number of kernels, or library calls on the CPU, that start one after another. Each adds a fixed time.
  double launches = 1;
};

// `Launch` is a function type of the backend: see kernels/cuda_variants.h and kernels/cpu/cpu_variants.h.
template <typename ProblemT, typename Launch>
struct Variant {
  std::string_view name;
  std::string_view summary;
  // True if repeated runs on the same device give the same bits.
  bool reproducible;
  bool (*supports_dtype)(DType);
  // True if the variant can run this problem, of a supported dtype, on such a device.
  bool (*supports)(const ProblemT&, const DeviceTraits&);
  // The scratch memory that it needs, in bytes.
  std::size_t (*workspace_bytes)(const ProblemT&, const DeviceTraits&);
  Launch* launch;
  // True if such a device has the variant at all; null: every device has it.
  bool (*available)(const DeviceTraits&) = nullptr;
  // True if the server may choose this variant by itself, for a problem that it supports; null: always. The
  // last row must have null.
  bool (*preferred)(const ProblemT&, const DeviceTraits&) = nullptr;
  // Returns the cost on such a device; null: VariantCost(). Admission uses this cost. It may be wrong by a
  // factor of two or three, but not by the factor of a hundred between an oracle and the server's choice.
  VariantCost (*cost)(const ProblemT&, const DeviceTraits&) = nullptr;
  // Further ways to run the variant, with the same cost and reproducibility. A launch may find that a
  // configuration does not exist. They are only used if a request names them, never by the rules above.
  std::span<const std::string_view> configurations = {};
  // An older name. It lets the server choose among the rows of this group. Reports never use it.
  std::string_view group = {};
  // Its position in the ladder (kernels/ladder), from 1, the plainest; 0: not on the ladder.
  int step = 0;
};

// Returns how to run the row for this name: 0 for the row itself, i for its configuration i - 1; nothing if
// the name does not belong to this row.
template <typename Row>
std::optional<int> ConfigurationNamed(const Row& row, std::string_view name) {
  if (row.name == name) return 0;
  for (std::size_t i = 0; i < row.configurations.size(); ++i) {
    if (row.configurations[i] == name) return static_cast<int>(i) + 1;
  }
  return std::nullopt;
}

// Returns whether a request for `name` may mean the row: by its own name, a configuration's name, or its
// group.
template <typename Row>
bool Answers(const Row& row, std::string_view name) {
  return ConfigurationNamed(row, name).has_value() || (!name.empty() && row.group == name);
}

// Suits: true if a request may ask for the row by name. MayChoose: true if the server may choose the row,
// which must be reproducible.
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
