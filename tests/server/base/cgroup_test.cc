#include "server/base/cgroup.h"

#include <gtest/gtest.h>

#include <string>

namespace warpline {
namespace {

TEST(CgroupPathTest, FindsTheHierarchyOfAController) {
  const std::string text =
      "9:name=systemd:/\n4:memory:/a/b\n2:cpu,cpuacct:/c\n1:cpuset:/with:colons\n0::/unified/one\n";
  EXPECT_EQ(CgroupPath(text, "memory"), "/a/b");
  EXPECT_EQ(CgroupPath(text, "cpu"), "/c");
  EXPECT_EQ(CgroupPath(text, "cpuacct"), "/c");
  EXPECT_EQ(CgroupPath(text, "cpuset"), "/with:colons");
  EXPECT_EQ(CgroupPath(text, ""), "/unified/one");
}

TEST(CgroupPathTest, IsTheRootWhereItCannotBeTold) {
  for (const char* text : {"", "\n", "4:cpu:/a\n", "memory", "4:memory", "4:memory:relative"}) {
    EXPECT_EQ(CgroupPath(text, "memory"), "/") << text;
  }
}

TEST(CgroupFoldersTest, EndAtTheRoot) {
  EXPECT_EQ(CgroupFolders("").back(), "/sys/fs/cgroup");
  EXPECT_EQ(CgroupFolders("memory").back(), "/sys/fs/cgroup/memory");
}

}  // namespace
}  // namespace warpline
