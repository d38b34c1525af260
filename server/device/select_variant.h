// Looks rows up in a variant table, by the same rules for every operation and backend.
#ifndef WARPLINE_SERVER_DEVICE_SELECT_VARIANT_H_
#define WARPLINE_SERVER_DEVICE_SELECT_VARIANT_H_

#include <algorithm>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "kernels/variant.h"
#include "server/base/errors.h"
#include "server/device/backend.h"

namespace warpline {

// Returns whether a step that names `name` may run on this row. An empty `name` leaves the choice to the
// server.
template <typename Row, typename ProblemT>
bool Serves(const Row& row, const ProblemT& problem, std::string_view name, const DeviceTraits& traits) {
  if (name.empty()) return MayChoose(row, problem, traits);
  return Answers(row, name) && Suits(row, problem, traits);
}

// Returns the first row of the table that may run the step, or null if there is none. This row runs, unless
// its launch refuses.
template <typename Row, typename ProblemT>
const Row* FindVariant(std::span<const Row> table, const ProblemT& problem, std::string_view name,
                       const DeviceTraits& traits) {
  const auto row = std::find_if(table.begin(), table.end(),
                                [&](const Row& r) { return Serves(r, problem, name, traits); });
  return row == table.end() ? nullptr : &*row;
}

// See Backend::CheckVariant.
template <typename Row, typename ProblemT>
absl::Status CheckVariantIn(std::span<const Row> table, const ProblemT& problem, std::string_view name,
                            const DeviceTraits& traits) {
  std::string suitable;
  bool known = false;
  for (const Row& row : table) {
    const bool is_named = Answers(row, name);
    known |= is_named;
    if (!Suits(row, problem, traits)) continue;
    if (name.empty() || is_named) return absl::OkStatus();
    absl::StrAppend(&suitable, suitable.empty() ? "" : ", ",
                    absl::string_view(row.name.data(), row.name.size()));
  }
  if (name.empty()) return FieldError("variant", "none of this server's backend can run this problem");
  return FieldError("variant",
                    absl::StrCat("\"", std::string(name), "\" ",
                                 known ? "cannot run this problem on this device"
                                       : "is not a variant of this operation on this server's backend",
                                 "; suitable: ", suitable.empty() ? "none" : suitable));
}

// INVALID_ARGUMENT if `name` is a row of `op` whose results may differ from run to run. An empty name (the
// server's choice) is always reproducible, and so are rows with configurations. `variants` are those of the
// backend.
inline absl::Status CheckReproducible(std::span<const VariantInfo> variants, Op op, std::string_view name) {
  const auto row = std::find_if(variants.begin(), variants.end(),
                                [&](const VariantInfo& v) { return v.op == op && v.name == name; });
  if (row == variants.end() || row->reproducible) return absl::OkStatus();
  return FieldError("variant",
                    absl::StrCat("\"", std::string(name),
                                 "\" may give other bits from run to run, and options.reproducible "
                                 "is set"));
}

// `devices` are those of the backend.
template <typename Row>
void AppendVariantInfo(Op op, std::span<const Row> table, std::span<const DeviceTraits> devices,
                       std::vector<VariantInfo>& to) {
  for (const Row& row : table) {
    if (row.available != nullptr && std::none_of(devices.begin(), devices.end(), row.available)) continue;
    VariantInfo info{op, row.name, row.summary, row.reproducible, row.configurations, {}};
    for (DType dtype : kAllDTypes) {
      if (row.supports_dtype(dtype)) info.dtypes.push_back(dtype);
    }
    to.push_back(std::move(info));
  }
}

}  // namespace warpline

#endif  // WARPLINE_SERVER_DEVICE_SELECT_VARIANT_H_
