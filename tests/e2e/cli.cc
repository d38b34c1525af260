#include "tests/e2e/cli.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <stdexcept>

namespace warpline {
namespace {

namespace fs = std::filesystem;

std::string ReadFile(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Returns the folder of the program.
fs::path ProgramFolder() {
  if (const char* program = std::getenv("WARPLINE_CLI")) return fs::path(program).parent_path();
  if (const char* daemon = std::getenv("WARPLINED")) return fs::path(daemon).parent_path();
  throw std::runtime_error("set WARPLINE_CLI to the program's path");
}

fs::path MakeFolder() {
  std::string name = fs::temp_directory_path() / "warpline_cli.XXXXXX";
  if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("mkdtemp");
  return name;
}

}  // namespace

CliTest::CliTest(std::vector<std::string> daemon_flags)
    : daemon_(std::move(daemon_flags)), folder_(MakeFolder()) {
  const std::string path = std::getenv("PATH") != nullptr ? std::getenv("PATH") : "/bin:/usr/bin";
  ::setenv("PATH", (fs::absolute(ProgramFolder()).string() + ":" + path).c_str(), 1);
  ::setenv("WARPLINE_SERVER", daemon_.address().c_str(), 1);
}

CliTest::~CliTest() { fs::remove_all(folder_); }

Finished CliTest::Run(const std::string& script) const {
  const std::string line =
      "cd " + folder_.string() + "; { " + script + "\n} </dev/null >stdout.txt 2>stderr.txt";
  const int status = std::system(line.c_str());
  Finished finished;
  finished.code = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  finished.out = Get("stdout.txt");
  finished.err = Get("stderr.txt");
  return finished;
}

void CliTest::Put(const std::string& name, const std::string& bytes) const {
  std::ofstream(Path(name), std::ios::binary) << bytes;
}

std::string CliTest::Get(const std::string& name) const { return ReadFile(Path(name)); }

}  // namespace warpline
