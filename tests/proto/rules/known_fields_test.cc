#include "proto/rules/known_fields.h"

#include <google/protobuf/unknown_field_set.h>
#include <gtest/gtest.h>

#include <string>

#include "kernels/field_error.h"
#include "proto/rules/program_rules.h"
#include "warpline/v1/warpline.pb.h"

namespace warpline {
namespace {

// A field of a newer API.
void AddUnknown(google::protobuf::Message& message, int number) {
  message.GetReflection()->MutableUnknownFields(&message)->AddVarint(number, 1);
}

void ExpectUnknown(const absl::Status& status, const std::string& place) {
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented) << status;
  EXPECT_EQ(FieldOf(status), place) << status;
}

TEST(KnownFieldsTest, TheFirstUnknownFieldIsNamedByItsPlace) {
  v1::RunRequest request;
  v1::MapStep& map = *request.mutable_program()->add_steps()->mutable_map();
  map.add_nodes();
  map.add_nodes();
  EXPECT_TRUE(CheckAllKnown(request).ok());
  AddUnknown(*map.mutable_nodes(1), 9);
  ExpectUnknown(CheckAllKnown(request), "program.steps[0].map.nodes[1].9");
  AddUnknown(request, 99);
  ExpectUnknown(CheckAllKnown(request), "99");
}

TEST(KnownFieldsTest, AStepOfANewerApiIsNamedByTheServersRules) {
  v1::Program program;
  v1::Step& step = *program.add_steps();
  step.set_name("new");
  AddUnknown(step, 60);  // its operation
  ProgramRules rules(program);
  const auto read = [](const char*, double given) -> absl::StatusOr<Scalar> {
    return Scalar{.value = given};
  };
  const absl::Status status = rules.CheckSteps(read, [](ConvertedStep, const std::string&) {});
  ExpectUnknown(status, "program.steps[0].60");
  EXPECT_NE(status.message().find("step \"new\""), std::string::npos) << status;
}

}  // namespace
}  // namespace warpline
