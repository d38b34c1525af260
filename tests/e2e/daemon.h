// A real warplined of our own, on free ports, for one test.
#ifndef WARPLINE_TESTS_E2E_DAEMON_H_
#define WARPLINE_TESTS_E2E_DAEMON_H_

#include <grpcpp/grpcpp.h>
#include <sys/types.h>

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace warpline {

constexpr std::size_t kMiB = std::size_t{1} << 20;

// Starts the daemon named by $WARPLINED (set by CMake) and waits for its READY line. A daemon that the test
// left running is told to stop, and the test fails if it does not exit with 0: a crash, or a leak that a
// sanitizer finds at exit, must not go unseen.
class Daemon {
 public:
  explicit Daemon(std::vector<std::string> flags = {});
  ~Daemon();
  Daemon(const Daemon&) = delete;
  Daemon& operator=(const Daemon&) = delete;

  const std::string& address() const { return grpc_; }
  // The address of --proxy-listen; empty without it.
  const std::string& proxied_address() const { return proxied_; }
  const std::string& metrics_address() const { return metrics_; }
  const std::string& backend() const { return backend_; }
  pid_t pid() const { return pid_; }
  // A channel with a connection of its own and without limits on messages.
  std::shared_ptr<grpc::Channel> Channel(const std::shared_ptr<grpc::ChannelCredentials>& credentials =
                                             grpc::InsecureChannelCredentials()) const;

  // Body of a GET on the metrics port; `status` gets the HTTP status. `headers` are whole lines.
  std::string Get(const std::string& path, int* status = nullptr, const std::string& headers = "") const;
  // Sum of a metric's series whose line contains `labels`; NaN, equal to nothing, if there is none. A test
  // fails if the daemon does not answer.
  double Metric(const std::string& name, const std::string& labels = "") const;
  // Waits up to a minute until Metric() == value; whether it came to that.
  bool AwaitMetric(const std::string& name, const std::string& labels, double value) const;
  double ResidentBytes() const { return Metric("process_resident_memory_bytes"); }
  // How many descriptors it has open.
  int Descriptors() const;
  // Waits up to a minute until there are no more than so many; whether it came to that.
  bool AwaitDescriptors(int most) const;

  void Signal(int number) const;
  // Exit code; -1 if it is still there after a minute, -signal if a signal ended it.
  int Wait();

 private:
  pid_t pid_ = -1;
  std::string grpc_, metrics_, backend_, proxied_;
};

}  // namespace warpline

#endif  // WARPLINE_TESTS_E2E_DAEMON_H_
