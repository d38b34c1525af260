#include "client/cli/program_file.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/util/json_util.h>

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "client/src/enum_names.h"

namespace warpline::client {
namespace {

// The enumeration whose values a member of the JSON has; null if it has none.
const google::protobuf::EnumDescriptor* EnumOf(std::string_view member) {
  if (member == "op") return v1::ReduceOp_descriptor();
  if (member == "precision") return v1::Precision_descriptor();
  if (member == "activation") return v1::Activation_descriptor();
  if (member == "dataType" || member == "data_type") return v1::DataType_descriptor();
  if (member == "outDataType" || member == "out_data_type") return v1::DataType_descriptor();
  return nullptr;
}

// Replaces the short names of enumerations' values by their full ones, and nothing else: whether it is JSON
// at all, the parser says.
std::string WithFullNames(std::string_view json) {
  std::string text, member;
  std::size_t at = 0;
  while (at < json.size()) {
    if (json[at] != '"') {
      text += json[at++];
      continue;
    }
    const std::size_t start = ++at;
    while (at < json.size() && json[at] != '"') at += json[at] == '\\' ? 2 : 1;
    const std::string_view string = json.substr(start, std::min(at, json.size()) - start);
    ++at;
    std::size_t next = std::min(at, json.size());
    while (next < json.size() && absl::ascii_isspace(static_cast<unsigned char>(json[next]))) ++next;
    const bool is_member = next < json.size() && json[next] == ':';
    const auto* type = is_member ? nullptr : EnumOf(member);
    const std::optional<int> value = type == nullptr ? std::nullopt : EnumValueNamed(*type, string);
    const std::string full = value ? type->FindValueByNumber(*value)->name() : std::string(string);
    absl::StrAppend(&text, "\"", full, at <= json.size() ? "\"" : "");
    member = is_member ? std::string(string) : "";
  }
  return text;
}

}  // namespace

absl::StatusOr<v1::Program> ParseProgram(std::string_view json) {
  v1::Program program;
  const auto status = google::protobuf::util::JsonStringToMessage(WithFullNames(json), &program);
  if (status.ok()) return program;
  return absl::InvalidArgumentError(
      absl::StrCat("not a warpline.v1.Program in JSON: ", std::string(status.message())));
}

std::vector<std::string> InputsOf(const v1::Program& program) {
  std::set<std::string> known;
  for (const v1::Step& step : program.steps()) known.insert(step.name());
  std::vector<std::string> inputs;
  for (const v1::Step& step : program.steps()) {
    for (const std::string& name : step.inputs()) {
      if (known.insert(name).second) inputs.push_back(name);
    }
  }
  return inputs;
}

}  // namespace warpline::client
