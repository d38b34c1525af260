#include "server/rpc/inflate.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <random>
#include <string>

namespace warpline {
namespace {

// gRPC sets itself up where one of its larger parts is used; slices alone do not.
class InflateTest : public ::testing::Test {
  const std::shared_ptr<grpc::ChannelCredentials> initialised_ = grpc::InsecureChannelCredentials();
};

constexpr int kZlib = MAX_WBITS, kGzip = MAX_WBITS + 16;

std::string Compress(const std::string& text, int format) {
  z_stream stream{};
  EXPECT_EQ(deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, format, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string compressed(deflateBound(&stream, text.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(compressed.data());
  stream.avail_out = static_cast<uInt>(compressed.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  compressed.resize(stream.total_out);
  deflateEnd(&stream);
  return compressed;
}

std::vector<grpc::Slice> Cut(const std::string& bytes, std::size_t piece) {
  std::vector<grpc::Slice> slices;
  for (std::size_t i = 0; i < bytes.size(); i += piece) slices.emplace_back(bytes.substr(i, piece));
  return slices;
}

std::string Join(const std::vector<grpc::Slice>& slices) {
  std::string joined;
  for (const grpc::Slice& slice : slices) {
    joined.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  }
  return joined;
}

std::string RandomText(std::size_t size) {
  std::mt19937 random(1);
  std::string text(size, '\0');
  for (char& c : text) c = static_cast<char>(random() % 7);
  return text;
}

TEST_F(InflateTest, ReturnsWhatWasCompressed) {
  for (int format : {kZlib, kGzip}) {
    for (std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{1000}, std::size_t{3} << 20}) {
      const std::string text = RandomText(size);
      const std::string compressed = Compress(text, format);
      for (std::size_t piece : {std::size_t{1}, std::size_t{8192}, compressed.size()}) {
        if (piece == 1 && size > 1000) continue;
        const auto inflated = Inflate(Cut(compressed, piece), size);
        ASSERT_TRUE(inflated.ok()) << inflated.status();
        EXPECT_EQ(Join(*inflated), text);
      }
    }
  }
}

TEST_F(InflateTest, TinySlicesTakeNoMoreMemoryThanLargeOnes) {
  const std::string text = RandomText(1 << 20);
  const auto pieces = Inflate(Cut(Compress(text, kGzip), 7), text.size());
  ASSERT_TRUE(pieces.ok()) << pieces.status();
  EXPECT_EQ(Join(*pieces), text);
  EXPECT_LE(pieces->size(), 5u);
}

TEST_F(InflateTest, RefusesOneByteMoreThanTheLimit) {
  const std::string compressed = Compress(RandomText(1 << 20), kGzip);
  EXPECT_EQ(Inflate(Cut(compressed, 8192), (1 << 20) - 1).status().code(),
            absl::StatusCode::kResourceExhausted);
}

TEST_F(InflateTest, RefusesWhatIsCutOrBroken) {
  const std::string compressed = Compress(RandomText(10000), kGzip);
  for (std::size_t size = 0; size < compressed.size(); ++size) {
    EXPECT_EQ(Inflate(Cut(compressed.substr(0, size), 4096), 1 << 20).status().code(),
              absl::StatusCode::kInvalidArgument)
        << size;
  }
  EXPECT_EQ(Inflate(Cut(compressed + "x", 4096), 1 << 20).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Inflate(Cut(compressed + "x", compressed.size()), 1 << 20).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Inflate(Cut("not compressed at all", 5), 1 << 20).status().code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace warpline
