// Resident tensors on a GPU: copies to and from them, and programs whose tensors lie there.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>
#include <future>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "server/device/cuda_backend.h"
#include "tests/gpu/gpu_test.h"
#include "tests/gpu/lane_runs.h"
#include "tests/testing/programs.h"

namespace warpline {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;

class ResidentGpuTest : public GpuTest {
 protected:
  void Open(CudaBackendOptions options) {
    options.devices = {0};
    options.metrics = &metrics_;
    options.resident_bytes = 256 * kMiB;
    auto backend = CreateCudaBackend(options);
    ASSERT_TRUE(backend.ok()) << backend.status();
    backend_ = *std::move(backend);
    lane_ = *backend_->CreateLane(0);
    host_ = *backend_->AllocateHost(64 * kMiB);
  }
  // Copies between pinned memory and the device, and waits.
  void Copy(Transfer::Direction direction, std::span<std::byte> on_host, std::span<std::byte> on_device) {
    std::promise<absl::Status> ended;
    backend_->Start({.direction = direction, .device = 0, .on_host = on_host, .on_device = on_device},
                    [&](absl::Status status) { ended.set_value(std::move(status)); });
    const absl::Status status = ended.get_future().get();
    ASSERT_TRUE(status.ok()) << status;
  }
  Buffer Resident(std::size_t bytes) {
    auto memory = backend_->AllocateResident(0, bytes);
    EXPECT_TRUE(memory.ok()) << memory.status();
    return *std::move(memory);
  }

  // Runs the program with these tensors bound and the others inline. `data` is the content of all inputs, one
  // behind the other; returns that of all outputs.
  std::vector<std::byte> Run(const Program& program, const std::vector<int>& bound,
                             const std::vector<std::byte>& data) {
    const MemoryPlan plan = PlanMemory(program, bound);
    const std::string signature = Signature(program, bound);
    Bindings bindings = MakeBindings(plan);
    const std::span<std::byte> input = host_.bytes().first(plan.input_bytes);
    const std::span<std::byte> output = host_.bytes().subspan(32 * kMiB, plan.output_bytes);
    const std::span<std::byte> staging = host_.bytes().subspan(48 * kMiB);
    std::size_t at = 0;
    for (Binding& binding : bindings) {
      const std::size_t bytes = program.tensors[static_cast<std::size_t>(binding.tensor)].bytes;
      const bool is_bound = binding.staged.area == Area::kResident;
      if (is_bound) binding.memory = Resident(bytes);
      if (binding.tensor >= program.num_inputs) continue;
      std::byte* const to = is_bound ? staging.data() : input.data() + binding.staged.offset;
      std::memcpy(to, data.data() + at, bytes);
      if (is_bound) Copy(Transfer::Direction::kToDevice, staging.first(bytes), binding.memory.bytes());
      at += bytes;
    }
    for (std::size_t i = 0; i < program.steps.size(); ++i) {
      if (!ReadsScalars(program.steps[i].problem)) continue;
      std::memcpy(input.data() + plan.scalars[i], &program.steps[i].scalars, sizeof(StepScalars));
    }
    std::promise<LaunchReport> ended;
    lane_->Launch({&program, &plan, signature, bindings, input, output, backend_->DeviceBytes(program, plan)},
                  [&](LaunchReport report) { ended.set_value(std::move(report)); });
    const LaunchReport report = ended.get_future().get();
    EXPECT_TRUE(report.status.ok()) << report.status;
    std::vector<std::byte> result;
    for (const int tensor : program.outputs) {
      const std::size_t bytes = program.tensors[static_cast<std::size_t>(tensor)].bytes;
      for (Binding& binding : bindings) {
        if (binding.tensor != tensor) continue;
        const bool is_bound = binding.staged.area == Area::kResident;
        if (is_bound) Copy(Transfer::Direction::kToHost, staging.first(bytes), binding.memory.bytes());
        const std::byte* const from = is_bound ? staging.data() : output.data() + binding.staged.offset;
        result.insert(result.end(), from, from + bytes);
      }
    }
    return result;
  }

  // Every choice of bound tensors gives the bits that all of them inline give.
  void ExpectTheSameHoweverItIsBound(const Program& program) {
    std::size_t bytes = 0;
    for (int i = 0; i < program.num_inputs; ++i) bytes += program.tensors[static_cast<std::size_t>(i)].bytes;
    std::vector<std::byte> data(bytes);
    std::mt19937 random(1);
    for (std::byte& byte : data) byte = static_cast<std::byte>(random() % 0x39 + 1);
    std::vector<int> ends;
    for (int i = 0; i < program.num_inputs; ++i) ends.push_back(i);
    ends.insert(ends.end(), program.outputs.begin(), program.outputs.end());
    const std::vector<std::byte> expected = Run(program, {}, data);
    for (unsigned choice = 1; choice < 1U << ends.size(); ++choice) {
      std::vector<int> bound;
      for (std::size_t i = 0; i < ends.size(); ++i) {
        if ((choice >> i & 1U) != 0) bound.push_back(ends[i]);
      }
      // Twice: built, and known.
      for (int i = 0; i < 2; ++i) EXPECT_TRUE(Run(program, bound, data) == expected) << "choice " << choice;
    }
  }

