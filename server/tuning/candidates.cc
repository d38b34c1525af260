#include "server/tuning/candidates.h"

#include <algorithm>
#include <optional>
#include <string>

#include "kernels/cuda_choice.h"
#include "kernels/problem_text.h"

namespace warpline {
namespace {

// Estimates are right within a factor of two or three.
constexpr double kTimesAsLong = 4;

template <typename Row>
void Append(const Row& row, std::vector<std::string_view>& to) {
  to.push_back(row.name);
  to.insert(to.end(), row.configurations.begin(), row.configurations.end());
}

template <typename Row, typename ProblemT>
double Estimate(const Row& row, const ProblemT& problem, const DeviceTraits& traits,
                const DeviceRates& rates) {
  return StepSeconds(problem, row.cost != nullptr ? row.cost(problem, traits) : VariantCost(), rates);
}

}  // namespace

std::vector<std::string_view> TuningCandidates(const Problem& problem, const DeviceTraits& traits,
                                               const DeviceRates& rates, double most_seconds) {
  std::vector<std::string_view> candidates;
  std::visit(
      [&](const auto& p) {
        const auto table = CudaTable(p);
        const auto* untuned = Choose(p, {}, traits, Operands()).row;
        const double seconds = Estimate(*untuned, p, traits, rates);
        if (seconds > most_seconds) return;
        Append(*untuned, candidates);
        const double most = std::min(kTimesAsLong * seconds, most_seconds);
        for (const auto& row : table) {
          if (&row == untuned || !row.reproducible || !Suits(row, p, traits)) continue;
          if (Estimate(row, p, traits, rates) <= most) Append(row, candidates);
        }
      },
      problem);
  return candidates;
}

std::string_view ChosenVariant(const Problem& problem, std::string_view variant, const DeviceTraits& traits) {
  return std::visit(
      [&](const auto& p) -> std::string_view {
        for (const auto& row : CudaTable(p)) {
          if (!Answers(row, variant) || !row.reproducible || !Suits(row, p, traits)) continue;
          const std::optional<int> configuration = ConfigurationNamed(row, variant);
          if (!configuration) return row.group;
          return *configuration == 0 ? row.name
                                     : row.configurations[static_cast<std::size_t>(*configuration) - 1];
        }
        return {};
      },
      problem);
}

std::vector<std::string_view> TunedVariants(const Program& program, const DeviceTraits& traits,
                                            const TunedChoices& choices) {
  std::vector<std::string_view> tuned(program.steps.size());
  for (std::size_t i = 0; i < tuned.size(); ++i) {
    const Step& step = program.steps[i];
    if (!step.variant.empty()) continue;
    const std::string found = choices.Find(ProblemText(step.problem));
    if (!found.empty()) tuned[i] = ChosenVariant(step.problem, found, traits);
  }
  return tuned;
}

std::string_view UntunedVariant(const Problem& problem, const DeviceTraits& traits) {
  return std::visit(
      [&](const auto& p) -> std::string_view { return Choose(p, {}, traits, Operands()).name(); }, problem);
}

bool IsUntuned(const Problem& problem, std::string_view variant, const DeviceTraits& traits) {
  return std::visit([&](const auto& p) { return Answers(*Choose(p, {}, traits, Operands()).row, variant); },
                    problem);
}

}  // namespace warpline
