#include "client/cli/program_file.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/util/json_util.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "client/src/enum_names.h"
#include "proto/rules/program_rules.h"

namespace warpline::client {
namespace {

// Returns the enumeration type of a JSON member; null if the member is not an enumeration. `object` is the
// name of the member that contains the enclosing object.
const google::protobuf::EnumDescriptor* EnumOf(std::string_view object, std::string_view member) {
  if (member == "op" && object == "scan") return v1::ScanOp_descriptor();
  if (member == "op" && object == "nodes") return v1::MapOp_descriptor();
  if (member == "op") return v1::ReduceOp_descriptor();
  if (member == "precision") return v1::Precision_descriptor();
  if (member == "activation") return v1::Activation_descriptor();
  if (member == "dataType" || member == "data_type") return v1::DataType_descriptor();
  if (member == "outDataType" || member == "out_data_type") return v1::DataType_descriptor();
  return nullptr;
}

// Maximum nesting: deeper than any program, but not so deep that a file could exhaust the stack.
constexpr int kMaxDepth = 32;

// Parses `text`, and replaces the short names of enumeration values by their full names.
absl::StatusOr<std::string> WithFullNames(std::string_view text) {
  using Event = nlohmann::json::parse_event_t;
  std::string member;
  std::vector<std::string> objects;  // the names of the members whose objects are open
  int deepest = 0;
  const auto see = [&](int depth, Event event, nlohmann::json& seen) {
    deepest = std::max(deepest, depth);
    if (event == Event::object_start) {
      objects.push_back(member);
    } else if (event == Event::object_end) {
      member = objects.back();
      objects.pop_back();
    } else if (event == Event::key) {
      member = seen.get<std::string>();
    } else if (event == Event::value && seen.is_string() && !objects.empty()) {
      const auto* type = EnumOf(objects.back(), member);
      const std::string& name = seen.get_ref<const std::string&>();
      const std::optional<int> value = type == nullptr ? std::nullopt : EnumValueNamed(*type, name);
      if (value) seen = type->FindValueByNumber(*value)->name();
    }
    return true;
  };
  try {
    const nlohmann::json json = nlohmann::json::parse(text, see);
    if (deepest > kMaxDepth) {
      return absl::InvalidArgumentError(absl::StrCat("it is nested more than ", kMaxDepth, " deep"));
    }
    return json.dump();
  } catch (const nlohmann::json::exception& error) {
    // The text is "[json.exception.parse_error.101] parse error at line 1, column 2: ...".
    const std::string what = error.what();
    return absl::InvalidArgumentError(what.substr(std::min(what.find("] ") + 2, what.size())));
  }
}

}  // namespace

absl::StatusOr<v1::Program> ParseProgram(std::string_view json) {
  const absl::StatusOr<std::string> text = WithFullNames(json);
  v1::Program program;
  std::string problem(text.status().message());
  if (text.ok()) {
    const auto status = google::protobuf::util::JsonStringToMessage(*text, &program);
    if (status.ok()) return program;
    problem = std::string(status.message());
  }
  return absl::InvalidArgumentError(absl::StrCat("not a warpline.v1.Program in JSON: ", problem));
}

std::vector<std::string> InputsOf(const v1::Program& program) {
  std::set<std::string> known;
  for (const v1::Step& step : program.steps()) {
    known.insert(step.name());
    for (const FurtherName& further : FurtherNames(step)) known.insert(*further.name);
  }
  std::vector<std::string> inputs;
  for (const v1::Step& step : program.steps()) {
    for (const std::string& name : step.inputs()) {
      if (known.insert(name).second) inputs.push_back(name);
    }
  }
  return inputs;
}

}  // namespace warpline::client
