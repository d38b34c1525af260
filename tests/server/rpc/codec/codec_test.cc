#include "server/rpc/codec/codec.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <set>
#include <string>

namespace warpline {
namespace {

// A field of type double that is forgotten in the codec's list would make a plan for each of its values.
TEST(KernelCodecsTest, EveryDoubleOfARequestIsAScalarUnlessItIsNamedHere) {
  const std::set<std::string, std::less<>> others = {"warpline.v1.ResidentTensor.ttl_seconds"};
  int scalars = 0, references = 0, slices = 0;
  std::function<void(const google::protobuf::Descriptor*, const ScanSchema&, int)> walk;
  walk = [&](const google::protobuf::Descriptor* message, const ScanSchema& schema, int index) {
    for (int i = 0; i < message->field_count(); ++i) {
      const google::protobuf::FieldDescriptor* field = message->field(i);
      const auto content = schema.Find(index, static_cast<std::uint32_t>(field->number()));
      if (field->type() == google::protobuf::FieldDescriptor::TYPE_DOUBLE) {
        const bool is_scalar = content == ScanSchema::kScalar;
        EXPECT_NE(is_scalar, others.contains(field->full_name())) << field->full_name();
        scalars += is_scalar ? 1 : 0;
      } else if (field->full_name() == "warpline.v1.ResidentTensor.id") {
        EXPECT_EQ(content, ScanSchema::kReference);
        ++references;
      } else if (message->full_name() == "warpline.v1.RegionSlice") {
        const bool is_id = field->name() == "id";
        EXPECT_EQ(content, is_id ? ScanSchema::kReference - 1 : ScanSchema::kInteger) << field->full_name();
        ++slices;
      } else if (field->full_name() == "warpline.v1.RequestOptions.free_after") {
        EXPECT_EQ(content, ScanSchema::kExtra);
      } else if (field->type() == google::protobuf::FieldDescriptor::TYPE_MESSAGE) {
        ASSERT_TRUE(content.has_value());
        walk(field->message_type(), schema, *content);
      }
    }
  };
  for (const google::protobuf::Descriptor* request :
       {v1::TransposeRequest::descriptor(), v1::GemmRequest::descriptor(), v1::ReduceRequest::descriptor(),
        v1::RunRequest::descriptor()}) {
    for (const Codec& codec : KernelCodecs()) {
      if (std::string(codec.method) + "Request" == request->name()) {
        walk(request, codec.schema, ScanSchema::kRoot);
      }
    }
  }
  EXPECT_EQ(scalars, 7 + 4);             // each request has options with sinks
  EXPECT_EQ(references, 1 + 4 + 1 + 1);  // of a tensor, wherever there is one
  EXPECT_EQ(slices, 3 * (7 + 4));        // likewise, and of a sink
}

}  // namespace
}  // namespace warpline
