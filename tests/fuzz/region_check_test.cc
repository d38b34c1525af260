// Random conversations on the region socket, without libFuzzer.
#include "tests/fuzz/region_check.h"

#include <gtest/gtest.h>

#include "tests/testing/quiet_protobuf.h"

namespace warpline::testing {
namespace {

constexpr int kSequences = 500;

TEST(RegionCheckTest, RandomSequencesDoAsTheModelDoes) {
  const QuietProtobuf silencer;
  MessageMutator random(1);
  RegionCheck check;
  for (int i = 0; i < kSequences; ++i) {
    CallSequence calls;
    for (int call = 0; call < 24; ++call) calls.push_back(AnyRegionCall(random));
    if (random.OneIn(2)) Mutate(calls, random, AnyRegionCall, NewRegionMessage);
    // Passes the calls on in the form that a fuzzer would use.
    ASSERT_EQ(check.Check(ReadCalls(WriteCalls(calls))), "") << "sequence " << i;
  }
  EXPECT_GT(check.counts().regions, kSequences / 10);
  EXPECT_GT(check.counts().uses, kSequences / 10);
  EXPECT_GT(check.counts().ended, kSequences / 10);
}

}  // namespace
}  // namespace warpline::testing
