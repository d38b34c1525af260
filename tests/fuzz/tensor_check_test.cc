// Random sequences of calls of TensorService, without libFuzzer.
#include "tests/fuzz/tensor_check.h"

#include <gtest/gtest.h>

#include "tests/testing/quiet_protobuf.h"

namespace warpline::testing {
namespace {

constexpr int kSequences = 1000;

TEST(TensorCheckTest, RandomSequencesDoAsTheModelDoes) {
  const QuietProtobuf silencer;
  MessageMutator random(1);
  TensorCheck check;
  for (int i = 0; i < kSequences; ++i) {
    CallSequence calls;
    for (int call = 0; call < 24; ++call) calls.push_back(AnyTensorCall(random));
    if (random.OneIn(2)) Mutate(calls, random, AnyTensorCall, NewTensorMessage);
    // Passes the calls on in the form that a fuzzer would use.
    ASSERT_EQ(check.Check(ReadCalls(WriteCalls(calls))), "") << "sequence " << i;
  }
  EXPECT_GT(check.counts().created, kSequences / 2);
  EXPECT_GT(check.counts().committed, kSequences / 10);
  EXPECT_GT(check.counts().read, kSequences / 50);
}

}  // namespace
}  // namespace warpline::testing
