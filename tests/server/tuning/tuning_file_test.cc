#include "server/tuning/tuning_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>

namespace warpline {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

const DeviceKind kKind = {.name = "NVIDIA \"H200\"",
                          .compute_capability = "9.0",
                          .multiprocessors = 132,
                          .cublaslt = 130100,
                          .driver = 13000};
constexpr char kProblem[] = "gemm bf16 128x4096x4096 nt";

TuningFile OfOne() {
  TuningFile file;
  file.Set(kKind, kProblem, {.variant = "cublas:5", .untuned = "cublas", .us = 10.75, .untuned_us = 13.25});
  return file;
}

TEST(TuningFileTest, WhatIsWrittenIsRead) {
  const auto read = TuningFile::Parse(OfOne().Text(), "tuned.toml");
  ASSERT_TRUE(read.ok()) << read.status();
  const TuningFile::Choices& choices = read->Of(kKind);
  ASSERT_EQ(choices.size(), 1u);
  const TunedChoice& choice = choices.at(kProblem);
  EXPECT_EQ(choice.variant, "cublas:5");
  EXPECT_EQ(choice.untuned, "cublas");
  EXPECT_EQ(choice.us, 10.75);
  EXPECT_EQ(choice.untuned_us, 13.25);
}

TEST(TuningFileTest, ChoicesAreOfTheKindOfDeviceOnWhichTheyWereMeasured) {
  const TuningFile file = OfOne();
  for (int field = 0; field < 5; ++field) {
    DeviceKind other = kKind;
    if (field == 0) other.name = "NVIDIA H100";
    if (field == 1) other.compute_capability = "8.0";
    if (field == 2) other.multiprocessors = 124;
    if (field == 3) other.cublaslt = 130101;
    if (field == 4) other.driver = 13010;
    EXPECT_TRUE(file.Of(other).empty()) << field;
  }
}

TEST(TuningFileTest, KeepsOtherKindsOfDevices) {
  TuningFile file = OfOne();
  DeviceKind other = kKind;
  other.name = "another";
  file.Set(other, "sum f32 4096 all", {.variant = "cub", .untuned = "vectorized", .us = 1, .untuned_us = 2});
  const auto read = TuningFile::Parse(file.Text(), "tuned.toml");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->Of(kKind).size(), 1u);
  EXPECT_EQ(read->Of(other).at("sum f32 4096 all").variant, "cub");
}

TEST(TuningFileTest, ASecondChoiceReplacesTheFirst) {
  TuningFile file = OfOne();
  file.Set(kKind, kProblem, {.variant = "mma", .untuned = "cublas", .us = 9, .untuned_us = 13});
  EXPECT_EQ(file.Of(kKind).size(), 1u);
  EXPECT_EQ(file.Of(kKind).at(kProblem).variant, "mma");
}

TEST(TuningFileTest, WhatHasFailedIsReadAgainBesideTheChoices) {
  TuningFile file = OfOne();
  EXPECT_THAT(file.Text(), Not(HasSubstr("failed")));
  file.AddFailed(kKind, kProblem, "mma");
  file.AddFailed(kKind, kProblem, "cublas:7");
  file.AddFailed(kKind, kProblem, "mma");
  DeviceKind other = kKind;
  other.driver = 13010;
  file.AddFailed(other, "sum f32 4096 all", "cub");
  EXPECT_THAT(file.Text(),
              HasSubstr("[device.failed]\n\"gemm bf16 128x4096x4096 nt\" = [\"cublas:7\", \"mma\"]\n"));
  const auto read = TuningFile::Parse(file.Text(), "tuned.toml");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->Of(kKind).at(kProblem).variant, "cublas:5");
  EXPECT_THAT(read->FailedOf(kKind).at(kProblem), ElementsAre("cublas:7", "mma"));
  EXPECT_TRUE(read->Of(other).empty());
  EXPECT_THAT(read->FailedOf(other).at("sum f32 4096 all"), ElementsAre("cub"));
}

TEST(TuningFileTest, FilesAreAddedUp) {
  TuningFile file = OfOne(), found;
  file.AddFailed(kKind, kProblem, "mma");
  found.AddFailed(kKind, kProblem, "cublas:7");
  found.Set(kKind, kProblem, {.variant = "gemv", .untuned = "cublas", .us = 1, .untuned_us = 2});
  found.Set(kKind, "sum f32 4096 all", {.variant = "cub", .untuned = "vectorized", .us = 1, .untuned_us = 2});
  file.Add(found);
  EXPECT_EQ(file.Of(kKind).size(), 2u);
  EXPECT_EQ(file.Of(kKind).at(kProblem).variant, "gemv");
  EXPECT_THAT(file.FailedOf(kKind).at(kProblem), ElementsAre("cublas:7", "mma"));
}

TEST(TuningFileTest, AnEmptyFileHasNoChoices) {
  const auto read = TuningFile::Parse("", "tuned.toml");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_TRUE(read->Of(kKind).empty());
  EXPECT_THAT(read->FailedOf(kKind), IsEmpty());
}

TEST(TuningFileTest, WhatHasFailedNeedsNoChoicesBesideIt) {
  const auto read = TuningFile::Parse(
      "[[device]]\nname = \"x\"\ncompute-capability = \"9.0\"\nmultiprocessors = 1\ncublaslt = 1\n"
      "driver = 1\n[device.failed]\n\"sum f32 3 all\" = [\"cub\"]\n",
      "tuned.toml");
  ASSERT_TRUE(read.ok()) << read.status();
  ASSERT_EQ(read->devices().size(), 1u);
  EXPECT_TRUE(read->devices()[0].choices.empty());
  EXPECT_THAT(read->devices()[0].failed.at("sum f32 3 all"), ElementsAre("cub"));
}

