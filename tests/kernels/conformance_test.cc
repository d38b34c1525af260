// Runs the suite of conformance.h on all backends of this build. Its own main, because the tests are made
// from what the backends list.
#include "tests/kernels/conformance.h"

#include <gtest/gtest.h>

#include <memory>

#include "server/device/backend.h"

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  const std::unique_ptr<warpline::Backend> cpu = warpline::testing::MakeTestBackend("cpu");
  const std::unique_ptr<warpline::Backend> cuda = warpline::testing::MakeTestBackend("cuda");
  if (cpu == nullptr) return 1;  // there is no machine without
  for (warpline::Backend* backend : {cpu.get(), cuda.get()}) {
    const char* const name = backend == cpu.get() ? "cpu" : "cuda";
    warpline::testing::RegisterShapeTests(name, backend);
    warpline::testing::RegisterSpecialTests(name, backend);
  }
  return RUN_ALL_TESTS();
}
