#include "tests/e2e/daemon.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <limits>
#include <sstream>
#include <stdexcept>

#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace warpline {

Daemon::Daemon(std::vector<std::string> flags) {
  const char* program = std::getenv("WARPLINED");
  if (program == nullptr) throw std::runtime_error("set WARPLINED to the daemon's path");
  const char* backend = std::getenv("WARPLINE_TEST_BACKEND");
  flags.insert(flags.begin(), {program, "--listen=127.0.0.1:0", "--metrics-listen=127.0.0.1:0",
                               std::string("--backend=") + (backend != nullptr ? backend : "cpu")});
  int ready[2];
  if (pipe(ready) != 0) throw std::runtime_error("pipe");
  pid_ = fork();
  if (pid_ == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    dup2(ready[1], STDOUT_FILENO);
    close(ready[0]);
    close(ready[1]);
    std::vector<char*> arguments;
    for (std::string& flag : flags) arguments.push_back(flag.data());
    arguments.push_back(nullptr);
    execv(program, arguments.data());
    _exit(127);
  }
  close(ready[1]);
  std::string line;
  for (char c = 0; read(ready[0], &c, 1) == 1 && c != '\n';) line += c;
  close(ready[0]);
  char grpc[256] = "", metrics[256] = "", name[64] = "", proxied[256] = "";
  if (std::sscanf(line.c_str(), "READY grpc=%255s metrics=%255s backend=%63s proxy=%255s", grpc, metrics,
                  name, proxied) < 3) {
    throw std::runtime_error("the daemon is not ready: '" + line + "'");
  }
  grpc_ = grpc;
  metrics_ = metrics;
  backend_ = name;
  proxied_ = proxied;
}

Daemon::~Daemon() {
  if (pid_ <= 0) return;
  Signal(SIGTERM);
  EXPECT_EQ(Wait(), 0) << "the daemon did not end well";
  if (pid_ <= 0) return;
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
}

std::shared_ptr<grpc::Channel> Daemon::Channel(
    const std::shared_ptr<grpc::ChannelCredentials>& credentials) const {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(-1);
  arguments.SetMaxSendMessageSize(-1);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  return grpc::CreateCustomChannel(grpc_, credentials, arguments);
}

std::string Daemon::Get(const std::string& path, int* status, const std::string& headers) const {
  const std::size_t colon = metrics_.rfind(':');
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(std::stoi(metrics_.substr(colon + 1))));
  inet_pton(AF_INET, metrics_.substr(0, colon).c_str(), &address.sin_addr);
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  std::string reply;
  if (connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0) {
    const std::string request =
        "GET " + path + " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n" + headers + "\r\n";
    if (write(fd, request.data(), request.size()) == static_cast<ssize_t>(request.size())) {
      char buffer[65536];
      for (ssize_t n; (n = read(fd, buffer, sizeof(buffer))) > 0;) {
        reply.append(buffer, static_cast<std::size_t>(n));
      }
    }
  }
  close(fd);
  if (status != nullptr) *status = reply.size() > 12 ? std::atoi(reply.c_str() + 9) : 0;
  const std::size_t body = reply.find("\r\n\r\n");
  return body == std::string::npos ? "" : reply.substr(body + 4);
}

double Daemon::Metric(const std::string& name, const std::string& labels) const {
  int status = 0;
  std::istringstream lines(Get("/metrics", &status));
  EXPECT_EQ(status, 200) << "the daemon does not serve its metrics";
  double sum = 0;
  bool found = false;
  for (std::string line; std::getline(lines, line);) {
    const bool named = line.rfind(name + " ", 0) == 0 || line.rfind(name + "{", 0) == 0;
    if (!named || line.find(labels) == std::string::npos) continue;
    found = true;
    sum += std::stod(line.substr(line.rfind(' ') + 1));
  }
  return found ? sum : std::numeric_limits<double>::quiet_NaN();
}

bool Daemon::AwaitMetric(const std::string& name, const std::string& labels, double value) const {
  // No oftener: the daemon makes the text of its metrics 25 times a second at most.
  for (int i = 0; i < 1200; ++i) {
    if (Metric(name, labels) == value) return true;
    absl::SleepFor(absl::Milliseconds(50));
  }
  return false;
}

int Daemon::Descriptors() const {
  const std::filesystem::directory_iterator all("/proc/" + std::to_string(pid_) + "/fd");
  return static_cast<int>(std::distance(begin(all), end(all)));
}

bool Daemon::AwaitDescriptors(int most) const {
  for (int i = 0; i < 3000; ++i) {
    if (Descriptors() <= most) return true;
    absl::SleepFor(absl::Milliseconds(20));
  }
  return false;
}

void Daemon::Signal(int number) const { kill(pid_, number); }

int Daemon::Wait() {
  for (int i = 0; i < 3000; ++i) {
    int status = 0;
    if (waitpid(pid_, &status, WNOHANG) == pid_) {
      pid_ = -1;
      return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
    }
    absl::SleepFor(absl::Milliseconds(20));
  }
  return -1;
}

}  // namespace warpline
