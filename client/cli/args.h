// Command lines: options anywhere among the positional arguments, as --name=value, --name value, -n value.
#ifndef WARPLINE_CLIENT_CLI_ARGS_H_
#define WARPLINE_CLIENT_CLI_ARGS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace warpline::client {

struct FlagSpec {
  std::string_view name;        // without the dashes
  char letter = '\0';           // short form; 0: none
  std::string_view value = "";  // what its value is called in the help; empty: it takes none
  std::string_view help = "";
};

// A command line taken apart. Every error is InvalidArgument and names the flag.
class Args {
 public:
  // Of a flag given twice the last value counts, unless Strings() asks for all; "--" ends the options; "-"
  // alone is positional. The value of a flag may start with a dash.
  static absl::StatusOr<Args> Parse(std::span<const std::string_view> words, std::span<const FlagSpec> specs);

  const std::vector<std::string>& positionals() const { return positionals_; }
  // Names of the flags that were given.
  std::vector<std::string> given() const;

  bool Has(std::string_view name) const { return values_.find(name) != values_.end(); }
  std::string String(std::string_view name, std::string_view otherwise) const;
  // Every value, in the order in which they were given.
  std::vector<std::string> Strings(std::string_view name) const;
  // Nothing if the flag was not given.
  absl::StatusOr<std::optional<double>> Number(std::string_view name) const;
  // Within [least, most].
  absl::StatusOr<std::int64_t> Integer(std::string_view name, std::int64_t otherwise, std::int64_t least,
                                       std::int64_t most) const;
  // "5s", "1.5m", "200ms": above zero and finite.
  absl::StatusOr<absl::Duration> Duration(std::string_view name, absl::Duration otherwise) const;
  // "1,0", "-1"; empty if not given.
  absl::StatusOr<std::vector<int>> Integers(std::string_view name) const;
  // A flag without a value, or with =true or =false.
  absl::StatusOr<bool> Bool(std::string_view name) const;

 private:
  std::vector<std::string> positionals_;
  std::map<std::string, std::vector<std::string>, std::less<>> values_;  // none of them empty
};

// `text` as whole numbers between `separator`s; nothing if it is anything else, or has none.
std::optional<std::vector<std::int64_t>> ParseIntegers(std::string_view text, char separator);

}  // namespace warpline::client

#endif  // WARPLINE_CLIENT_CLI_ARGS_H_
