// A line on the terminal that shows the progress of a transfer.
#ifndef WARPLINE_CLIENT_CLI_PROGRESS_LINE_H_
#define WARPLINE_CLIENT_CLI_PROGRESS_LINE_H_

#include <cstddef>
#include <string>

#include "absl/time/time.h"
#include "warpline/tensor.h"

namespace warpline::client {

// Writes to standard error, if that is a terminal. The destructor removes the line.
class ProgressLine {
 public:
  // `what`: the command and the array, for example "put x.npy".
  ProgressLine(std::string what, std::size_t total, bool quiet);
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  // Returns a callback for PutOptions and GetOptions; null if no line is shown. It must not outlive this
  // object.
  Progress callback();
  // Shows that `bytes` bytes have been transferred.
  void Show(std::size_t bytes);

 private:
  const std::string what_;
  const std::size_t total_;
  const bool shows_;
  const absl::Time start_;
  absl::Time last_;          // when the line was last shown
  std::size_t columns_ = 0;  // width of the line shown
};

}  // namespace warpline::client

#endif  // WARPLINE_CLIENT_CLI_PROGRESS_LINE_H_
