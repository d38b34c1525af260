#include "client/src/enum_names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/dtype.h"
#include "warpline/array.h"
#include "warpline/v1/warpline.pb.h"

namespace warpline::client {
namespace {

TEST(EnumNamesTest, KnowsTheShortNames) {
  EXPECT_EQ(EnumValueNamed(*v1::ReduceOp_descriptor(), "count_nonzero"), v1::REDUCE_OP_COUNT_NONZERO);
  EXPECT_EQ(EnumValueNamed(*v1::Precision_descriptor(), "TF32"), v1::PRECISION_TF32);
  EXPECT_EQ(EnumValueNamed(*v1::Activation_descriptor(), "none"), v1::ACTIVATION_NONE);
  for (const char* name : {"", "unspecified", "median", "REDUCE_OP_UNSPECIFIED", "DATA_TYPE_F32"}) {
    EXPECT_EQ(EnumValueNamed(*v1::ReduceOp_descriptor(), name), std::nullopt) << name;
  }
}

TEST(EnumNamesTest, KnowsTheFullNames) {
  EXPECT_EQ(EnumValueNamed(*v1::ReduceOp_descriptor(), "REDUCE_OP_SUM"), v1::REDUCE_OP_SUM);
  EXPECT_EQ(EnumValueNamed(*v1::DataType_descriptor(), "DATA_TYPE_BF16"), v1::DATA_TYPE_BF16);
}

TEST(EnumNamesTest, ListsThemWithoutTheUnspecified) {
  EXPECT_THAT(EnumValueNames(*v1::Activation_descriptor()), testing::ElementsAre("none", "relu", "gelu"));
}

TEST(EnumNamesTest, CallsElementTypesAsTheKernelsDo) {
  for (DType dtype : kAllDTypes) {
    EXPECT_EQ(EnumValueNamed(*v1::DataType_descriptor(), Name(dtype)), ToProto(dtype));
  }
}

}  // namespace
}  // namespace warpline::client
