#include "client/src/region_memory.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "tests/testing/status_matchers.h"

namespace warpline::client {
namespace {

using ::warpline::testing::IsOk;

TEST(RegionMemoryTest, IsAsTheServerWantsIt) {
  for (const std::size_t bytes : {std::size_t{4096}, std::size_t{130} << 20}) {
    const auto memory = RegionMemory::Create(bytes);
    ASSERT_THAT(memory, IsOk());
    const int fd = (*memory)->fd();
    EXPECT_THAT((*memory)->Populate(), IsOk());
    EXPECT_EQ(::fcntl(fd, F_GET_SEALS), F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
    EXPECT_EQ(::fcntl(fd, F_GETFL) & O_ACCMODE, O_RDWR);
    EXPECT_TRUE(::fcntl(fd, F_GETFD) & FD_CLOEXEC);
    struct stat info {};
    ASSERT_EQ(::fstat(fd, &info), 0);
    EXPECT_EQ(static_cast<std::size_t>(info.st_size), bytes);
    EXPECT_GE(static_cast<std::size_t>(info.st_blocks) * 512, bytes);
  }
}

TEST(RegionMemoryTest, IsWhatTheDescriptorShows) {
  const auto memory = RegionMemory::Create(8192);
  ASSERT_THAT(memory, IsOk());
  void* const other = ::mmap(nullptr, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, (*memory)->fd(), 0);
  ASSERT_NE(other, MAP_FAILED);
  (*memory)->CloseFd();
  EXPECT_EQ((*memory)->fd(), -1);
  std::memcpy((*memory)->data() + 5000, "shared", 7);
  EXPECT_STREQ(static_cast<const char*>(other) + 5000, "shared");
  ::munmap(other, 8192);
}

TEST(RegionMemoryTest, IsNotTheForkedChilds) {
  const auto memory = RegionMemory::Create(4096);
  ASSERT_THAT(memory, IsOk());
  const pid_t child = ::fork();
  if (child == 0) {
    // mincore() fails with ENOMEM for memory that is not mapped.
    unsigned char resident = 0;
    ::_exit(::mincore((*memory)->data(), 4096, &resident) != 0 && errno == ENOMEM ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

TEST(RegionMemoryTest, TellsThatThereIsNotEnough) {
  // More than the address space has.
  const auto memory = RegionMemory::Create(std::size_t{1} << 60);
  EXPECT_TRUE(absl::IsResourceExhausted(memory.status())) << memory.status();
}

}  // namespace
}  // namespace warpline::client
