#include "client/cli/assignment.h"

#include <gtest/gtest.h>

namespace warpline::client {
namespace {

void Expect(const char* word, const char* name, const char* type, const char* path) {
  const Assignment assignment = SplitAssignment(word);
  EXPECT_EQ(assignment.name, name) << word;
  EXPECT_EQ(assignment.type, type) << word;
  EXPECT_EQ(assignment.path, path) << word;
}

TEST(AssignmentTest, SplitsAtTheFirstEqualsSign) {
  Expect("a=x.npy", "a", "", "x.npy");
  Expect("a.1-b_c=k=v.npy", "a.1-b_c", "", "k=v.npy");
  Expect("a=", "a", "", "");
  Expect("w:bf16=/tmp/w.npy", "w", "bf16", "/tmp/w.npy");
}

TEST(AssignmentTest, LeavesPathsAlone) {
  for (const char* path :
       {"x.npy", "-", "./a=b.npy", "/tmp/a=b", "=x", "a b=c", "a:=b", ":f32=b", "a:b/c=d"}) {
    Expect(path, "", "", path);
  }
}

}  // namespace
}  // namespace warpline::client