  static Program Product(std::int64_t n, DType dtype) {
    const GemmProblem problem{.dtype = dtype, .m = n, .n = n, .k = n, .lda = n, .ldb = n, .ldc = n};
    const TensorSpec spec{dtype, {n, n}, static_cast<std::size_t>(n * n) * SizeOf(dtype)};
    Program program = OneStepProgram(problem, {spec, spec}, spec);
    program.steps[0].scalars = {.alpha_f32 = 2, .alpha_f64 = 2};
    return program;
  }

  Metrics metrics_;
  std::unique_ptr<Backend> backend_;
  std::unique_ptr<Lane> lane_;
  Buffer host_;
};

TEST_F(ResidentGpuTest, WhatIsCopiedInComesOut) {
  ASSERT_NO_FATAL_FAILURE(Open({}));
  const Buffer tensor = Resident(20 * kMiB + 5);
  EXPECT_EQ(tensor.place().kind, Place::Kind::kDevice);
  const std::span<std::byte> in = host_.bytes().first(tensor.bytes().size());
  const std::span<std::byte> out = host_.bytes().subspan(32 * kMiB, tensor.bytes().size());
  for (std::size_t i = 0; i < in.size(); ++i) in[i] = static_cast<std::byte>(i * 131 + i / 251);
  // Several at a time, in pieces that do not end where words do.
  constexpr std::size_t kPiece = 3 * kMiB + 1;
  for (const auto direction : {Transfer::Direction::kToDevice, Transfer::Direction::kToHost}) {
    std::vector<std::promise<absl::Status>> ends((in.size() + kPiece - 1) / kPiece);
    for (std::size_t i = 0; i < ends.size(); ++i) {
      const std::size_t begin = i * kPiece, bytes = std::min(kPiece, in.size() - begin);
      const auto& host = direction == Transfer::Direction::kToDevice ? in : out;
      backend_->Start({.direction = direction,
                       .device = 0,
                       .on_host = host.subspan(begin, bytes),
                       .on_device = tensor.bytes().subspan(begin, bytes)},
                      [&end = ends[i]](absl::Status status) { end.set_value(std::move(status)); });
    }
    for (auto& end : ends) EXPECT_TRUE(end.get_future().get().ok());
  }
  EXPECT_EQ(std::memcmp(in.data(), out.data(), in.size()), 0);
}

TEST_F(ResidentGpuTest, MemoryIsBoundedAndComesBack) {
  ASSERT_NO_FATAL_FAILURE(Open({}));
  EXPECT_EQ(backend_->devices()[0].resident_bytes, 256 * kMiB);
  const auto used = [&] { return metrics_.DeviceMemoryBytes(0, "resident_used").Value(); };
  for (int i = 0; i < 100; ++i) {
    const Buffer block = Resident(200 * kMiB);
    EXPECT_EQ(used(), 200.0 * kMiB);
  }
  EXPECT_EQ(used(), 0);
  EXPECT_EQ(backend_->AllocateResident(0, 257 * kMiB).status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(backend_->AllocateResident(0, 0).ok());
}

TEST_F(ResidentGpuTest, ATransposeGivesTheSameHoweverItIsBound) {
  ASSERT_NO_FATAL_FAILURE(Open({}));
  ExpectTheSameHoweverItIsBound(TransposeProgram({.dtype = DType::kF32, .shape = {37, 53}, .perm = {1, 0}}));
  ExpectTheSameHoweverItIsBound(
      TransposeProgram({.dtype = DType::kU8, .shape = {1000, 1003}, .perm = {1, 0}}));
}

TEST_F(ResidentGpuTest, AProductGivesTheSameHoweverItIsBound) {
  ASSERT_NO_FATAL_FAILURE(Open({}));
  ExpectTheSameHoweverItIsBound(Product(64, DType::kF32));
  ExpectTheSameHoweverItIsBound(Product(256, DType::kBF16));
}

TEST_F(ResidentGpuTest, AProgramThatTakesAPoolGivesTheSameHoweverItIsBound) {
  CudaBackendOptions options;
  options.lane_bytes = kTensorAlignment;
  ASSERT_NO_FATAL_FAILURE(Open(options));
  ExpectTheSameHoweverItIsBound(Product(128, DType::kF32));
}

TEST_F(ResidentGpuTest, AChainGivesTheSameHoweverItIsBound) {
  ASSERT_NO_FATAL_FAILURE(Open({}));
  // y = transpose(x), then z = transpose(y): both are outputs.
  Program program = TransposeProgram({.dtype = DType::kF32, .shape = {100, 200}, .perm = {1, 0}});
  program.tensors.push_back(program.tensors[0]);
  Step back = program.steps[0];
  back.problem = TransposeProblem{.dtype = DType::kF32, .shape = {200, 100}, .perm = {1, 0}};
  back.inputs = {1};
  back.output = 2;
  program.steps.push_back(back);
  program.outputs.push_back(2);
  ExpectTheSameHoweverItIsBound(program);
}

}  // namespace
}  // namespace warpline
