// Base of the tests that need a GPU: they skip, and say so, where there is none.
#ifndef WARPLINE_TESTS_GPU_GPU_TEST_H_
#define WARPLINE_TESTS_GPU_GPU_TEST_H_

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

namespace warpline {

class GpuTest : public ::testing::Test {
 protected:
  void SetUp() override {
    int count = 0;
    if (cudaGetDeviceCount(&count) != cudaSuccess || count == 0) GTEST_SKIP() << "no GPU on this machine";
  }
};

}  // namespace warpline

#endif  // WARPLINE_TESTS_GPU_GPU_TEST_H_
