// Keeps protobuf from writing to stderr about each text that is not UTF-8.
#ifndef WARPLINE_TESTS_TESTING_QUIET_PROTOBUF_H_
#define WARPLINE_TESTS_TESTING_QUIET_PROTOBUF_H_

#include "google/protobuf/stubs/common.h"

// Newer versions write through Abseil's log.
#if GOOGLE_PROTOBUF_VERSION < 4000000
#include "google/protobuf/stubs/logging.h"
#else
#include "absl/base/log_severity.h"
#include "absl/log/globals.h"
#endif

namespace warpline::testing {

// It is quiet in the whole process while an object lives.
#if GOOGLE_PROTOBUF_VERSION < 4000000
using QuietProtobuf = google::protobuf::LogSilencer;
#else
class QuietProtobuf {
  const absl::ScopedStderrThreshold threshold_{absl::LogSeverityAtLeast::kInfinity};
};
#endif

}  // namespace warpline::testing

#endif  // WARPLINE_TESTS_TESTING_QUIET_PROTOBUF_H_
