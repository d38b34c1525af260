// A line on the terminal while a large transfer is on its way.
#ifndef WARPLINE_CLIENT_PROGRESS_H_
#define WARPLINE_CLIENT_PROGRESS_H_

#include <cstddef>
#include <string>

#include "client/raw_channel.h"

namespace warpline::client {

// "sending or computing, 256 MiB, 0.4 s". No bar, and no telling the two apart: gRPC does not say how far it
// is (raw_channel.h).
std::string FormatProgress(const Progress& progress);

// Draws on standard error, if that is a terminal; erases its line when destroyed.
class ProgressLine {
 public:
  // `bytes`: of the request. Small ones are shown only once they have taken a while.
  ProgressLine(std::size_t bytes, bool quiet);
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  // For one call; empty if nothing would ever be drawn. The line must outlive it.
  ProgressHook Hook();

 private:
  void Draw(const Progress& progress);

  bool enabled_;
  bool large_;
  bool drawn_ = false;
};

}  // namespace warpline::client

#endif  // WARPLINE_CLIENT_PROGRESS_H_
