#include "server/settings/command_line.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "kernels/nearest_name.h"
#include "kernels/status_macros.h"
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
    AddFlag(app, "config", "FILE", Path(config),
            "TOML: flags and their values, as in lanes = 8 (docs/configuration.md). Each flag may also be "
            "given as "
            "a variable of the environment: --max-jobs as $WARPLINED_MAX_JOBS. A flag beats the variable, "
            "and the "
            "variable the file. Default none.");
    AddFlags(app, line.options);
    app.option_defaults()->group(kActions);
    app.add_flag(
        "--check-config", check_config,
        "Read flags, environment, --config, tokens and certificates, print what is set and where, and what "
        "memory that may need, and exit: with 0 if all of it is valid.");
    AddFlag(
        app, "new-token", "NAME", TokenName(line.new_token),
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
absl::Status NoSuchFlag(const std::string& name, std::string_view instead) {
  return absl::InvalidArgumentError(
      absl::StrCat(name, ": there is no such flag any more; ", std::string(instead)));
}

absl::Status ParseFlags(int argc, const char* const* argv, Flags& flags) {
  try {
    flags.app.parse(argc, argv);
  } catch (const CLI::Error& error) {
    return absl::InvalidArgumentError(error.what());
  }
  for (const std::string& extra : flags.app.remaining()) {
    if (extra.rfind("--", 0) != 0)
      return absl::InvalidArgumentError(absl::StrCat(extra, ": unknown argument"));
    const std::string name = extra.substr(2, extra.find('=') - 2);
    if (!InsteadOf(name).empty()) return NoSuchFlag("--" + name, InsteadOf(name));
    return absl::InvalidArgumentError(absl::StrCat(
        "--", name, ": unknown flag", DidYouMean("--", name, flags.app.get_options()), "; see --help"));
  }
  return absl::OkStatus();
}

// Sets the flag to a value that is not from the command line.
absl::Status Set(CLI::Option& option, const std::string& text, const std::string& source) {
  try {
    option.add_result(text);
    option.run_callback();
    return absl::OkStatus();
  } catch (const CLI::Error& error) {
    return absl::InvalidArgumentError(absl::StrCat(source, ": ", error.what()));
  }
}

// Collects which flags have been set, and where.
class Settings {
 public:
  explicit Settings(Flags& flags) : flags_(flags) {
    for (CLI::Option* option : flags.settings()) {
      if (option->count() > 0) sources_[option] = absl::StrCat("--", NameOf(*option));
    }
  }

  absl::Status AddEnvironment(const Environment& environment) {
    for (CLI::Option* option : flags_.settings()) {
      const std::string variable = VariableOf(NameOf(*option));
      const char* text = environment(variable.c_str());
      // An empty value counts as not set: compose passes one for a variable that is not set.
      const bool is_set = text != nullptr && *text != '\0';
      if (is_set) RETURN_IF_ERROR(Add(*option, text, absl::StrCat("$", variable)));
    }
    for (const RemovedFlag& flag : kRemovedFlags) {
      const std::string variable = VariableOf(flag.name);
      const char* text = environment(variable.c_str());
      if (flag.was_setting && text != nullptr && *text != '\0')
        return NoSuchFlag("$" + variable, flag.instead);
    }
    return absl::OkStatus();
  }

  absl::Status AddFile(const std::string& path) {
    ASSIGN_OR_RETURN(const std::vector<ConfigEntry> entries, ReadConfigFile(path));
    std::vector<CLI::Option*> options = flags_.settings();
    for (const ConfigEntry& entry : entries) {
      const std::string source = absl::StrCat(path, ":", entry.line);
      if (!InsteadOf(entry.name).empty()) {
        return NoSuchFlag(absl::StrCat(source, ": ", entry.name), InsteadOf(entry.name));
      }
      const auto option = std::find_if(options.begin(), options.end(), [&](const CLI::Option* o) {
        return NameOf(*o) == entry.name && entry.name != "config";
      });
      if (flags_.app.get_option_no_throw("--" + entry.name) != nullptr && option == options.end()) {
        return absl::InvalidArgumentError(absl::StrCat(source, ": ", entry.name, ": cannot stand in a file"));
      }
      if (option == options.end()) {
        return absl::InvalidArgumentError(
            absl::StrCat(source, ": ", entry.name, ": unknown setting", DidYouMean("", entry.name, options)));
      }
      const bool is_switch = IsSwitch(**option);
      if (is_switch != entry.is_boolean) {
        return absl::InvalidArgumentError(absl::StrCat(source, ": ", entry.name, " = ", entry.text, ": must ",
                                                       is_switch ? "" : "not ", "be true or false"));
      }
      RETURN_IF_ERROR(Add(**option, entry.text, source));
    }
    return absl::OkStatus();
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
  // Sets the flag, unless it has already been set.
  absl::Status Add(CLI::Option& option, const std::string& text, const std::string& source) {
    return sources_.emplace(&option, source).second ? Set(option, text, source) : absl::OkStatus();
  }

  Flags& flags_;
  std::map<const CLI::Option*, std::string> sources_;
};

}  // namespace

absl::StatusOr<CommandLine> ParseCommandLine(int argc, const char* const* argv,
                                             const Environment& environment) {
  CommandLine line;
  Flags flags(line);
  RETURN_IF_ERROR(ParseFlags(argc, argv, flags));
  if (flags.help || flags.version || !line.new_token.empty()) {
    using Action = CommandLine::Action;
    line.action = flags.help ? Action::kHelp : flags.version ? Action::kVersion : Action::kNewToken;
    return line;
  }
  if (flags.check_config) line.action = CommandLine::Action::kCheckConfig;
  Settings settings(flags);
  RETURN_IF_ERROR(settings.AddEnvironment(environment));
  if (!flags.config.empty()) RETURN_IF_ERROR(settings.AddFile(flags.config));
  line.settings = settings.All();
  RETURN_IF_ERROR(WithSource(line.options.Check(), line.settings));
  return line;
}

absl::Status WithSource(const absl::Status& status, const std::vector<Setting>& settings) {
  for (const auto& [name, value, source] : settings) {
    const bool is_flag = source.rfind("--", 0) == 0;
    if (is_flag || !absl::StartsWith(status.message(), absl::StrCat("--", name, "="))) continue;
    return absl::Status(status.code(), absl::StrCat(source, ": ", status.message()));
  }
  return status;
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
