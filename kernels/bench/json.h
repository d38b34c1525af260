// JSON by protobuf's Struct, which escapes and formats.
#ifndef WARPLINE_KERNELS_BENCH_JSON_H_
#define WARPLINE_KERNELS_BENCH_JSON_H_

#include <google/protobuf/struct.pb.h>

#include <string>
#include <string_view>
#include <vector>

namespace warpline::bench {

using JsonObject = google::protobuf::Struct;

// What JSON has no number for (infinities, NaN) becomes null.
void Set(JsonObject& object, std::string_view key, double value);
void Set(JsonObject& object, std::string_view key, bool value);
void Set(JsonObject& object, std::string_view key, std::string_view value);
void Set(JsonObject& object, std::string_view key, JsonObject value);
void Set(JsonObject& object, std::string_view key, std::vector<JsonObject> values);
void Set(JsonObject& object, std::string_view key, const std::vector<double>& values);
inline void Set(JsonObject& object, std::string_view key, const char* value) {
  Set(object, key, std::string_view(value));
}

void WriteFile(const JsonObject& object, const std::string& path);

}  // namespace warpline::bench

#endif  // WARPLINE_KERNELS_BENCH_JSON_H_
