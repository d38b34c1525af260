#include "server/observe/line_writer.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <thread>
#include <vector>

#include "server/base/unique_fd.h"

namespace warpline {
namespace {

using ::testing::MatchesRegex;

class LineWriterTest : public ::testing::Test {
 protected:
  LineWriterTest() {
    int fds[2];
    if (pipe(fds) != 0) return;
    reading_.Reset(fds[0]);
    writing_.Reset(fds[1]);
    fcntl(reading_.get(), F_SETFL, O_NONBLOCK);
  }
  std::string ReadAll() const {
    std::string text(1 << 20, '\0');
    std::size_t size = 0;
    for (ssize_t count = 1; count > 0; size += static_cast<std::size_t>(std::max<ssize_t>(count, 0))) {
      count = read(reading_.get(), text.data() + size, text.size() - size);
    }
    text.resize(size);
    return text;
  }
  UniqueFd reading_, writing_;
};

TEST_F(LineWriterTest, WritesLines) {
  LineWriter writer(writing_.get());
  writer.Write("one\n");
  writer.Write("two\n");
  EXPECT_EQ(ReadAll(), "one\ntwo\n");
  EXPECT_EQ(writer.dropped(), 0);
}

TEST_F(LineWriterTest, APipeThatNobodyReadsCostsLinesAndNoTime) {
  LineWriter writer(writing_.get());
  const std::string line(1000, 'x');
  for (int i = 0; i < 1000; ++i) writer.Write(line + '\n');
  const auto dropped = writer.dropped();
  EXPECT_GT(dropped, 900);
  EXPECT_THAT(ReadAll(), ::testing::StartsWith("xxx"));
  writer.Write("again\n");
  EXPECT_THAT(ReadAll(), MatchesRegex("time=.* lines=" + std::to_string(dropped) + "\nagain\n"));
  writer.Write("and again\n");
  EXPECT_EQ(ReadAll(), "and again\n");
}

TEST_F(LineWriterTest, APipeWithoutAReaderCostsLines) {
  signal(SIGPIPE, SIG_IGN);
  LineWriter writer(writing_.get());
  reading_.Reset();
  writer.Write("lost\n");
  EXPECT_EQ(writer.dropped(), 1);
}

TEST_F(LineWriterTest, LinesOfSeveralThreadsStayWhole) {
  LineWriter writer(writing_.get());
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int k = 0; k < 100; ++k) writer.Write("a line of one of the threads\n");
    });
  }
  for (std::thread& thread : threads) thread.join();
  writer.Write("end\n");
  std::string expected;
  for (int i = 0; i < 400; ++i) expected += "a line of one of the threads\n";
  EXPECT_EQ(ReadAll(), expected + "end\n");
}

}  // namespace
}  // namespace warpline
