// Tensors with memory of their own on a GPU: copies to and from resident ones, and programs whose tensors are
// resident or lie in shared regions.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <future>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "server/device/cuda_backend.h"
#include "server/memory/mapped_memory.h"
#include "tests/gpu/gpu_test.h"
#include "tests/gpu/lane_runs.h"
#include "tests/testing/programs.h"

namespace warpline {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;

class OwnMemoryGpuTest : public GpuTest {
 protected:
  void Open(CudaBackendOptions options) {
    options.devices = {"0"};
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

  enum class Lies { kInline, kResident, kShared, kSharedMisaligned };

  // Runs the program with its inputs, in order, and then its outputs lying so. `data` is the content of all
  // inputs, one behind the other; returns that of all outputs.
  std::vector<std::byte> Run(const Program& program, const std::vector<Lies>& lies,
                             const std::vector<std::byte>& data) {
    OwnMemory own;
    const std::vector<int> ends = Ends(program);
    for (std::size_t i = 0; i < ends.size(); ++i) {
      if (lies[i] == Lies::kResident) own.resident.push_back(ends[i]);
      if (lies[i] >= Lies::kShared) own.shared.push_back(ends[i]);
    }
    const MemoryPlan plan = PlanMemory(program, own);
    const CompiledProgram compiled = *backend_->Compile(program, plan);
    Bindings bindings = MakeBindings(plan);
    const std::span<std::byte> input = host_.bytes().first(plan.input_bytes);
    const std::span<std::byte> output = host_.bytes().subspan(16 * kMiB, plan.output_bytes);
    const std::span<std::byte> staging = host_.bytes().subspan(32 * kMiB, 16 * kMiB);
    std::span<std::byte> shared = host_.bytes().subspan(48 * kMiB);
    std::size_t at = 0;
    for (std::size_t i = 0; i < ends.size(); ++i) {
      Binding& binding = *std::find_if(bindings.begin(), bindings.end(),
                                       [&](const Binding& candidate) { return candidate.tensor == ends[i]; });
      const TensorSpec& spec = program.tensors[static_cast<std::size_t>(ends[i])];
      std::span<std::byte> to = input.subspan(0);
      switch (lies[i]) {
        case Lies::kInline:
          to = (binding.tensor < program.num_inputs ? input : output)
                   .subspan(binding.staged.offset, spec.bytes);
          break;
        case Lies::kResident:
          binding.memory = Resident(spec.bytes);
          to = staging.first(spec.bytes);
          break;
        case Lies::kShared:
        case Lies::kSharedMisaligned: {
          const std::size_t skew = lies[i] == Lies::kShared ? 0 : SizeOf(spec.dtype);
          to = shared.subspan(skew, spec.bytes);
          binding.memory = Buffer(to, {.kind = Place::Kind::kPinned}, nullptr);
          shared =
              shared.subspan((skew + spec.bytes) / kTensorAlignment * kTensorAlignment + kTensorAlignment);
          break;
        }
      }
      if (binding.tensor >= program.num_inputs) {
        std::fill(to.begin(), to.end(), std::byte{0xee});
        continue;
      }
      std::memcpy(to.data(), data.data() + at, spec.bytes);
      if (lies[i] == Lies::kResident) Copy(Transfer::Direction::kToDevice, to, binding.memory.bytes());
      at += spec.bytes;
    }
    for (std::size_t i = 0; i < program.steps.size(); ++i) {
      std::vector<StepScalars> scalars = program.steps[i].scalars;
      scalars.resize(static_cast<std::size_t>(ScalarCount(program.steps[i].problem)));
      if (scalars.empty()) continue;
      std::memcpy(input.data() + plan.scalars[i], scalars.data(), scalars.size() * sizeof(StepScalars));
    }
    std::promise<LaunchReport> ended;
    lane_->Launch({&program, &plan, compiled.program.get(), bindings, input, output},
                  [&](LaunchReport report) { ended.set_value(std::move(report)); });
    const LaunchReport report = ended.get_future().get();
    EXPECT_TRUE(report.status.ok()) << report.status;
    std::vector<std::byte> result;
    for (const int tensor : program.outputs) {
      for (Binding& binding : bindings) {
        if (binding.tensor != tensor) continue;
        std::span<std::byte> from = binding.memory.bytes();
        const std::size_t bytes = program.tensors[static_cast<std::size_t>(tensor)].bytes;
        if (binding.staged.area == Area::kOutput) from = output.subspan(binding.staged.offset, bytes);
        if (binding.staged.area == Area::kResident) {
          from = staging.first(bytes);
          Copy(Transfer::Direction::kToHost, from, binding.memory.bytes());
        }
        result.insert(result.end(), from.begin(), from.end());
      }
    }
    return result;
  }

  static std::vector<int> Ends(const Program& program) {
    std::vector<int> ends;
    for (int i = 0; i < program.num_inputs; ++i) ends.push_back(i);
    ends.insert(ends.end(), program.outputs.begin(), program.outputs.end());
    return ends;
  }

  // Wherever the tensors lie, the result has the bits that it has with all of them inline.
  void ExpectTheSameHoweverItIsBound(const Program& program) {
    std::size_t bytes = 0;
    for (int i = 0; i < program.num_inputs; ++i) bytes += program.tensors[static_cast<std::size_t>(i)].bytes;
    std::vector<std::byte> data(bytes);
    std::mt19937 random(1);
    for (std::byte& byte : data) byte = static_cast<std::byte>(random() % 0x39 + 1);
    const std::size_t ends = Ends(program).size();
    const std::vector<std::byte> expected = Run(program, std::vector<Lies>(ends, Lies::kInline), data);
    for (unsigned choice = 1; choice < 1U << (2 * ends); ++choice) {
      std::vector<Lies> lies;
      for (std::size_t i = 0; i < ends; ++i) lies.push_back(static_cast<Lies>(choice >> (2 * i) & 3U));
      // Twice: built, and known.
      for (int i = 0; i < 2; ++i) EXPECT_TRUE(Run(program, lies, data) == expected) << "choice " << choice;
    }
  }

  static Program Product(std::int64_t n, DType dtype) {
    const GemmProblem problem{.dtype = dtype, .m = n, .n = n, .k = n, .lda = n, .ldb = n, .ldc = n};
    const TensorSpec spec{dtype, {n, n}, static_cast<std::size_t>(n * n) * SizeOf(dtype)};
    Program program = OneStepProgram(problem, {spec, spec}, spec);
    program.steps[0].scalars = {{.alpha_f32 = 2, .alpha_f64 = 2}};
    return program;
  }

  Metrics metrics_;
  std::unique_ptr<Backend> backend_;
  std::unique_ptr<Lane> lane_;
  Buffer host_;
};

TEST_F(OwnMemoryGpuTest, WhatIsCopiedInComesOut) {
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

TEST_F(OwnMemoryGpuTest, MemoryIsBoundedAndComesBack) {
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

TEST_F(OwnMemoryGpuTest, ATransposeGivesTheSameHoweverItIsBound) {
  ASSERT_NO_FATAL_FAILURE(Open({}));
  ExpectTheSameHoweverItIsBound(TransposeProgram({.dtype = DType::kF32, .shape = {37, 53}, .perm = {1, 0}}));
  ExpectTheSameHoweverItIsBound(
      TransposeProgram({.dtype = DType::kU8, .shape = {1000, 1003}, .perm = {1, 0}}));
}

// Large enough to be cut, with pieces that are copied from the regions and to them.
TEST_F(OwnMemoryGpuTest, ATransposeInPiecesGivesTheSameHoweverItIsBound) {
  ASSERT_NO_FATAL_FAILURE(Open({}));
  ExpectTheSameHoweverItIsBound(
      TransposeProgram({.dtype = DType::kF32, .shape = {1024, 1536}, .perm = {1, 0}}));
}

TEST_F(OwnMemoryGpuTest, ReductionsGiveTheSameHoweverTheyAreBound) {
  ASSERT_NO_FATAL_FAILURE(Open({}));
  for (const std::uint32_t axes : {1U, 2U, 3U}) {
    const ReduceProblem problem{
        .op = ReduceOp::kMax, .dtype = DType::kU8, .shape = {333, 1001}, .axes_mask = axes};
    const std::int64_t results = axes == 1 ? 1001 : axes == 2 ? 333 : 1;
    ExpectTheSameHoweverItIsBound(OneStepProgram(problem, {{DType::kU8, {333, 1001}, 333 * 1001}},
                                                 {DType::kU8, {results}, static_cast<std::size_t>(results)}));
  }
}

TEST_F(OwnMemoryGpuTest, RegisteredMemoryIsAddressableAndGoes) {
  ASSERT_NO_FATAL_FAILURE(Open({}));
  // Repeats so often that a device could run out of something.
  for (int i = 0; i < 200; ++i) {
    Buffer memory = *MapMemory(kMiB);
    std::memset(memory.bytes().data(), i + 1, kMiB);
    auto registered = backend_->RegisterHost(memory.bytes());
    ASSERT_TRUE(registered.ok()) << registered.status();
    const Buffer tensor = Resident(kMiB);
    Copy(Transfer::Direction::kToDevice, memory.bytes(), tensor.bytes());
    std::memset(memory.bytes().data(), 0, kMiB);
    Copy(Transfer::Direction::kToHost, memory.bytes(), tensor.bytes());
    ASSERT_EQ(memory.bytes()[kMiB - 1], static_cast<std::byte>(i + 1));
  }
}

TEST_F(OwnMemoryGpuTest, AProductGivesTheSameHoweverItIsBound) {
  ASSERT_NO_FATAL_FAILURE(Open({}));
  ExpectTheSameHoweverItIsBound(Product(64, DType::kF32));
  ExpectTheSameHoweverItIsBound(Product(256, DType::kBF16));
}

TEST_F(OwnMemoryGpuTest, AProgramThatTakesAPoolGivesTheSameHoweverItIsBound) {
  CudaBackendOptions options;
  options.lane_bytes = kTensorAlignment;
  ASSERT_NO_FATAL_FAILURE(Open(options));
  ExpectTheSameHoweverItIsBound(Product(128, DType::kF32));
}

TEST_F(OwnMemoryGpuTest, AChainGivesTheSameHoweverItIsBound) {
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
