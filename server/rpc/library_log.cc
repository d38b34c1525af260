#include "server/rpc/library_log.h"

#include <string>

#include "absl/log/globals.h"
#include "absl/log/initialize.h"
#include "absl/log/log_entry.h"
#include "absl/log/log_sink.h"
#include "absl/log/log_sink_registry.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "server/observe/limited_log.h"
#include "server/observe/log.h"

namespace warpline {
namespace {

// Newer gRPC and protobuf write to the log of Abseil.
class Sink final : public absl::LogSink {
 public:
  void Send(const absl::LogEntry& entry) override {
    const std::string where = absl::StrCat(entry.source_basename(), ":", entry.source_line());
    const bool of_protobuf = absl::StrContains(entry.source_filename(), "protobuf");
    const bool is_info = entry.log_severity() == absl::LogSeverity::kInfo;
    // Many lines that only inform leave out no other.
    LimitedLog& log = is_info ? infos_ : of_protobuf ? of_protobuf_ : of_grpc_;
    const std::string_view level = is_info                                             ? "info"
                                   : entry.log_severity() == absl::LogSeverity::kFatal ? "error"
                                                                                       : "warning";
    log.Write(level, of_protobuf ? "protobuf" : "gRPC",
              {{"reason", std::string(entry.text_message())}, {"where", where}});
  }

 private:
  LimitedLog infos_, of_grpc_, of_protobuf_;
};

}  // namespace

void TakeOverLibraryLogs() {
  // Never destroyed: threads of the libraries may log until the process has ended.
  [[maybe_unused]] static const bool once = [] {
    absl::AddLogSink(new Sink);
    absl::SetStderrThreshold(absl::LogSeverityAtLeast::kInfinity);
    absl::InitializeLog();
    return true;
  }();
}

}  // namespace warpline
