#include "server/settings/command_line.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "kernels/nearest_name.h"
#include "server/base/usable_memory.h"
#include "server/settings/config_file.h"
#include "server/settings/flags.h"
#include "server/settings/removed_flags.h"

namespace warpline {
namespace {

constexpr std::int64_t kMiB = std::int64_t{1} << 20;
constexpr std::size_t kHelpWidth = 100;
// The group of flags that are actions, not settings.
constexpr char kActions[] = "Other";

// Returns `text` in indented lines.
std::string Wrapped(const std::string& text, std::size_t indent) {
  std::string lines;
  std::size_t column = kHelpWidth;
  for (const absl::string_view word : absl::StrSplit(text, ' ')) {
    if (column + 1 + word.size() > kHelpWidth) {
      absl::StrAppend(&lines, lines.empty() ? "" : "\n", std::string(indent, ' '), word);
      column = indent + word.size();
    } else {
      absl::StrAppend(&lines, " ", word);
      column += 1 + word.size();
    }
  }
  return lines;
}

// CLI11's own formatter does not break lines.
class HelpFormatter : public CLI::Formatter {
 public:
  std::string make_option(const CLI::Option* option, bool) const override {
    const std::string value = option->get_type_name();
    return absl::StrCat("  ", option->get_name(false, true), value.empty() ? "" : "=", value, "\n",
                        Wrapped(option->get_description(), 8), "\n");
  }
};

// The program's flags, with the variables that they set.
struct Flags {
  explicit Flags(CommandLine& line) {
    app.allow_extras();
    app.set_help_flag();
    AddFlag(app, line.errors, "config", "FILE", Path(config),
            "TOML: flags and their values, as in lanes = 8 (docs/configuration.md). Each flag may also be "
            "given as "
            "a variable of the environment: --max-jobs as $WARPLINED_MAX_JOBS. A flag beats the variable, "
            "and the "
            "variable the file. Default none.");
    AddFlags(app, line.errors, line.options);
    app.option_defaults()->group(kActions);
    app.add_flag(
        "--check-config", check_config,
        "Read flags, environment, --config, tokens and certificates, print what is set and where, and what "
        "memory that may need, and exit: with 0 if all of it is valid.");
    AddFlag(
        app, line.errors, "new-token", "NAME", TokenName(line.new_token),
        "Make a token and exit: prints the token to stderr, and to stdout what the file of --tokens is to "
        "have.");
    app.add_flag("--version", version, "Print the version and exit.");
    app.add_flag("-h,--help", help, "Print this and exit.");
  }

  // Returns the options that the environment and the file may set.
  std::vector<CLI::Option*> settings() {
    return app.get_options([](const CLI::Option* option) { return option->get_group() != kActions; });
  }

  std::string config;
  bool check_config = false, version = false, help = false;
  CLI::App app{"warplined: owns the GPUs of this node and serves transpose, gemm and reduce over gRPC."};
};

// Returns whether the option was made with Switch: its value has no name in the help.
bool IsSwitch(const CLI::Option& option) { return option.get_type_name().empty(); }

std::string NameOf(const CLI::Option& option) { return option.get_lnames().front(); }

// --max-jobs becomes WARPLINED_MAX_JOBS.
std::string VariableOf(std::string_view name) {
  return absl::StrCat("WARPLINED_",
                      absl::AsciiStrToUpper(absl::StrReplaceAll(std::string(name), {{"-", "_"}})));
}

// `prefix` is put before a name: "--" on the command line.
std::string DidYouMean(std::string_view prefix, const std::string& name,
                       const std::vector<CLI::Option*>& options) {
  std::vector<std::string> names;
  names.reserve(options.size());
  for (const CLI::Option* option : options) names.push_back(NameOf(*option));
  const std::string nearest = NearestName(name, names);
  return nearest.empty() ? "" : absl::StrCat("; did you mean ", std::string(prefix), nearest, "?");
}

// `name` is the name as it was given.
std::string NoSuchFlag(const std::string& name, std::string_view instead) {
  return absl::StrCat(name, ": there is no such flag any more; ", std::string(instead));
}

void ParseFlags(int argc, const char* const* argv, Flags& flags, FlagErrors& errors) {
  try {
    flags.app.parse(argc, argv);
  } catch (const CLI::Error& error) {
    errors.emplace_back(error.what());
  }
  for (const std::string& extra : flags.app.remaining()) {
    const std::string name = extra.substr(0, extra.find('='));
    if (extra.rfind("--", 0) != 0) {
      errors.push_back(absl::StrCat(extra, ": unknown argument"));
    } else if (const std::string_view instead = InsteadOf(name.substr(2)); !instead.empty()) {
      errors.push_back(NoSuchFlag(name, instead));
    } else {
      errors.push_back(absl::StrCat(
          name, ": unknown flag", DidYouMean("--", name.substr(2), flags.app.get_options()), "; see --help"));
    }
  }
}

// Collects which flags have been set, and where.
class Settings {
 public:
  Settings(Flags& flags, FlagErrors& errors) : flags_(flags), errors_(errors) {
    for (CLI::Option* option : flags.settings()) {
      if (option->count() > 0) sources_[option] = absl::StrCat("--", NameOf(*option));
    }
  }

  void AddEnvironment(const Environment& environment) {
    for (CLI::Option* option : flags_.settings()) {
      const std::string variable = VariableOf(NameOf(*option));
      const char* text = environment(variable.c_str());
      // An empty value counts as not set: compose passes one for a variable that is not set.
      if (text != nullptr && *text != '\0') Add(*option, text, absl::StrCat("$", variable));
    }
    for (const RemovedFlag& flag : kRemovedFlags) {
      const std::string variable = VariableOf(flag.name);
      const char* text = environment(variable.c_str());
      if (flag.was_setting && text != nullptr && *text != '\0')
        errors_.push_back(NoSuchFlag("$" + variable, flag.instead));
    }
  }

