#include "server/rpc/library_log.h"

#include <google/protobuf/stubs/logging.h>
#include <grpc/support/log.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/observe/limited_log.h"
#include "server/observe/log.h"

namespace warpline {
namespace {

std::vector<std::pair<std::string_view, std::string>> Fields(std::string_view file, int line,
                                                             const std::string& reason) {
  return {{"reason", reason},
          {"where", absl::StrCat(std::string(file.substr(file.rfind('/') + 1)), ":", line)}};
}

// The libraries' log functions have no state, so lines left out are counted for the whole process.
void WriteOfGrpc(gpr_log_func_args* line) {
  static LimitedLog* const log = new LimitedLog;
  const auto fields = Fields(line->file, line->line, line->message);
  switch (line->severity) {
    case GPR_LOG_SEVERITY_ERROR:
      return log->Write("warning", "gRPC", fields);
    case GPR_LOG_SEVERITY_INFO:
      return Log("info", "gRPC", fields);
    default:
      return Log("debug", "gRPC", fields);
  }
}

void WriteOfProtobuf(google::protobuf::LogLevel, const char* file, int line, const std::string& message) {
  static LimitedLog* const log = new LimitedLog;
  log->Write("warning", "protobuf", Fields(file, line, message));
}

}  // namespace

void TakeOverLibraryLogs() {
  gpr_set_log_function(WriteOfGrpc);
  google::protobuf::SetLogHandler(WriteOfProtobuf);
}

}  // namespace warpline
