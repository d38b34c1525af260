#include "client/abi/program.h"

#include <google/protobuf/util/json_util.h>

#include <array>
#include <limits>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/abi/error.h"
#include "kernels/map/operations.h"
#include "kernels/status_macros.h"
#include "warpline/program.h"

using warpline::abi::Guarded;

warpline_error* warpline_program_parse(const char* text, warpline_program** out) {
  return Guarded([&]() -> absl::Status {
    ASSIGN_OR_RETURN(warpline::v1::Program program, warpline::client::ParseExpression(text));
    *out = new warpline_program{std::move(program)};
    return absl::OkStatus();
  });
}

warpline_error* warpline_program_decode(const uint8_t* bytes, size_t size, warpline_program** out) {
  return Guarded([&]() -> absl::Status {
    warpline::v1::Program program;
    if (size > std::numeric_limits<int>::max() || !program.ParseFromArray(bytes, static_cast<int>(size))) {
      return absl::InvalidArgumentError(absl::StrCat("the ", size, " bytes are no warpline.v1.Program"));
    }
    *out = new warpline_program{std::move(program)};
    return absl::OkStatus();
  });
}

warpline_error* warpline_program_from_json(const char* text, warpline_program** out) {
  return Guarded([&]() -> absl::Status {
    warpline::v1::Program program;
    const auto status = google::protobuf::util::JsonStringToMessage(text, &program);
    if (!status.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat("the text is no warpline.v1.Program in JSON: ", std::string(status.message())));
    }
    *out = new warpline_program{std::move(program)};
    return absl::OkStatus();
  });
}

const warpline_elementwise* warpline_elementwise_at(size_t index) {
  static_assert(warpline::kBools == WARPLINE_TAKES_BOOL && warpline::kInts == WARPLINE_TAKES_INTEGERS &&
                warpline::kFloats == WARPLINE_TAKES_FLOATS && warpline::kComplex == WARPLINE_TAKES_COMPLEX &&
                warpline::kWideFloats == WARPLINE_TAKES_WIDE_FLOATS);
  // Names in the table are string literals, so they are NUL-terminated.
  static constexpr auto kRows = [] {
    std::array<warpline_elementwise, warpline::kMapOps.size()> rows{};
    for (size_t i = 0; i < rows.size(); ++i) {
      const warpline::MapOpRow& row = warpline::kMapOps[i];
      rows[i] = {row.name.data(), row.operands, row.takes};
    }
    return rows;
  }();
  return index < kRows.size() ? &kRows[index] : nullptr;
}

size_t warpline_program_output_count(const warpline_program* program) {
  return static_cast<size_t>(program->program.outputs_size());
}

void warpline_program_free(warpline_program* program) { delete program; }
