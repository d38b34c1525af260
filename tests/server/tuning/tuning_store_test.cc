#include "server/tuning/tuning_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

namespace warpline {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Mode = TuningStore::Mode;

const DeviceKind kKind = {
    .name = "GPU", .compute_capability = "9.0", .multiprocessors = 132, .cublaslt = 1, .driver = 1};
constexpr char kProblem[] = "sum f32 4096 all";
const TunedChoice kChoice = {.variant = "cub", .untuned = "vectorized", .us = 1, .untuned_us = 2};

class TuningStoreTest : public testing::Test {
 protected:
  TuningStoreTest() { std::remove(path_.c_str()); }
  ~TuningStoreTest() override {
    std::remove(path_.c_str());
    std::remove((path_ + ".lock").c_str());
  }

  // Tests run side by side.
  const std::string path_ = testing::TempDir() + "/tuning_store_test_" +
                            testing::UnitTest::GetInstance()->current_test_info()->name() + ".toml";
};

TEST_F(TuningStoreTest, WhatOneProcessFindsTheNextOneReads) {
  {
    const auto store = TuningStore::Open(path_, Mode::kWrite);
    ASSERT_TRUE(store.ok()) << store.status();
    EXPECT_TRUE((*store)->writes());
    EXPECT_TRUE((*store)->Of(kKind).empty());
    (*store)->Set(kKind, kProblem, kChoice);
    EXPECT_EQ((*store)->Of(kKind).at(kProblem).variant, "cub");
  }
  const auto store = TuningStore::Open(path_, Mode::kRead);
  ASSERT_TRUE(store.ok()) << store.status();
  EXPECT_FALSE((*store)->writes());
  EXPECT_EQ((*store)->Of(kKind).at(kProblem).variant, "cub");
}

TEST_F(TuningStoreTest, SeveralProcessesAddToOneFile) {
  constexpr int kEach = 20;
  const auto add = [&](const std::string& name) {
    const auto store = TuningStore::Open(path_, Mode::kWrite);
    for (int i = 0; i < kEach; ++i)
      (*store)->Set(kKind, "sum f32 " + name + std::to_string(i + 1) + " all", kChoice);
  };
  std::thread one(add, "1x"), other(add, "2x");
  one.join();
  other.join();
  EXPECT_EQ((*TuningStore::Open(path_, Mode::kRead))->Of(kKind).size(), 2u * kEach);
}

TEST_F(TuningStoreTest, WhatHasFailedInOneProcessTheNextOneKnows) {
  const auto store = TuningStore::Open(path_, Mode::kWrite);
  (*store)->AddFailed(kKind, kProblem, "cub");
  EXPECT_TRUE((*TuningStore::Open(path_, Mode::kWrite))->FailedOf(kKind).at(kProblem).contains("cub"));
}

TEST_F(TuningStoreTest, NoProcessLosesWhatAnotherOneHasFound) {
  const auto one = TuningStore::Open(path_, Mode::kWrite), other = TuningStore::Open(path_, Mode::kWrite);
  (*one)->AddFailed(kKind, kProblem, "cub");
  (*other)->Set(kKind, kProblem, kChoice);
  (*other)->AddFailed(kKind, kProblem, "naive");
  (*one)->Set(kKind, "sum f32 8192 all", kChoice);
  const auto store = TuningStore::Open(path_, Mode::kRead);
  EXPECT_EQ((*store)->Of(kKind).size(), 2u);
  EXPECT_THAT((*store)->FailedOf(kKind).at(kProblem), ElementsAre("cub", "naive"));
}

TEST_F(TuningStoreTest, WhatCouldNotBeWrittenGoesThereWithTheNext) {
  const auto store = TuningStore::Open(path_, Mode::kWrite);
  (*store)->Set(kKind, kProblem, kChoice);
  std::ofstream(path_) << "edited = wrong\n";
  (*store)->Set(kKind, "sum f32 1000 all", kChoice);
  std::ofstream(path_) << "";
  (*store)->Set(kKind, "sum f32 2000 all", kChoice);
  EXPECT_EQ((*TuningStore::Open(path_, Mode::kRead))->Of(kKind).size(), 2u);
}

TEST_F(TuningStoreTest, APathMayBeRelative) {
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(testing::TempDir());
  const std::string name = std::filesystem::path(path_).filename();
  const auto store = TuningStore::Open(name, Mode::kWrite);
  (*store)->Set(kKind, kProblem, kChoice);
  std::filesystem::current_path(before);
  EXPECT_TRUE(std::filesystem::exists(path_ + ".lock"));
  EXPECT_EQ((*TuningStore::Open(path_, Mode::kRead))->Of(kKind).size(), 1u);
}

TEST_F(TuningStoreTest, WritesAllThatItKnowsWhereTheFileIsGone) {
  const auto store = TuningStore::Open(path_, Mode::kWrite);
  (*store)->Set(kKind, kProblem, kChoice);
  std::remove(path_.c_str());
  (*store)->Set(kKind, "sum f32 8192 all", kChoice);
  EXPECT_EQ((*TuningStore::Open(path_, Mode::kRead))->Of(kKind).size(), 2u);
}

TEST_F(TuningStoreTest, AFileThatIsToBeReadMustBeThere) {
  EXPECT_THAT(std::string(TuningStore::Open(path_, Mode::kRead).status().message()),
              HasSubstr("--tuning-file=" + path_));
}

TEST_F(TuningStoreTest, NothingIsWrittenBeforeAProblemIsSettled) {
  const auto store = TuningStore::Open(path_, Mode::kWrite);
  ASSERT_TRUE(store.ok()) << store.status();
  EXPECT_TRUE((*store)->CheckWritable().ok());
  EXPECT_FALSE(std::ifstream(path_).good());
}

TEST_F(TuningStoreTest, SaysThatAFileCannotBeWritten) {
  const auto store = TuningStore::Open("/nowhere/tuned.toml", Mode::kWrite);
  ASSERT_TRUE(store.ok()) << store.status();
  EXPECT_THAT(std::string((*store)->CheckWritable().message()),
              HasSubstr("--tuning-file=/nowhere/tuned.toml: "));
}

TEST_F(TuningStoreTest, ALinkStaysALink) {
  const std::string link = path_ + ".link";
  std::remove(link.c_str());
  std::ofstream(path_) << "";
  ASSERT_EQ(symlink(path_.c_str(), link.c_str()), 0);
  (*TuningStore::Open(link, Mode::kWrite))->Set(kKind, kProblem, kChoice);
  struct stat status;
  ASSERT_EQ(lstat(link.c_str(), &status), 0);
  EXPECT_TRUE(S_ISLNK(status.st_mode));
  EXPECT_EQ((*TuningStore::Open(path_, Mode::kRead))->Of(kKind).size(), 1u);
  std::remove(link.c_str());
}

TEST_F(TuningStoreTest, AWrongFileIsNotReplaced) {
  std::ofstream(path_) << "nonsense = 1\n";
  EXPECT_FALSE(TuningStore::Open(path_, Mode::kWrite).ok());
  std::string line;
  std::getline(std::ifstream(path_) >> std::ws, line);
  EXPECT_EQ(line, "nonsense = 1");
}

}  // namespace
}  // namespace warpline
