#include "proto/wire/scanner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "proto/wire/tensor_field.h"
#include "tests/testing/quiet_protobuf.h"
#include "tests/testing/random_wire.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/wire_agreement.h"
#include "warpline/v1/warpline.pb.h"

namespace warpline {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using ::warpline::testing::CompareWithProtobuf;
using ::warpline::testing::IsOk;
using ::warpline::testing::ShortestVarint;
using ::warpline::testing::Slice;
using ::warpline::testing::StatusIs;
using ::warpline::testing::SubstituteTokens;

constexpr std::size_t kWhole[] = {1 << 30};
constexpr std::size_t kBytewise[] = {1};
constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

std::string Tag(std::uint32_t number, int wire_type) {
  return warpline::testing::ShortestTag(number, wire_type);
}

std::string Field(std::uint32_t number, const std::string& content) {
  return Tag(number, 2) + ShortestVarint(content.size()) + content;
}

std::string Inline(const std::string& content) { return Field(v1::Tensor::kInlineFieldNumber, content); }

std::string X(const std::string& tensor) { return Field(v1::TransposeRequest::kXFieldNumber, tensor); }

absl::StatusOr<ScannedMessage> Scan(const std::string& bytes, const ScanLimits& limits = {}) {
  return ScanMessage(ScanSchema::For(v1::TransposeRequest::descriptor(), {.payload = InlineField()}),
                     Slice(bytes, kWhole), limits);
}

// Returns whether both readers accept the bytes. Fails the test if they differ, whole or byte by byte.
bool Accepted(const std::string& bytes) {
  const testing::QuietProtobuf silencer;
  const v1::TransposeRequest prototype;
  const auto whole = CompareWithProtobuf(prototype, Slice(bytes, kWhole));
  const auto bytewise = CompareWithProtobuf(prototype, Slice(bytes, kBytewise));
  EXPECT_EQ(whole.difference, "") << absl::BytesToHexString(bytes);
  EXPECT_EQ(bytewise.difference, "") << absl::BytesToHexString(bytes);
  return whole.accepted;
}

std::string Overlong(std::uint64_t value, std::size_t size) {
  std::string bytes = ShortestVarint(value);
  while (bytes.size() < size) {
    bytes.back() = static_cast<char>(bytes.back() | 0x80);
    bytes.push_back('\0');
  }
  return bytes;
}

std::string NestedGroups(int depth) {
  std::string bytes;
  for (int i = 0; i < depth; ++i) bytes += Tag(9, 3);
  for (int i = 0; i < depth; ++i) bytes += Tag(9, 4);
  return bytes;
}

TEST(WireScannerTest, PayloadStaysOutOfTheHeader) {
  v1::TransposeRequest request;
  request.mutable_x()->set_data_type(v1::DATA_TYPE_F32);
  request.mutable_x()->add_shape(1000);
  request.mutable_x()->set_inline_(std::string(4000, 'p'));
  request.set_variant("naive");
  const auto scanned = Scan(request.SerializeAsString());
  ASSERT_THAT(scanned, IsOk());
  EXPECT_LT(scanned->header.size(), 64u);
  ASSERT_THAT(scanned->payloads, SizeIs(1));
  EXPECT_EQ(scanned->payloads[0].length, 4000u);

  v1::TransposeRequest header;
  ASSERT_TRUE(header.ParseFromString(scanned->header));
  EXPECT_EQ(header.x().inline_(), PayloadToken(0));
  EXPECT_EQ(header.x().shape(0), 1000);
  EXPECT_EQ(header.variant(), "naive");
}

TEST(WireScannerTest, EmptyMessageHasEmptyHeader) {
  const auto scanned = Scan("");
  ASSERT_THAT(scanned, IsOk());
  EXPECT_EQ(scanned->header, "");
  EXPECT_THAT(scanned->payloads, SizeIs(0));
}

TEST(WireScannerTest, EmptyPayloadIsAPayload) {
  const auto scanned = Scan(X(Inline("")));
  ASSERT_THAT(scanned, IsOk());
  ASSERT_THAT(scanned->payloads, SizeIs(1));
  EXPECT_EQ(scanned->payloads[0].length, 0u);
  EXPECT_TRUE(Accepted(X(Inline(""))));
}

TEST(WireScannerTest, PiecesOfAPayloadComeInOrderAndNotEmpty) {
  const std::string bytes = X(Inline("abcdefgh"));
  const std::size_t kSizes[] = {3, 0, 2, 0};
  const auto slices = Slice(bytes, kSizes);
  const auto scanned =
      ScanMessage(ScanSchema::For(v1::TransposeRequest::descriptor(), {.payload = InlineField()}), slices);
  ASSERT_THAT(scanned, IsOk());
  std::vector<std::string> pieces;
  ForEachPiece(slices, scanned->payloads.at(0), [&](std::span<const std::byte> piece) {
    pieces.emplace_back(reinterpret_cast<const char*>(piece.data()), piece.size());
  });
  EXPECT_THAT(pieces, ElementsAre("a", "bcd", "ef", "gh"));
}

TEST(WireScannerTest, LastPayloadWins) {
  EXPECT_TRUE(Accepted(X(Inline("first") + Inline("second"))));
  const auto scanned = Scan(X(Inline("first") + Inline("second")));
  v1::TransposeRequest header;
  ASSERT_TRUE(header.ParseFromString(scanned->header));
  EXPECT_EQ(PayloadIndex(header.x().inline_()), 1u);
}

TEST(WireScannerTest, PartsOfASplitTensorAreMerged) {
  const std::string bytes = X(Inline("data")) + X(Tag(1, 0) + "\x0c");
  EXPECT_TRUE(Accepted(bytes));
  v1::TransposeRequest header;
  ASSERT_TRUE(header.ParseFromString(Scan(bytes)->header));
  EXPECT_EQ(header.x().data_type(), v1::DATA_TYPE_F32);
  EXPECT_EQ(PayloadIndex(header.x().inline_()), 0u);
}

TEST(WireScannerTest, EveryOperandOfAGemmIsFound) {
  v1::GemmRequest request;
  request.mutable_a()->set_inline_("aaa");
  request.mutable_b()->set_inline_("bb");
  request.mutable_c()->set_inline_("c");
  const std::string bytes = request.SerializeAsString();
  const auto slices = Slice(bytes, kBytewise);
  const auto scanned =
      ScanMessage(ScanSchema::For(v1::GemmRequest::descriptor(), {.payload = InlineField()}), slices);
  ASSERT_THAT(scanned, IsOk());
  v1::GemmRequest through;
  ASSERT_TRUE(through.ParseFromString(scanned->header));
  SubstituteTokens(through, slices, *scanned);
  EXPECT_EQ(through.SerializeAsString(), bytes);
}

TEST(WireScannerTest, MessageOfOtherTypesHasNoPayload) {
  v1::EchoRequest request;
  request.set_payload("bytes");
  const std::string bytes = request.SerializeAsString();
  const auto scanned = ScanMessage(ScanSchema::For(v1::EchoRequest::descriptor(), {.payload = InlineField()}),
                                   Slice(bytes, kWhole));
  ASSERT_THAT(scanned, IsOk());
  EXPECT_EQ(scanned->header, bytes);
}

TEST(WireScannerTest, UnknownFieldsAreKept) {
  EXPECT_TRUE(
      Accepted(Tag(100, 0) + "\x01" + Tag(101, 1) + "12345678" + Field(102, "text") + Tag(103, 5) + "1234"));
  EXPECT_TRUE(Accepted(X(Field(12, "reserved") + Inline("data"))));
}

TEST(WireScannerTest, GroupsAreUnknownFieldsWhateverTheirNumber) {
  EXPECT_TRUE(Accepted(Tag(1, 3) + Inline("not a payload") + Tag(1, 4)));
  EXPECT_THAT(Scan(Tag(1, 3) + Inline("not a payload") + Tag(1, 4))->payloads, SizeIs(0));
  EXPECT_TRUE(Accepted(X(Tag(8, 3) + Tag(7, 3) + Tag(7, 4) + Tag(8, 4))));
  EXPECT_TRUE(Accepted(Overlong(9 << 3 | 3, 5) + Overlong(9 << 3 | 4 | std::uint64_t{5} << 32, 5)));
  EXPECT_FALSE(Accepted(Tag(9, 3) + Overlong(9 << 3 | 4, 6)));
}

TEST(WireScannerTest, PayloadOfAnotherWireTypeIsAnUnknownField) {
  EXPECT_TRUE(Accepted(X(Tag(8, 0) + "\x05")));
  EXPECT_TRUE(Accepted(X(Tag(8, 1) + "12345678")));
  EXPECT_TRUE(Accepted(Tag(1, 5) + "1234"));
  EXPECT_THAT(Scan(X(Tag(8, 0) + "\x05"))->payloads, SizeIs(0));
}

TEST(WireScannerTest, VarintsMayBeLongerThanNeeded) {
  EXPECT_TRUE(Accepted(Overlong(0x0a, 5) + Overlong(6, 5) + Overlong(0x42, 5) + '\0'));
  EXPECT_FALSE(Accepted(Overlong(0x0a, 6) + ShortestVarint(0)));
  EXPECT_FALSE(Accepted(Overlong(0x0a, 5) + Overlong(0, 6)));
  EXPECT_TRUE(Accepted(Tag(50, 0) + Overlong(1, 10)));
  EXPECT_FALSE(Accepted(Tag(50, 0) + Overlong(1, 11)));
}

TEST(WireScannerTest, BitsOfATagAbove32AreDropped) {
  EXPECT_TRUE(Accepted(ShortestVarint(0x0a | std::uint64_t{7} << 32) + ShortestVarint(0)));
}

TEST(WireScannerTest, ZeroIsNoFieldNumber) {
  EXPECT_FALSE(Accepted(std::string(1, '\0')));
  for (int wire_type = 0; wire_type < 8; ++wire_type) {
    EXPECT_FALSE(Accepted(Tag(0, wire_type) + std::string(8, '\0'))) << wire_type;
  }
}

TEST(WireScannerTest, WireTypes6And7AreRejected) {
  EXPECT_FALSE(Accepted(Tag(5, 6)));
  EXPECT_FALSE(Accepted(X(Tag(5, 7))));
}

TEST(WireScannerTest, EveryTruncationIsJudgedAsProtobufDoes) {
  v1::TransposeRequest request;
  request.mutable_x()->set_data_type(v1::DATA_TYPE_F32);
  request.mutable_x()->add_shape(5);
  request.mutable_x()->set_inline_(std::string(20, 'p'));
  request.add_perm(0);
  request.set_variant("naive");
  const std::string bytes = request.SerializeAsString() + Tag(99, 3) + Tag(7, 1) + "12345678" + Tag(99, 4);
  int accepted = 0;
  for (std::size_t size = 0; size <= bytes.size(); ++size) accepted += Accepted(bytes.substr(0, size));
  EXPECT_EQ(accepted, 5);  // empty, and after each of x, perm, variant and the group
}

TEST(WireScannerTest, FieldsMayNotReachBeyondTheirMessage) {
  EXPECT_FALSE(Accepted(Tag(1, 2) + "\x03" + Tag(8, 2) + "\x05" + "12345"));  // payload
  EXPECT_FALSE(Accepted(Tag(1, 2) + "\x02" + Tag(1, 0) + "\x80" + "\x01"));   // varint
  EXPECT_FALSE(Accepted(Tag(1, 2) + "\x03" + Tag(7, 1) + "12345678"));        // fixed
  EXPECT_FALSE(Accepted(Tag(1, 2) + "\x01" + Tag(8, 3) + Tag(8, 4)));         // group
  EXPECT_FALSE(Accepted(Tag(1, 2) + ShortestVarint(0x7fffffff) + "1"));       // near INT_MAX
  EXPECT_FALSE(Accepted(Tag(1, 2) + ShortestVarint(0xffffffff) + "1"));       // negative as an int
  EXPECT_FALSE(Accepted(Field(1, Tag(8, 2) + ShortestVarint(0x7fffffef)) + "1234"));
}

TEST(WireScannerTest, EndOfAGroupMustMatchItsStart) {
  EXPECT_FALSE(Accepted(Tag(9, 4)));
  EXPECT_FALSE(Accepted(Tag(9, 3)));
  EXPECT_FALSE(Accepted(Tag(9, 3) + Tag(8, 4)));
  EXPECT_FALSE(Accepted(Tag(9, 3) + X(Tag(9, 4))));
  EXPECT_FALSE(Accepted(X(Tag(1, 4))));
}

TEST(WireScannerTest, NestingEndsAt100) {
  EXPECT_TRUE(Accepted(NestedGroups(100)));
  EXPECT_FALSE(Accepted(NestedGroups(101)));
  EXPECT_TRUE(Accepted(X(NestedGroups(99))));
  EXPECT_FALSE(Accepted(X(NestedGroups(100))));
}

TEST(WireScannerTest, StringThatIsNotUtf8IsRejected) { EXPECT_FALSE(Accepted(Field(3, "\xff"))); }

TEST(WireScannerTest, HeaderAboveTheLimitIsInvalid) {
  const ScanLimits limits{.header_bytes = 100};
  EXPECT_THAT(Scan(Field(99, std::string(97, 'u')), limits), IsOk());
  EXPECT_THAT(Scan(Field(99, std::string(98, 'u')), limits),
              StatusIs(kInvalid, AllOf(HasSubstr("101 bytes"), HasSubstr("limit is 100"))));
}

TEST(WireScannerTest, PayloadsDoNotCountAgainstTheHeader) {
  EXPECT_THAT(Scan(X(Inline(std::string(100000, 'p'))), {.header_bytes = 100}), IsOk());
}

TEST(WireScannerTest, ManySmallFieldsCountAgainstTheHeader) {
  std::string bytes;
  for (int i = 0; i < 600000; ++i) bytes += X("");
  EXPECT_THAT(Scan(bytes), StatusIs(kInvalid, HasSubstr("limit is 1048576")));
}

TEST(WireScannerTest, PayloadsAboveTheLimitAreInvalid) {
  EXPECT_THAT(Scan(X(Inline("1") + Inline("2")), {.payloads = 2}), IsOk());
  EXPECT_THAT(Scan(X(Inline("1") + Inline("2") + Inline("3")), {.payloads = 2}),
              StatusIs(kInvalid, AllOf(HasSubstr("has 3"), HasSubstr("limit is 2"))));
}

TEST(WireScannerTest, MalformedMessageIsInvalidAndSaysWhere) {
  EXPECT_THAT(Scan(Tag(3, 2) + "\x09" + "four"), StatusIs(kInvalid, HasSubstr("at byte 2 of 6")));
}

absl::StatusOr<ScannedMessage> ScanGemm(const v1::GemmRequest& request) {
  const std::vector scalars = {
      v1::GemmRequest::descriptor()->FindFieldByNumber(v1::GemmRequest::kAlphaFieldNumber)};
  return ScanMessage(
      ScanSchema::For(v1::GemmRequest::descriptor(), {.payload = InlineField(), .scalars = scalars}),
      Slice(request.SerializeAsString(), kBytewise));
}

TEST(WireScannerTest, ScalarsStayOutOfTheHeader) {
  v1::GemmRequest request;
  request.set_alpha(0.1);
  request.set_beta(0.2);  // no scalar of this schema
  const auto scanned = ScanGemm(request);
  ASSERT_THAT(scanned, IsOk());
  EXPECT_THAT(scanned->scalars, ElementsAre(0.1));
  v1::GemmRequest header;
  ASSERT_TRUE(header.ParseFromString(scanned->header));
  EXPECT_EQ(ScalarIndex(header.alpha()), 0u);
  EXPECT_EQ(header.beta(), 0.2);
  request.set_alpha(0);
  EXPECT_EQ(ScanGemm(request)->header, scanned->header);
  request.clear_alpha();
  EXPECT_NE(ScanGemm(request)->header, scanned->header);
}

TEST(WireScannerTest, AValueThatLooksLikeATokenIsAScalarLikeAnyOther) {
  v1::GemmRequest request;
  request.set_alpha(ScalarToken(1));
  EXPECT_THAT(ScanGemm(request)->scalars, ElementsAre(ScalarToken(1)));
}

TEST(WireScannerTest, ScalarOfAnotherWireTypeIsAnUnknownField) {
  v1::GemmRequest request;
  std::string bytes = Field(v1::GemmRequest::kAlphaFieldNumber, "12345678");
  bytes += Tag(v1::GemmRequest::kAlphaFieldNumber, 5) + "1234";
  ASSERT_TRUE(request.ParseFromString(bytes));
  EXPECT_THAT(ScanGemm(request)->scalars, SizeIs(0));
}

absl::StatusOr<ScannedMessage> ScanSlice(const v1::TransposeRequest& request) {
  const google::protobuf::Descriptor* slice = v1::RegionSlice::descriptor();
  return ScanMessage(
      ScanSchema::For(v1::TransposeRequest::descriptor(),
                      {.payload = InlineField(),
                       .scalars = {},
                       .integers = {slice->FindFieldByName("offset"), slice->FindFieldByName("call")},
                       .references = {v1::ResidentTensor::descriptor()->FindFieldByName("id"),
                                      slice->FindFieldByName("id")}}),
      Slice(request.SerializeAsString(), kBytewise));
}

TEST(WireScannerTest, IntegersAndReferencesStayOutOfTheHeader) {
  v1::TransposeRequest request;
  v1::RegionSlice& slice = *request.mutable_x()->mutable_region();
  slice.set_id("first");
  slice.set_offset(4096);
  slice.set_call(-1);  // ten bytes on the wire
  const auto scanned = ScanSlice(request);
  ASSERT_THAT(scanned, IsOk());
  EXPECT_THAT(scanned->integers, ElementsAre(4096, -1));
  EXPECT_THAT(scanned->references, ElementsAre(Reference{.field = 1, .text = "first"}));
  v1::TransposeRequest header;
  ASSERT_TRUE(header.ParseFromString(scanned->header));
  EXPECT_EQ(IntegerIndex(header.x().region().offset()), 0u);
  EXPECT_EQ(IntegerIndex(header.x().region().call()), 1u);
  EXPECT_EQ(ReferenceIndex(header.x().region().id()), 0u);
  slice.set_id("another");
  slice.set_offset(1);
  slice.set_call(INT64_MAX);
  EXPECT_EQ(ScanSlice(request)->header, scanned->header);
  slice.clear_call();
  EXPECT_NE(ScanSlice(request)->header, scanned->header);
}

absl::StatusOr<ScannedMessage> ScanFreed(const v1::ReduceRequest& request, const ScanLimits& limits = {}) {
  return ScanMessage(
      ScanSchema::For(v1::ReduceRequest::descriptor(),
                      {.payload = InlineField(),
                       .extra = v1::RequestOptions::descriptor()->FindFieldByName("free_after"),
                       .extra_path = "options.free_after"}),
      Slice(request.SerializeAsString(), kBytewise), limits);
}

TEST(WireScannerTest, ExtrasAreTakenOutOfTheHeader) {
  v1::ReduceRequest request;
  request.mutable_options()->set_reproducible(true);
  request.set_op(v1::REDUCE_OP_SUM);
  const auto without = ScanFreed(request);
  ASSERT_THAT(without, IsOk());
  for (const char* id : {"first", "", "third"}) request.mutable_options()->add_free_after(id);
  const auto scanned = ScanFreed(request);
  ASSERT_THAT(scanned, IsOk());
  EXPECT_THAT(scanned->extras, ElementsAre("first", "", "third"));
  EXPECT_EQ(scanned->header, without->header);
  v1::ReduceRequest header;
  ASSERT_TRUE(header.ParseFromString(scanned->header));
  EXPECT_TRUE(header.options().reproducible());
  EXPECT_EQ(header.options().free_after_size(), 0);
}

TEST(WireScannerTest, ExtrasHaveLimits) {
  v1::ReduceRequest request;
  for (int i = 0; i < 3; ++i) request.mutable_options()->add_free_after("id");
  EXPECT_THAT(ScanFreed(request, {.extras = 3}), IsOk());
  EXPECT_THAT(ScanFreed(request, {.extras = 2}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("options.free_after: 3 or more; the limit is 2")));
  EXPECT_THAT(ScanFreed(request, {.header_bytes = 10}), StatusIs(absl::StatusCode::kInvalidArgument));
  std::string invalid = request.SerializeAsString();
  invalid[invalid.find("id")] = '\xff';
  EXPECT_FALSE(v1::ReduceRequest().ParseFromString(invalid));
  EXPECT_THAT(
      ScanMessage(ScanSchema::For(v1::ReduceRequest::descriptor(),
                                  {.extra = v1::RequestOptions::descriptor()->FindFieldByName("free_after"),
                                   .extra_path = "options.free_after"}),
                  Slice(invalid, kBytewise)),
      StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(IntegerTokenTest, IsReadBack) {
  for (std::size_t index : {0u, 1u, 7000u, 0x7fffffffu}) EXPECT_EQ(IntegerIndex(IntegerToken(index)), index);
  for (std::int64_t value : {std::int64_t{0}, std::int64_t{-1}, INT64_MAX, INT64_MIN, IntegerToken(0) - 1}) {
    EXPECT_EQ(IntegerIndex(value), std::nullopt) << value;
  }
}

TEST(ScalarTokenTest, IsReadBack) {
  for (std::size_t index : {0u, 1u, 7000u, 0x7fffffffu}) EXPECT_EQ(ScalarIndex(ScalarToken(index)), index);
  for (double value : {0.0, 1.0, -ScalarToken(0), 1e300, std::nan("")}) {
    EXPECT_EQ(ScalarIndex(value), std::nullopt) << value;
  }
}

TEST(PayloadTokenTest, IsReadBack) {
  for (std::size_t index : {0u, 1u, 255u, 256u, 1023u, 0x12345678u}) {
    EXPECT_EQ(PayloadIndex(PayloadToken(index)), index);
  }
  EXPECT_EQ(PayloadIndex(""), std::nullopt);
  EXPECT_EQ(PayloadIndex("12345"), std::nullopt);
}

}  // namespace
}  // namespace warpline
