// Splits a command line into words and options. Poco's rules of options apply: `--name value` and
// `--name=value`, an unambiguous beginning of a long name is enough, and `--` ends the options.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "jobq/time.h"

namespace jobq::cli {

struct OptionRow {
  std::string name;
  std::string value;  ///< placeholder of the value in the help; empty for an option without a value
  std::string help;
  bool repeatable = false;
  std::string letter{};  ///< also `-<letter>`; only for an option without a value
};

/// A parsed command line. Values keep the order of the command line.
struct Arguments {
  std::vector<std::string> words;
  std::map<std::string, std::vector<std::string>> options;

  bool has(const std::string& option) const { return options.contains(option); }

  /// Returns the last value of the option, or `fallback` if the option is absent.
  std::string value(const std::string& option, const std::string& fallback = "") const;

  /// Returns all values of the option.
  std::vector<std::string> values(const std::string& option) const;
};

/// Returns the known name that a user may have meant by `given`, or an empty text if all differ by more than two
/// characters, or by more than half of `given`.
std::string nearOf(const std::string& given, const std::vector<std::string>& known);

/// Returns true if the token is an option, whole or shortened, whose value is the next token.
bool takesNext(const std::string& token, const std::vector<OptionRow>& known);

/// Returns the values NAME=VALUE of a repeatable option by their names. Throws CommandError(usage) for a value without
/// a name.
std::map<std::string, std::string> pairsOf(const Arguments& arguments, const std::string& option);

struct DurationRange {
  Millis min;
  Millis max;
};

/// Returns the value of the option as a duration, in the form of units::duration(), or `fallback` if the option is
/// absent. Throws CommandError(usage) if the value is no duration or out of range.
Millis durationOf(const Arguments& arguments, const std::string& option, Millis fallback, const DurationRange& range);

/// Parses the tokens of a command line. A lone `-` is a word, or the value of an option. Throws CommandError(usage)
/// naming a wrong option and its fault.
Arguments parseArguments(const std::vector<std::string>& given, const std::vector<OptionRow>& known);

/// Returns the options for the help, one a line.
std::string describeOptions(const std::vector<OptionRow>& known);

}  // namespace jobq::cli