TEST(TuningFileTest, SaysWhereAFileIsWrong) {
  const std::string device =
      "[[device]]\nname = \"x\"\ncompute-capability = \"9.0\"\nmultiprocessors = 1\ncublaslt = 1\ndriver = "
      "1\n";
  const struct {
    std::string text, expected;
  } cases[] = {
      {"[device", "tuned.toml is no TOML: line 1"},
      {"a = 1\nb = 2\n\nb = 3\n", "tuned.toml is no TOML: line 2: \"b\" is given twice, here first"},
      {"[a.b]\nx = 1\n[a]\nb = 2\n", "tuned.toml is no TOML: line 1: [error]"},
      {"[a]\n[a]\n", "tuned.toml is no TOML: line 1: \"a\" is given twice, here first"},
      {"[machine]\n", "tuned.toml:1: \"machine\" is unknown"},
      {"device = 3\n", "tuned.toml:1: \"device\" is unknown"},
      {"[[device]]\nname = \"x\"\n", "tuned.toml:1: device: compute-capability is missing"},
      {device + "memory = 3\n[device.choices]\n", "tuned.toml:7: device: \"memory\" is unknown"},
      {device + "choices = 3\n", "tuned.toml:7: choices must be a table"},
      {device + "[device.choices]\n\"sort f32 3\" = {}\n",
       "tuned.toml:8: \"sort f32 3\": expected transpose"},
      {device + "[device.choices]\n\"sum f32 3 all\" = 3\n",
       "tuned.toml:8: \"sum f32 3 all\": must be a table"},
      {device + "[device.choices]\n\"sum f32 3 all\" = { variant = \"cub\", us = 0, untuned = \"x\", "
                "untuned-us = 1 }\n",
       "tuned.toml:8: \"sum f32 3 all\": us must be a number above 0"},
      {device +
           "[device.choices]\n\"sum f32 3 all\" = { variant = 3, us = 1, untuned = \"x\", untuned-us = 1 }\n",
       "tuned.toml:8: \"sum f32 3 all\": variant must be a string"},
      {device + "failed = 3\n[device.choices]\n", "tuned.toml:7: failed must be a table"},
      {device + "[device.choices]\n[device.failed]\n\"sort f32 3\" = [\"cub\"]\n",
       "tuned.toml:9: \"sort f32 3\": expected transpose"},
      {device + "[device.choices]\n[device.failed]\n\"sum f32 3 all\" = \"cub\"\n",
       "tuned.toml:9: \"sum f32 3 all\": must be an array of names of variants"},
      {device + "[device.choices]\n[device.failed]\n\"sum f32 3 all\" = [3]\n",
       "tuned.toml:9: \"sum f32 3 all\": must be an array of names of variants"},
      {device + "[device.choices]\n" + device + "[device.choices]\n", ""},
  };
  for (const auto& [text, expected] : cases) {
    const auto read = TuningFile::Parse(text, "tuned.toml");
    if (expected.empty()) {
      EXPECT_TRUE(read.ok()) << read.status();  // two empty tables contradict nothing
    } else {
      EXPECT_THAT(std::string(read.status().message()), HasSubstr(expected)) << text;
    }
  }
}

TEST(TuningFileTest, AKeyThatNobodyWouldLookUpIsAnError) {
  std::string text = OfOne().Text();
  text.replace(text.find(kProblem), sizeof(kProblem) - 1, "gemm bf16 128x4096x4096 nt lda=4096");
  EXPECT_THAT(std::string(TuningFile::Parse(text, "tuned.toml").status().message()),
              HasSubstr("\"gemm bf16 128x4096x4096 nt lda=4096\" must be \"gemm bf16 128x4096x4096 nt\""));
}

TEST(TuningFileTest, TwoTablesOfOneKindAreAnError) {
  const std::string text = OfOne().Text();
  const auto read = TuningFile::Parse(text + text.substr(text.find("[[device]]")), "tuned.toml");
  EXPECT_THAT(std::string(read.status().message()), HasSubstr("another table is for the same kind"));
}

std::string Content(const std::string& path) {
  std::ostringstream content;
  content << std::ifstream(path).rdbuf();
  return content.str();
}

TEST(TuningFileTest, WritingReplacesTheFileWithItsModeAndLeavesNothingElse) {
  const std::filesystem::path folder = std::filesystem::path(testing::TempDir()) / "tuning_file_test";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directory(folder);
  const std::string path = folder / "tuned.toml";
  std::ofstream(path) << "old";
  chmod(path.c_str(), 0600);
  ASSERT_TRUE(TuningFile::CheckWritable(path).ok());
  EXPECT_EQ(Content(path), "old");
  ASSERT_TRUE(OfOne().Write(path).ok());
  EXPECT_EQ(Content(path), OfOne().Text());
  struct stat status;
  ASSERT_EQ(stat(path.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777u, 0600u);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder), {}), 1);
  std::filesystem::remove_all(folder);
}

TEST(TuningFileTest, SaysWhichFileCannotBeWritten) {
  const absl::Status status = OfOne().Write("/nowhere/tuned.toml");
  EXPECT_THAT(std::string(status.message()), HasSubstr("/nowhere/tuned.toml"));
}

}  // namespace
}  // namespace warpline
