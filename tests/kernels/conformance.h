// One suite for every backend: each operation, variant, dtype and awkward shape goes through Backend and
// Lane as in production, and is compared with tests/testing/reference.h.
//
// Tests are named BACKEND/OP.VARIANT/DTYPE, for example cpu/gemm.openblas/f32; the variant `choice` is the
// backend's own. Shapes are looped over within a test, and each that fails is a failure message of its own.
#ifndef WARPLINE_TESTS_KERNELS_CONFORMANCE_H_
#define WARPLINE_TESTS_KERNELS_CONFORMANCE_H_

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/program.h"
#include "server/device/backend.h"
#include "tests/testing/element.h"

namespace warpline::testing {

// "cpu" or "cuda"; null if this build or this machine has none. Defined in test_backends.cc.
std::unique_ptr<Backend> MakeTestBackend(std::string_view name);

// The results that a launch left behind.
struct Outcome {
  std::vector<Bytes> outputs;  // in the order of Program::outputs
  std::vector<std::string> variants;
};

// A lane of device 0 and host memory of the backend, which must outlive it. For one thread.
class Harness {
 public:
  explicit Harness(Backend& backend);

  Backend& backend() { return backend_; }

  // Stages the inputs, poisons the rest, launches, waits. An error also if the launch wrote outside of the
  // outputs or into the inputs. If they are `shared`, the tensors lie in memory of their own, as those in
  // shared regions do, and are unaligned.
  absl::StatusOr<Outcome> Run(const Program& program, const std::vector<Bytes>& inputs, bool shared = false);
  // One problem in four; all of them if $WARPLINE_CONFORMANCE_SHARED is set.
  bool NextIsShared();

 private:
  absl::Status Reserve(std::size_t bytes);

  Backend& backend_;
  absl::StatusOr<std::unique_ptr<Lane>> lane_;
  Buffer memory_;
  int problems_ = 0;
};

// A program of the one step. `variant` empty: the backend's choice. Scalars beyond ScalarCount are ignored.
Program MakeProgram(const Problem& problem, std::string_view variant,
                    std::vector<StepScalars> scalars = {{}});

// Runs the problem with these inputs and compares; "" if all is well, else what is wrong. `repeat` runs it
// twice and wants the same bits.
std::string Check(Harness& harness, const Problem& problem, std::string_view variant,
                  const std::vector<Bytes>& inputs, const std::vector<StepScalars>& scalars = {{}},
                  bool repeat = false);

// Random operands for a gemm, and NaN where nothing may read: between the end of a row and the next.
std::vector<Bytes> RandomGemmOperands(const GemmProblem& problem, std::uint64_t seed);

// Registers the tests with gtest. The backend must outlive the run; null registers one test, which skips.
void RegisterShapeTests(std::string_view backend_name, Backend* backend);    // conformance_shapes.cc
void RegisterSpecialTests(std::string_view backend_name, Backend* backend);  // conformance_special.cc

}  // namespace warpline::testing

#endif  // WARPLINE_TESTS_KERNELS_CONFORMANCE_H_
