#include "kernels/transpose/plans.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "tests/kernels/transpose/problem.h"

namespace warpline {
namespace {

class TransposePlansTest : public ::testing::Test {
 protected:
  std::shared_ptr<const TransposePlan> Get(const TransposeProblem& problem, std::uintptr_t in = 256,
                                           std::uintptr_t out = 512, int multiprocessors = 132) {
    return plans_.Get(problem, {.compute_capability = 90, .multiprocessors = multiprocessors},
                      reinterpret_cast<const void*>(in), reinterpret_cast<const void*>(out));
  }
  TransposePlans plans_{/*max_plans=*/8};
};

TEST_F(TransposePlansTest, AreMadeOnceForEachProblemAndAlignment) {
  const TransposeProblem square = MakeTranspose({33, 31}, {1, 0}), other = MakeTranspose({31, 33}, {1, 0});
  for (int i = 0; i < 10000; ++i) {
    const auto offset = static_cast<std::uintptr_t>(4 * (i % 2));
    EXPECT_EQ(Get(square, 256 + offset)->kernel, TransposeKernel::kBox);
    Get(other, 256, (std::uintptr_t{1} << 20) + 64 * static_cast<std::uintptr_t>(i));
  }
  EXPECT_EQ(plans_.made(), 3);
}

TEST_F(TransposePlansTest, DifferWithEverythingThatTheChoiceDependsOn) {
  const TransposeProblem problem = MakeTranspose({40, 50, 60}, {2, 1, 0});
  TransposeProblem type = problem, axes = problem;
  type.dtype = DType::kU8;
  axes.perm = {1, 0, 2};
  Get(problem);
  Get(type);
  Get(axes);
  Get(MakeTranspose({40, 50, 60}, {2, 1, 0}, /*row_stride=*/64));
  Get(problem, 256, 512, /*multiprocessors=*/114);
  Get(problem, 260, 512);
  Get(problem, 256, 516);
  EXPECT_EQ(plans_.made(), 7);
}

TEST_F(TransposePlansTest, AreBounded) {
  const auto kept = Get(MakeTranspose({7, 7}, {1, 0}));
  for (std::int64_t size = 8; size < 100; ++size) Get(MakeTranspose({size, 7}, {1, 0}));
  EXPECT_LE(plans_.size(), 8u);
  EXPECT_EQ(kept->kernel, TransposeKernel::kBox) << "a plan in use outlives its place";
}

TEST_F(TransposePlansTest, ThreadsShareThem) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([this] {
      for (int i = 0; i < 2000; ++i) {
        ASSERT_EQ(Get(MakeTranspose({33 + i % 4, 31}, {1, 0}))->kernel, TransposeKernel::kBox);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_LE(plans_.made(), 4 * 4) << "at first, each thread may make each";
  EXPECT_EQ(plans_.size(), 4u);
}

}  // namespace
}  // namespace warpline
