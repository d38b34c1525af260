// Rows whose results agree to rounding could change places without any other test's seeing it.
#include "kernels/cpu/cpu_variants.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <span>
#include <string_view>

#include "kernels/cpu/launchers.h"

namespace warpline {
namespace {

template <typename ProblemT>
CpuLaunch<ProblemT>* LaunchOf(std::span<const CpuVariant<ProblemT>> table, std::string_view name) {
  const auto row = std::find_if(table.begin(), table.end(), [&](const auto& r) { return r.name == name; });
  return row == table.end() ? nullptr : row->launch;
}

TEST(CpuVariantsTest, EachRowLaunchesWhatItsNameSays) {
  EXPECT_EQ(LaunchOf(CpuTransposeVariants(), "eigen"), &cpu::TransposeEigen);
  EXPECT_EQ(LaunchOf(CpuTransposeVariants(), "reference"), &cpu::TransposeReference);
  EXPECT_EQ(LaunchOf(CpuGemmVariants(), "openblas"), &cpu::GemmOpenblas);
  EXPECT_EQ(LaunchOf(CpuGemmVariants(), "eigen"), &cpu::GemmEigen);
  EXPECT_EQ(LaunchOf(CpuGemmVariants(), "reference"), &cpu::GemmReference);
  EXPECT_EQ(LaunchOf(CpuReduceVariants(), "eigen"), &cpu::ReduceEigen);
  EXPECT_EQ(LaunchOf(CpuReduceVariants(), "passes"), &cpu::ReducePasses);
  EXPECT_EQ(LaunchOf(CpuReduceVariants(), "reference"), &cpu::ReduceReference);
  EXPECT_EQ(LaunchOf(CpuMapVariants(), "blocks"), &cpu::MapBlocks);
}

}  // namespace
}  // namespace warpline
