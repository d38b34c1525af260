#include "client/cli/npy/file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>
#include <vector>

#include "client/cli/npy/header.h"
#include "client/cli/operands.h"

namespace warpline::client {
namespace {

class NpyTest : public testing::Test {
 protected:
  NpyTest() : folder_(std::filesystem::temp_directory_path() / ("npy_test." + std::to_string(::getpid()))) {
    std::filesystem::create_directories(folder_);
  }
  ~NpyTest() override { std::filesystem::remove_all(folder_); }

  std::string Path(const std::string& name) const { return folder_ / name; }

  // Bytes of a file with this header text; `version` 1 to 3.
  static std::string Bytes(const std::string& header, const std::string& elements, int version = 1) {
    std::string bytes = "\x93NUMPY";
    bytes += static_cast<char>(version);
    bytes += '\0';
    const int length_bytes = version == 1 ? 2 : 4;
    for (int i = 0; i < length_bytes; ++i) bytes += static_cast<char>(header.size() >> (8 * i));
    return bytes + header + elements;
  }

  std::string Make(const std::string& header, const std::string& elements, int version = 1) {
    return MakeRaw(Bytes(header, elements, version));
  }

  std::string MakeRaw(const std::string& bytes) {
    const std::string path = Path("in.npy");
    std::ofstream(path, std::ios::binary) << bytes;
    return path;
  }

  // The message of the error that reading must give.
  static std::string ErrorOf(const std::string& path, std::optional<DType> dtype = std::nullopt) {
    const auto array = ReadNpy(path, dtype);
    EXPECT_FALSE(array.ok());
    EXPECT_NE(array.status().message().find(path), absl::string_view::npos) << array.status();
    return std::string(array.status().message());
  }

