#include "server/store/shared_memory.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <string>

#include "server/base/unique_fd.h"
#include "tests/testing/status_matchers.h"

namespace warpline {
namespace {

using ::testing::HasSubstr;
using ::warpline::testing::IsOk;
using ::warpline::testing::StatusIs;

constexpr std::size_t kBytes = 1 << 20;
constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW;

UniqueFd Memfd(unsigned flags = 0) {
  return UniqueFd(memfd_create("region", MFD_CLOEXEC | MFD_ALLOW_SEALING | flags));
}

// Makes shared memory as a client should make it.
UniqueFd Shareable(int seals = kSeals) {
  UniqueFd fd = Memfd();
  EXPECT_EQ(posix_fallocate(fd.get(), 0, kBytes), 0);
  EXPECT_EQ(fcntl(fd.get(), F_ADD_SEALS, seals), 0);
  return fd;
}

void ExpectUnfit(int fd, const std::string& why, std::size_t bytes = kBytes) {
  EXPECT_THAT(CheckShareable(fd, bytes), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(why)));
}

TEST(SharedMemoryTest, BothSidesSeeWhatIsWritten) {
  const UniqueFd fd = Shareable();
  ASSERT_THAT(CheckShareable(fd.get(), kBytes), IsOk());
  const auto mapped = MapShared(fd.get(), kBytes);
  ASSERT_THAT(mapped, IsOk());
  ASSERT_EQ(mapped->bytes().size(), kBytes);
  EXPECT_EQ(pwrite(fd.get(), "there", 5, 4096), 5);
  EXPECT_EQ(std::memcmp(mapped->bytes().data() + 4096, "there", 5), 0);
  std::memcpy(mapped->bytes().data() + 8192, "here", 4);
  std::array<char, 4> read;
  EXPECT_EQ(pread(fd.get(), read.data(), 4, 8192), 4);
  EXPECT_EQ(std::string(read.data(), 4), "here");
}

TEST(SharedMemoryTest, TheSealsMustBeThere) {
  ExpectUnfit(Shareable(F_SEAL_GROW).get(), "F_SEAL_SHRINK");
  ExpectUnfit(Shareable(F_SEAL_SHRINK).get(), "F_SEAL_GROW");
  ExpectUnfit(Shareable(kSeals | F_SEAL_WRITE).get(), "F_SEAL_WRITE");
  ExpectUnfit(Shareable(kSeals | 0x0010).get(), "F_SEAL_FUTURE_WRITE");
  UniqueFd unsealable(memfd_create("region", MFD_CLOEXEC));
  EXPECT_EQ(posix_fallocate(unsealable.get(), 0, kBytes), 0);
  ExpectUnfit(unsealable.get(), "F_SEAL_SHRINK");
}

TEST(SharedMemoryTest, TheSizeMustBeTheOneThatWasAskedFor) {
  ExpectUnfit(Shareable().get(), "1048576 bytes; Open was told 2097152", 2 * kBytes);
  ExpectUnfit(Shareable().get(), "1048576 bytes; Open was told 4096", 4096);
  ExpectUnfit(Shareable().get(), "Open was told", ~std::size_t{0});
}

TEST(SharedMemoryTest, HolesAreRefused) {
  UniqueFd sparse = Memfd();
  ASSERT_EQ(ftruncate(sparse.get(), kBytes), 0);
  ASSERT_EQ(pwrite(sparse.get(), "x", 1, 4096), 1);
  ASSERT_EQ(fcntl(sparse.get(), F_ADD_SEALS, kSeals), 0);
  ExpectUnfit(sparse.get(), "has holes");
}

TEST(SharedMemoryTest, BlocksBehindTheEndDoNotMakeUpForHoles) {
  UniqueFd fd = Memfd();
  ASSERT_EQ(ftruncate(fd.get(), kBytes), 0);
  ASSERT_EQ(fallocate(fd.get(), FALLOC_FL_KEEP_SIZE, kBytes, kBytes), 0);
  ASSERT_EQ(fcntl(fd.get(), F_ADD_SEALS, kSeals), 0);
  ExpectUnfit(fd.get(), "has holes: 0 of its");
}

TEST(SharedMemoryTest, WhatIsNoMemfdIsRefused) {
  std::array<int, 2> ends;
  ASSERT_EQ(pipe(ends.data()), 0);
  const UniqueFd reading(ends[0]), writing(ends[1]);
  ExpectUnfit(reading.get(), "is no memfd");
  ExpectUnfit(UniqueFd(open("/dev/zero", O_RDWR)).get(), "is no memfd");
  ExpectUnfit(UniqueFd(open("/proc/self/exe", O_RDONLY)).get(), "is no memfd");
  ExpectUnfit(UniqueFd(open("/tmp", O_RDONLY)).get(), "is no memfd");
  ExpectUnfit(-1, "is no memfd");
}

TEST(SharedMemoryTest, HugePagesAreRefused) {
  const UniqueFd fd = Memfd(MFD_HUGETLB);
  if (!fd.ok()) GTEST_SKIP() << "no memfd of huge pages here: " << std::strerror(errno);
  ASSERT_EQ(ftruncate(fd.get(), 2 << 20), 0);
  ASSERT_EQ(fcntl(fd.get(), F_ADD_SEALS, kSeals), 0);
  ExpectUnfit(fd.get(), "MFD_HUGETLB", 2 << 20);
}

TEST(SharedMemoryTest, ADescriptorThatOnlyReadsIsRefused) {
  const UniqueFd fd = Shareable();
  const UniqueFd read_only(open(("/proc/self/fd/" + std::to_string(fd.get())).c_str(), O_RDONLY));
  ASSERT_TRUE(read_only.ok());
  ExpectUnfit(read_only.get(), "not open for reading and writing");
}

// The owner can still harm only itself.
TEST(SharedMemoryTest, NothingThatTheOwnerDoesLaterBreaksTheMapping) {
  const UniqueFd fd = Shareable();
  const auto mapped = MapShared(fd.get(), kBytes);
  ASSERT_THAT(mapped, IsOk());
  EXPECT_NE(ftruncate(fd.get(), 0), 0);
  EXPECT_NE(ftruncate(fd.get(), 2 * kBytes), 0);
  EXPECT_NE(fcntl(fd.get(), F_ADD_SEALS, F_SEAL_WRITE), 0);  // there is a mapping that writes
  std::memset(mapped->bytes().data(), 7, kBytes);
  ASSERT_EQ(fallocate(fd.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, kBytes), 0);
  // Pages of zeros have taken their place, which are written again like any others.
  EXPECT_EQ(mapped->bytes()[kBytes / 2], std::byte{0});
  std::memset(mapped->bytes().data(), 8, kBytes);
  EXPECT_EQ(mapped->bytes()[kBytes - 1], std::byte{8});
}

}  // namespace
}  // namespace warpline
