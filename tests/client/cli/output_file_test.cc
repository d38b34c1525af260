#include "client/cli/output_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace warpline::client {
namespace {

namespace fs = std::filesystem;

class OutputFileTest : public testing::Test {
 protected:
  OutputFileTest() : folder_(fs::temp_directory_path() / ("output_file_test." + std::to_string(::getpid()))) {
    fs::create_directories(folder_);
  }
  ~OutputFileTest() override { fs::remove_all(folder_); }

  std::string Path(const std::string& name) const { return folder_ / name; }
  std::ptrdiff_t Entries() const { return std::distance(fs::directory_iterator(folder_), {}); }

  static absl::Status Write(const std::string& path, std::string_view text = "new text") {
    const std::string_view pieces[] = {text.substr(0, 3), {}, text.substr(3)};
    return WriteFile(path, pieces);
  }
  static void Put(const std::string& path, const std::string& text) { std::ofstream(path) << text; }
  static std::string Get(const std::string& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  fs::path folder_;
};

TEST_F(OutputFileTest, WritesANewFileWithTheModeOfTheUmask) {
  const mode_t mask = ::umask(027);
  const absl::Status status = Write(Path("out"));
  ::umask(mask);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(Get(Path("out")), "new text");
  EXPECT_EQ(fs::status(Path("out")).permissions(), fs::perms{0640});
  EXPECT_EQ(Entries(), 1);
}

TEST_F(OutputFileTest, KeepsTheModeOfTheFileItReplaces) {
  Put(Path("out"), "old text that is longer");
  fs::permissions(Path("out"), fs::perms{0604});
  ASSERT_TRUE(Write(Path("out")).ok());
  EXPECT_EQ(Get(Path("out")), "new text");
  EXPECT_EQ(fs::status(Path("out")).permissions(), fs::perms{0604});
  EXPECT_EQ(Entries(), 1);
}

TEST_F(OutputFileTest, ReplacesWhatLinksLeadToAndNotTheLinks) {
  fs::create_directories(Path("other"));
  Put(Path("other/file"), "old");
  fs::create_symlink("other/file", Path("inner"));
  fs::create_symlink(Path("inner"), Path("outer"));
  ASSERT_TRUE(Write(Path("outer")).ok());
  EXPECT_TRUE(fs::is_symlink(Path("outer")));
  EXPECT_TRUE(fs::is_symlink(Path("inner")));
  EXPECT_FALSE(fs::is_symlink(Path("other/file")));
  EXPECT_EQ(Get(Path("other/file")), "new text");
}

TEST_F(OutputFileTest, MakesTheFileThatALinkPromises) {
  fs::create_symlink("later", Path("link"));
  ASSERT_TRUE(Write(Path("link")).ok());
  EXPECT_TRUE(fs::is_symlink(Path("link")));
  EXPECT_EQ(Get(Path("later")), "new text");
}

TEST_F(OutputFileTest, WritesPipesInPlace) {
  ASSERT_EQ(::mkfifo(Path("pipe").c_str(), 0600), 0);
  fs::create_symlink("pipe", Path("link"));
  const int reader = ::open(Path("pipe").c_str(), O_RDONLY | O_NONBLOCK);
  ASSERT_TRUE(Write(Path("link")).ok());
  std::array<char, 64> text{};
  EXPECT_EQ(::read(reader, text.data(), text.size()), 8);
  EXPECT_STREQ(text.data(), "new text");
  ::close(reader);
  EXPECT_TRUE(fs::is_fifo(Path("pipe")));
  EXPECT_TRUE(fs::is_symlink(Path("link")));
  EXPECT_EQ(Entries(), 2);
}

TEST_F(OutputFileTest, WritesFilesWithoutANameInPlace) {
  const int file = ::open(Path("gone").c_str(), O_RDWR | O_CREAT, 0600);
  fs::remove(Path("gone"));
  ASSERT_TRUE(Write("/proc/self/fd/" + std::to_string(file)).ok());
  std::array<char, 64> text{};
  EXPECT_EQ(::pread(file, text.data(), text.size(), 0), 8);
  ::close(file);
  EXPECT_EQ(Entries(), 0);
}

TEST_F(OutputFileTest, LeavesNothingBehindWhenThePathIsWrong) {
  fs::create_directories(Path("folder/inner"));
  fs::create_symlink("loop", Path("loop"));
  EXPECT_TRUE(absl::IsInvalidArgument(Write(Path("folder"))));
  EXPECT_TRUE(absl::IsInvalidArgument(Write(Path("loop"))));
  EXPECT_TRUE(absl::IsInvalidArgument(Write(Path("missing/out"))));
  EXPECT_TRUE(fs::is_symlink(Path("loop")));
  EXPECT_EQ(Entries(), 2);
}

TEST_F(OutputFileTest, KeepsTheOldFileWhenWritingFails) {
  Put(Path("out"), "old");
  rlimit before{};
  ::getrlimit(RLIMIT_FSIZE, &before);
  const rlimit small{.rlim_cur = 5, .rlim_max = before.rlim_max};
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  ::setrlimit(RLIMIT_FSIZE, &small);
  const absl::Status status = Write(Path("out"));
  ::setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;  // and not InvalidArgument: the path is right
  EXPECT_EQ(Get(Path("out")), "old");
  EXPECT_EQ(Entries(), 1);
}

TEST_F(OutputFileTest, KnowsStandardOutputByItsOtherNames) {
  EXPECT_TRUE(IsStandardOutput("-"));
  EXPECT_FALSE(IsStandardOutput(Path("out")));
  Put(Path("out"), "first ");
  // The link is like /dev/stdout. No test names the machine's own /dev/stdout: run as root, a mistake would
  // replace it.
  fs::create_symlink("/proc/self/fd/1", Path("stdout"));
  const int file = ::open(Path("out").c_str(), O_WRONLY | O_APPEND);
  const int saved = ::dup(STDOUT_FILENO);
  ::dup2(file, STDOUT_FILENO);
  const bool known = IsStandardOutput(Path("stdout")) && IsStandardOutput("/proc/self/fd/1");
  const absl::Status status = Write(Path("stdout"));
  ::dup2(saved, STDOUT_FILENO);
  ::close(saved);
  ::close(file);
  EXPECT_TRUE(known);
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(Get(Path("out")), "first new text");
  EXPECT_TRUE(fs::is_symlink(Path("stdout")));
}

TEST_F(OutputFileTest, KnowsAFileByItsOtherNames) {
  fs::create_symlink("out", Path("link"));
  fs::create_directory(Path("folder"));
  for (const bool is_there : {false, true}) {
    if (is_there) Put(Path("out"), "old");
    EXPECT_TRUE(IsSameOutput(Path("out"), Path("out"))) << is_there;
    EXPECT_TRUE(IsSameOutput(Path("out"), Path("./folder/../out"))) << is_there;
    EXPECT_TRUE(IsSameOutput(Path("out"), Path("link"))) << is_there;
    EXPECT_FALSE(IsSameOutput(Path("out"), Path("out2"))) << is_there;
    EXPECT_FALSE(IsSameOutput(Path("out"), Path("folder/out"))) << is_there;
  }
  EXPECT_TRUE(IsSameOutput("not_there", "./not_there"));
  EXPECT_TRUE(IsSameOutput("-", "-"));
  EXPECT_FALSE(IsSameOutput("-", Path("out")));
  EXPECT_FALSE(IsSameOutput("/dev/null", "/dev/null"));
}

}  // namespace
}  // namespace warpline::client