  std::filesystem::path folder_;
};

std::string Header(const std::string& descr, const std::string& shape, bool fortran = false) {
  return "{'descr': '" + descr + "', 'fortran_order': " + (fortran ? "True" : "False") +
         ", 'shape': " + shape + ", }          \n";
}

const std::string kFourBytes("\1\2\3\4", 4);

TEST_F(NpyTest, ReadsAllVersions) {
  for (int version = 1; version <= 3; ++version) {
    const auto array = ReadNpy(Make(Header("<i4", "(1, 1)"), kFourBytes, version), std::nullopt);
    ASSERT_TRUE(array.ok()) << array.status();
    EXPECT_EQ(array->stored.dtype, DType::kI32);
    EXPECT_EQ(array->stored.shape, (Shape{1, 1}));
    EXPECT_EQ(std::memcmp(array->stored.data, kFourBytes.data(), 4), 0);
  }
  EXPECT_NE(ErrorOf(Make(Header("<i4", "(1,)"), kFourBytes, 4)).find("version 4"), std::string::npos);
}

TEST_F(NpyTest, WritesWhatItReads) {
  std::vector<double> elements = {1, 2, 3, 4, 5, 6};
  for (const Shape& shape : {Shape{}, Shape{6}, Shape{2, 3}, Shape{0, 4}, Shape{1, 2, 3}}) {
    const std::string path = Path("out.npy");
    const absl::Status status = WriteNpy(path, {DType::kF64, shape, 0, elements.data()}, false);
    ASSERT_TRUE(status.ok()) << status;
    const auto array = ReadNpy(path, std::nullopt);
    ASSERT_TRUE(array.ok()) << array.status();
    EXPECT_EQ(array->stored.shape, shape);
    EXPECT_FALSE(array->fortran);
    const std::size_t bytes = static_cast<std::size_t>(shape.Count()) * 8;
    EXPECT_EQ(std::filesystem::file_size(path) % 64, bytes % 64);
    if (bytes > 0) {
      EXPECT_EQ(std::memcmp(array->stored.data, elements.data(), bytes), 0);
    }
  }
}

TEST_F(NpyTest, ReadsFortranOrderAsTheTranspose) {
  const std::string elements(6 * 4, '\7');
  auto array = ReadNpy(Make(Header("<f4", "(2, 3)", true), elements), std::nullopt);
  ASSERT_TRUE(array.ok());
  EXPECT_TRUE(array->fortran);
  EXPECT_EQ(array->stored.shape, (Shape{3, 2}));
  EXPECT_EQ(*StoredPerm(*array, {}), (std::vector<int>{0, 1}));
  EXPECT_EQ(*StoredPerm(*array, {0, 1}), (std::vector<int>{1, 0}));
  EXPECT_EQ(*StoredAxes(*array, {-1}), (std::vector<int>{0}));
  EXPECT_EQ(ToRowMajorPerm(*array), (std::vector<int>{1, 0}));
  EXPECT_FALSE(StoredPerm(*array, {0, 0}).ok());
  EXPECT_FALSE(StoredPerm(*array, {0}).ok());
  EXPECT_FALSE(StoredPerm(*array, {0, 2}).ok());
  EXPECT_FALSE(StoredAxes(*array, {2}).ok());
  // In memory there is no difference.
  array = ReadNpy(Make(Header("<f4", "(1, 6, 1)", true), elements), std::nullopt);
  ASSERT_TRUE(array.ok());
  EXPECT_FALSE(array->fortran);
}

TEST_F(NpyTest, WritesFortranOrder) {
  const std::vector<float> elements(6);
  const std::string path = Path("out.npy");
  ASSERT_TRUE(WriteNpy(path, {DType::kF32, {3, 2}, 0, elements.data()}, true).ok());
  const auto array = ReadNpy(path, std::nullopt);
  ASSERT_TRUE(array.ok());
  EXPECT_TRUE(array->fortran);
  EXPECT_EQ(array->stored.shape, (Shape{3, 2}));
}

TEST_F(NpyTest, ConvertsBigEndian) {
  constexpr std::size_t kCount = 5;
  for (const std::string type : {"i1", "u2", "i2", "f2", "u4", "i4", "f4", "u8", "i8", "f8", "c8", "c16"}) {
    const std::size_t element = std::stoul(type.substr(1));
    // A complex number is two that are swapped one by one.
    const std::size_t size = type[0] == 'c' ? element / 2 : element;
    std::string big, little;
    for (std::size_t i = 0; i < kCount * element; ++i) {
      big += static_cast<char>(3 * i + 1);
      little += static_cast<char>(3 * (i / size * size + size - 1 - i % size) + 1);
    }
    const auto array = ReadNpy(Make(Header(">" + type, "(5,)"), big), std::nullopt);
    ASSERT_TRUE(array.ok()) << array.status();
    EXPECT_EQ(SizeOf(array->stored.dtype), element);
    EXPECT_EQ(std::memcmp(array->stored.data, little.data(), little.size()), 0) << type;
  }
}

TEST_F(NpyTest, KnowsTheTypesByTheirNumPyNames) {
  const std::pair<const char*, DType> types[] = {
      {"|b1", DType::kBool}, {"|u1", DType::kU8},   {"<u2", DType::kU16}, {"<u4", DType::kU32},
      {"<u8", DType::kU64},  {"|i1", DType::kI8},   {"<i2", DType::kI16}, {"<i4", DType::kI32},
      {"<i8", DType::kI64},  {"<f2", DType::kF16},  {"<f4", DType::kF32}, {"<f8", DType::kF64},
      {"<c8", DType::kC64},  {"<c16", DType::kC128}};
  for (const auto& [descr, dtype] : types) {
    const auto array =
        ReadNpy(Make(Header(descr, "(4,)"), std::string(4 * SizeOf(dtype), 'x')), std::nullopt);
    ASSERT_TRUE(array.ok()) << array.status();
    EXPECT_EQ(array->stored.dtype, dtype);
    EXPECT_NE(FormatNpyHeader({.dtype = dtype, .shape = {4}}).find(std::string("'") + descr + "'"),
              std::string::npos);
  }
}

TEST_F(NpyTest, WritesAndReadsEveryType) {
  const std::string elements(16 * 3, 'e');
  for (DType dtype : kAllDTypes) {
    const std::string path = Path("out.npy");
    ASSERT_TRUE(WriteNpy(path, {dtype, {3}, 0, elements.data()}, false).ok());
    const auto array = ReadNpy(path, dtype);
    ASSERT_TRUE(array.ok()) << array.status();
    EXPECT_EQ(array->stored.dtype, dtype);
  }
}

TEST_F(NpyTest, TakesRawMemoryOnlyAsToldTo) {
  const std::string path = Make(Header("|V2", "(2,)"), kFourBytes);
  EXPECT_NE(ErrorOf(path).find("--dtype bf16"), std::string::npos);
  EXPECT_NE(ErrorOf(path, DType::kF32).find("--dtype bf16"), std::string::npos);
  const auto array = ReadNpy(path, DType::kBF16);
  ASSERT_TRUE(array.ok());
  EXPECT_EQ(array->stored.dtype, DType::kBF16);
  EXPECT_NE(ErrorOf(Make(Header("<i4", "(1,)"), kFourBytes), DType::kF32).find("not f32"), std::string::npos);
  const std::string bytes = Make(Header("|V1", "(4,)"), kFourBytes);
  EXPECT_NE(ErrorOf(bytes).find("--dtype f8e4m3 or f8e5m2"), std::string::npos);
  EXPECT_NE(ErrorOf(bytes, DType::kBF16).find("--dtype f8e4m3 or f8e5m2"), std::string::npos);
  for (DType dtype : {DType::kF8E4M3, DType::kF8E5M2}) EXPECT_EQ(ReadNpy(bytes, dtype)->stored.dtype, dtype);
  EXPECT_NE(ErrorOf(Make(Header("|V4", "(1,)"), kFourBytes), DType::kF32).find("not supported"),
            std::string::npos);
}

TEST_F(NpyTest, RefusesOtherTypesByName) {
  EXPECT_NE(ErrorOf(Make(Header("|O", "(1,)"), kFourBytes)).find("Python objects"), std::string::npos);
  EXPECT_NE(ErrorOf(Make(Header("<U3", "(1,)"), kFourBytes)).find("<U3"), std::string::npos);
  EXPECT_NE(ErrorOf(Make(Header("<f16", "(1,)"), kFourBytes)).find("<f16"), std::string::npos);
  const std::string structured = "{'descr': [('x', '<f4')], 'fortran_order': False, 'shape': (1,), }\n";
  EXPECT_NE(ErrorOf(Make(structured, kFourBytes)).find("structured dtype [('x', '<f4')]"), std::string::npos);
}

TEST_F(NpyTest, SendsNoEscapesOfAFileToTheTerminal) {
  const std::string hostile = "\x1b]0;owned\7\x9b";
  for (const std::string& header :
       {Header(hostile, "(1,)"), "{'descr': [('" + hostile + "', '<f4')], 'fortran_order': False, }\n",
        "{'" + hostile + "': 1}\n"}) {
    const std::string error = ErrorOf(Make(header, kFourBytes));
    EXPECT_NE(error.find("\\x1b]0;owned\\x07\\x9b"), std::string::npos) << error;
    EXPECT_EQ(error.find('\x1b'), std::string::npos);
  }
}

TEST_F(NpyTest, RefusesTruncatedFiles) {
  EXPECT_NE(ErrorOf(Make(Header("<f4", "(2,)"), kFourBytes)).find("truncated"), std::string::npos);
  for (int version = 1; version <= 3; ++version) {
    const std::string whole = Bytes(Header("<f4", "(1,)"), kFourBytes, version);
    for (std::size_t size = 0; size < whole.size(); ++size) ErrorOf(MakeRaw(whole.substr(0, size)));
    EXPECT_TRUE(ReadNpy(MakeRaw(whole), std::nullopt).ok());
  }
}

TEST_F(NpyTest, RefusesMoreThanARequestCanCarryBeforeReadingIt) {
  const std::string path = Make(Header("<f4", "(32768, 16384)"), "");
  std::filesystem::resize_file(path, std::filesystem::file_size(path) + (std::uintmax_t{2} << 30));  // sparse
  const auto array = ReadNpy(path, std::nullopt);
  EXPECT_TRUE(absl::IsInvalidArgument(array.status())) << array.status();
  EXPECT_NE(ErrorOf(path).find("2147483648 bytes of elements; one request can have at most 2146435072"),
            std::string::npos);
}

TEST_F(NpyTest, RefusesAbsurdShapes) {
  for (const char* shape : {"(4611686018427387904, 4)", "(99999999999999999999,)", "(-1,)", "(2.5,)", "(a,)",
                            "3", "(3)", "( 3 )", "(1, 1, 1, 1, 1, 1, 1, 1, 1)", "(1 1)", "(,)", "(1,"}) {
    // Enough for what any of them could be taken to mean, so that it is the shape that is refused.
    const auto array = ReadNpy(Make(Header("<f4", shape), std::string(64, 'x')), std::nullopt);
    EXPECT_FALSE(array.ok()) << shape;
  }
  // No bytes, but sizes whose product does not fit.
  EXPECT_FALSE(ReadNpy(Make(Header("<f4", "(0, 4611686018427387904, 4)"), ""), std::nullopt).ok());
}

TEST_F(NpyTest, RefusesDamagedHeadersWithoutHarm) {
  const std::string good = Header("<f4", "(1,)");
  std::mt19937 random(1);
  for (int round = 0; round < 3000; ++round) {
    std::string header = good;
    for (int i = 0; i < 3; ++i) header[random() % header.size()] = static_cast<char>(random());
    (void)ParseNpyHeader(header, std::nullopt);
    (void)ParseNpyHeader(header.substr(0, random() % header.size()), std::nullopt);
  }
  EXPECT_FALSE(ParseNpyHeader("", std::nullopt).ok());
  EXPECT_FALSE(ParseNpyHeader("{}", std::nullopt).ok());
  EXPECT_FALSE(ParseNpyHeader(good + "x", std::nullopt).ok());
  EXPECT_NE(ErrorOf(MakeRaw("\x93NUMPY\2" + std::string("\0\xff\xff\xff\xff", 5))).find("4294967295"),
            std::string::npos);
  EXPECT_NE(ErrorOf(MakeRaw("PK\3\4, a zip file")).find("not a .npy file"), std::string::npos);
  EXPECT_NE(ErrorOf(Path("missing.npy")).find("cannot open"), std::string::npos);
  EXPECT_TRUE(absl::IsInvalidArgument(ReadNpy(folder_, std::nullopt).status()));
}

TEST_F(NpyTest, ReadsIntoMemoryThatItIsGiven) {
  std::vector<char> memory(64);
  std::size_t asked = 0;
  const AllocateElements allocate = [&](std::size_t bytes) {
    asked = bytes;
    return std::shared_ptr<void>(std::shared_ptr<void>(), memory.data());
  };
  const AllocateElements none = [](std::size_t) { return std::shared_ptr<void>(); };
  const std::string elements = "\1\2\3\4\5\6\7\10";
  for (const bool big_endian : {false, true}) {
    const std::string path = Make(std::string("{'descr': '") + (big_endian ? '>' : '<') +
                                      "i4', 'fortran_order': False, 'shape': (2,), }\n",
                                  elements);
    const auto array = ReadNpy(path, {}, kMaxMessageBytes, allocate);
    ASSERT_TRUE(array.ok()) << array.status();
    EXPECT_EQ(array->stored.data, memory.data());
    EXPECT_EQ(asked, 8u);
    EXPECT_EQ(memory[0], big_endian ? 4 : 1);
    const auto own = ReadNpy(path, {}, kMaxMessageBytes, none);
    ASSERT_TRUE(own.ok()) << own.status();
    EXPECT_EQ(std::memcmp(own->stored.data, memory.data(), 8), 0);
  }
}

TEST_F(NpyTest, AsksForNoMemoryForWhatIsNotThere) {
  const AllocateElements allocate = [](std::size_t) -> absl::StatusOr<std::shared_ptr<void>> {
    ADD_FAILURE();
    return nullptr;
  };
  const std::string path =
      Make("{'descr': '<i4', 'fortran_order': False, 'shape': (1000000,), }\n", "\1\2\3\4");
  EXPECT_TRUE(absl::IsInvalidArgument(ReadNpy(path, {}, kMaxMessageBytes, allocate).status()));
  const AllocateElements refuse = [](std::size_t) { return absl::ResourceExhaustedError("full"); };
  const std::string small = Make("{'descr': '<i4', 'fortran_order': False, 'shape': (1,), }\n", "\1\2\3\4");
  EXPECT_TRUE(absl::IsResourceExhausted(ReadNpy(small, {}, kMaxMessageBytes, refuse).status()));
}

TEST_F(NpyTest, LeavesStandardInputAfterTheElements) {
  const std::string first = Bytes(Header("<f4", "(1,)"), kFourBytes);
  const std::string second = Bytes(Header("<i4", "(3, 0)"), "");
  const std::string third = Bytes(Header("<i4", "(1, 2)"), std::string(8, '\5'), 2);
  const int file = ::open(MakeRaw(first + second + third + "rest").c_str(), O_RDONLY);
  const int saved = ::dup(STDIN_FILENO);
  ASSERT_EQ(::dup2(file, STDIN_FILENO), STDIN_FILENO);
  const auto a = ReadNpy("-", std::nullopt), b = ReadNpy("-", std::nullopt), c = ReadNpy("-", std::nullopt);
  EXPECT_EQ(::lseek(STDIN_FILENO, 0, SEEK_CUR),
            static_cast<off_t>(first.size() + second.size() + third.size()));
  ::dup2(saved, STDIN_FILENO);
  ::close(saved);
  ::close(file);
  ASSERT_TRUE(a.ok() && b.ok() && c.ok()) << a.status() << b.status() << c.status();
  EXPECT_EQ(std::memcmp(a->stored.data, kFourBytes.data(), 4), 0);
  EXPECT_EQ(b->stored.shape, (Shape{3, 0}));
  EXPECT_EQ(std::memcmp(c->stored.data, std::string(8, '\5').data(), 8), 0);
}

TEST_F(NpyTest, ReadsPipes) {
  const std::string path = Path("pipe");
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  for (const std::size_t given : {std::size_t{40'000'000}, std::size_t{39'999'999}}) {
    const pid_t writer = ::fork();
    ASSERT_GE(writer, 0);
    if (writer == 0) {
      const NpyHeader header{.dtype = DType::kF32, .shape = Shape{10'000'000}};
      std::ofstream(path, std::ios::binary) << FormatNpyHeader(header) << std::string(given, 'x');
      ::_exit(0);
    }
    const auto array = ReadNpy(path, std::nullopt);
    ::waitpid(writer, nullptr, 0);
    EXPECT_EQ(array.ok(), given == 40'000'000);
    if (array.ok()) {
      EXPECT_EQ(static_cast<const char*>(array->stored.data)[given - 1], 'x');
    }
  }
}

}  // namespace
}  // namespace warpline::client
