#include "server/plan/bad_index_error.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <variant>

#include "absl/strings/str_cat.h"
#include "kernels/field_error.h"

namespace warpline {
namespace {

// The operand that has the indices, and the size of the axis to which they refer.
struct Indexed {
  int input = 1;
  std::int64_t size = 0;
};

Indexed IndexedBy(const Problem& problem) {
  if (const auto* take = std::get_if<TakeProblem>(&problem)) return {1, take->axis_size};
  if (const auto* put = std::get_if<PutProblem>(&problem)) return {1, put->shape[put->axis]};
  if (const auto* search = std::get_if<SearchProblem>(&problem)) return {2, search->count};
  return {};
}

}  // namespace

bool HasIndices(const Program& program) {
  return std::any_of(program.steps.begin(), program.steps.end(), [](const Step& step) {
    const auto* search = std::get_if<SearchProblem>(&step.problem);
    return std::holds_alternative<TakeProblem>(step.problem) ||
           std::holds_alternative<PutProblem>(step.problem) || (search != nullptr && search->has_sorter);
  });
}

absl::Status BadIndexError(const Program& program, const BadIndex& found) {
  if (found.step == BadIndex::kNone) return absl::OkStatus();
  if (found.step < 0 || found.step >= std::ssize(program.steps)) {
    return absl::InternalError(
        absl::StrCat("a bad index was reported for step ", found.step, " of ", program.steps.size()));
  }
  const Step& step = program.steps[static_cast<std::size_t>(found.step)];
  const Indexed indexed = IndexedBy(step.problem);
  return FieldError(absl::StrCat("program.steps[", step.part_of, "].inputs[", indexed.input, "]"),
                    absl::StrCat("element ", found.place, " is ", found.value, ", which is outside of [",
                                 -indexed.size, ", ", indexed.size, ")"));
}

}  // namespace warpline
