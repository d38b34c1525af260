// A line on the terminal that tells how far a transfer is.
#ifndef WARPLINE_CLIENT_CLI_PROGRESS_LINE_H_
#define WARPLINE_CLIENT_CLI_PROGRESS_LINE_H_

#include <cstddef>
#include <string>

#include "absl/time/time.h"
#include "warpline/tensor.h"

namespace warpline::client {

// On standard error, and only if that is a terminal. The line is gone when this is.
class ProgressLine {
 public:
  // `what` goes on, and which array.
  ProgressLine(std::string what, std::size_t total, bool quiet);
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  // For PutOptions and GetOptions; none if there is no line. It must not be called when this is gone.
  Progress callback();
  // Shows that so many bytes have travelled.
  void Show(std::size_t bytes);

 private:
  const std::string what_;
  const std::size_t total_;
  const bool shows_;
  const absl::Time start_;
  absl::Time last_;          // when it was shown
  std::size_t columns_ = 0;  // of what is shown
};

}  // namespace warpline::client

#endif  // WARPLINE_CLIENT_CLI_PROGRESS_LINE_H_
