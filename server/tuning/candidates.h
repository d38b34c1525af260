// The ways to run a problem that are worth trying on a GPU.
#ifndef WARPLINE_SERVER_TUNING_CANDIDATES_H_
#define WARPLINE_SERVER_TUNING_CANDIDATES_H_

#include <string_view>
#include <vector>

#include "kernels/cuda_variants.h"
#include "kernels/problem.h"
#include "kernels/program.h"
#include "server/plan/cost.h"
#include "server/tuning/choices.h"

namespace warpline {

// First what runs without tuning; then its configurations; then other rows that suit, are reproducible and,
// as estimated, take no more than a few times as long, each with its configurations. None if what runs
// without tuning takes more than `most_seconds`, as estimated, nor any other that does.
std::vector<std::string_view> TuningCandidates(const Problem& problem, const DeviceTraits& traits,
                                               const DeviceRates& rates, double most_seconds);

// The name of `variant` in the table, if it may be chosen for the problem by a file; empty otherwise. A file
// may be of another version.
std::string_view ChosenVariant(const Problem& problem, std::string_view variant, const DeviceTraits& traits);

// Returns the variant that runs without tuning.
std::string_view UntunedVariant(const Problem& problem, const DeviceTraits& traits);

// Returns whether that is the variant of this name, or one of this group.
bool IsUntuned(const Problem& problem, std::string_view variant, const DeviceTraits& traits);

// Returns the variants that `choices` have for the steps whose variant the program leaves open: names in the
// tables, or empty.
std::vector<std::string_view> TunedVariants(const Program& program, const DeviceTraits& traits,
                                            const TunedChoices& choices);

}  // namespace warpline

#endif  // WARPLINE_SERVER_TUNING_CANDIDATES_H_
