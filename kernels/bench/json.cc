#include "kernels/bench/json.h"

#include <google/protobuf/util/json_util.h>

#include <cmath>
#include <fstream>
#include <utility>

#include "kernels/bench/check.h"

namespace warpline::bench {
namespace {

google::protobuf::Value& At(JsonObject& object, std::string_view key) {
  return (*object.mutable_fields())[std::string(key)];
}

void Assign(google::protobuf::Value& at, double value) {
  if (std::isfinite(value)) {
    at.set_number_value(value);
  } else {
    at.set_null_value(google::protobuf::NULL_VALUE);
  }
}

}  // namespace

void Set(JsonObject& object, std::string_view key, double value) { Assign(At(object, key), value); }
void Set(JsonObject& object, std::string_view key, bool value) { At(object, key).set_bool_value(value); }
void Set(JsonObject& object, std::string_view key, std::string_view value) {
  At(object, key).set_string_value(std::string(value));
}
void Set(JsonObject& object, std::string_view key, JsonObject value) {
  *At(object, key).mutable_struct_value() = std::move(value);
}
void Set(JsonObject& object, std::string_view key, std::vector<JsonObject> values) {
  auto& list = *At(object, key).mutable_list_value();
  for (JsonObject& value : values) *list.add_values()->mutable_struct_value() = std::move(value);
}
void Set(JsonObject& object, std::string_view key, const std::vector<double>& values) {
  auto& list = *At(object, key).mutable_list_value();
  for (double value : values) Assign(*list.add_values(), value);
}

void WriteFile(const JsonObject& object, const std::string& path) {
  google::protobuf::util::JsonPrintOptions options;
  options.add_whitespace = true;
  std::string text;
  if (!google::protobuf::util::MessageToJsonString(object, &text, options).ok()) {
    throw Failure("cannot write the results as JSON");
  }
  std::ofstream file(path, std::ios::trunc);
  file << text << '\n';
  file.close();
  if (!file) throw Failure("cannot write " + path);
}

}  // namespace warpline::bench