  // Returns whether it could be read.
  bool AddFile(const std::string& path) {
    const absl::StatusOr<std::vector<ConfigEntry>> entries = ReadConfigFile(path);
    if (!entries.ok()) {
      errors_.emplace_back(entries.status().message());
      return false;
    }
    for (const ConfigEntry& entry : *entries) AddEntry(entry, absl::StrCat(path, ":", entry.line));
    return true;
  }

  std::vector<Setting> All() {
    std::vector<Setting> all;
    for (const CLI::Option* option : flags_.settings()) {
      const auto source = sources_.find(option);
      if (source == sources_.end()) continue;
      const std::string value = option->results().back();
      // A switch may be given without a value.
      all.push_back({NameOf(*option), IsSwitch(*option) && value.empty() ? "true" : value, source->second});
    }
    return all;
  }

 private:
  void AddEntry(const ConfigEntry& entry, const std::string& source) {
    const std::string name = absl::StrCat(source, ": ", entry.name);
    if (const std::string_view instead = InsteadOf(entry.name); !instead.empty()) {
      errors_.push_back(NoSuchFlag(name, instead));
      return;
    }
    std::vector<CLI::Option*> options = flags_.settings();
    const auto option = std::find_if(options.begin(), options.end(), [&](const CLI::Option* o) {
      return NameOf(*o) == entry.name && entry.name != "config";
    });
    if (option == options.end()) {
      const bool is_flag = flags_.app.get_option_no_throw("--" + entry.name) != nullptr;
      errors_.push_back(absl::StrCat(name, is_flag
                                               ? ": cannot stand in a file"
                                               : ": unknown setting" + DidYouMean("", entry.name, options)));
      return;
    }
    const bool is_switch = IsSwitch(**option);
    if (is_switch != entry.is_boolean) {
      errors_.push_back(
          absl::StrCat(name, " = ", entry.text, ": must ", is_switch ? "" : "not ", "be true or false"));
      return;
    }
    Add(**option, entry.text, source);
  }

  // Sets the flag to a value that is not from the command line, unless it has already been set.
  void Add(CLI::Option& option, const std::string& text, const std::string& source) {
    if (!sources_.emplace(&option, source).second) return;
    const std::size_t before = errors_.size();
    option.add_result(text);
    try {
      option.run_callback();
    } catch (const CLI::Error& error) {
      errors_.emplace_back(error.what());
    }
    for (std::size_t i = before; i < errors_.size(); ++i) errors_[i] = absl::StrCat(source, ": ", errors_[i]);
  }

  Flags& flags_;
  FlagErrors& errors_;
  std::map<const CLI::Option*, std::string> sources_;
};

// Returns whether one of the errors is about a value of a flag that `contradiction` names too. It may follow
// from that error.
bool MayFollow(const std::string& contradiction, const FlagErrors& errors) {
  return absl::c_any_of(errors, [&](const std::string& error) {
    const std::size_t begin = error.find("--"), end = error.find('=');
    return begin < end && end != std::string::npos &&
           absl::StrContains(contradiction, error.substr(begin, end - begin));
  });
}

}  // namespace

CommandLine ParseCommandLine(int argc, const char* const* argv, const Environment& environment) {
  CommandLine line;
  Flags flags(line);
  ParseFlags(argc, argv, flags, line.errors);
  if (flags.help || flags.version || !line.new_token.empty()) {
    using Action = CommandLine::Action;
    line.action = flags.help ? Action::kHelp : flags.version ? Action::kVersion : Action::kNewToken;
    return line;
  }
  if (flags.check_config) line.action = CommandLine::Action::kCheckConfig;
  Settings settings(flags, line.errors);
  settings.AddEnvironment(environment);
  const bool complete = flags.config.empty() || settings.AddFile(flags.config);
  line.settings = settings.All();
  // Without the file's settings, others may seem to contradict each other.
  if (!complete) return line;
  for (const std::string& contradiction : line.options.Contradictions()) {
    if (!MayFollow(contradiction, line.errors)) {
      line.errors.push_back(WithSource(contradiction, line.settings));
    }
  }
  return line;
}

std::string WithSource(const std::string& error, const std::vector<Setting>& settings) {
  for (const auto& [name, value, source] : settings) {
    const bool is_flag = absl::StartsWith(source, "--");
    if (!is_flag && absl::StartsWith(error, absl::StrCat("--", name, "="))) {
      return absl::StrCat(source, ": ", error);
    }
  }
  return error;
}

std::string HelpText(const ServerOptions& options) {
  CommandLine line;
  Flags flags(line);
  flags.app.formatter(std::make_shared<HelpFormatter>());
  const auto available = static_cast<std::int64_t>(AvailableMemoryBytes());
  flags.app.footer(absl::StrCat(
      "Worst-case host memory with these flags on this machine: ",
      options.WorstCaseMemoryBytes(false, available) / kMiB, " MiB on cpu, ",
      options.WorstCaseMemoryBytes(true, available) / kMiB,
      " MiB on cuda\n(gRPC buffers + admitted requests + staging memory + shared regions, on cpu + scratch\n"
      "memory + resident tensors, beside some 100 MiB of program). It holds for clients that keep to\n"
      "HTTP/2; a proxy keeps the others away (docs/attacks.md).\n"
      "When it is ready it prints one line to stdout: READY grpc=<addr> metrics=<addr> backend=<name>\n"
      "[proxy=<addr>]"));
  // CLI11 puts an empty line after each group, and another one before the next.
  return absl::StrReplaceAll(flags.app.help("warplined"), {{"\n\n\n", "\n\n"}});
}

}  // namespace warpline
