// A command line, taken apart: words and options. Poco's option rules: `--name value` and `--name=value`, long names
// may be shortened while they are clear, `--` ends the options.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "jobq/time.h"

namespace jobq::ctl {

struct OptionRow {
  const char* name;
  const char* value;  ///< what stands for its value in the help; "" for an option without one
  const char* help;
  bool repeatable = false;
};

/// What was said. Values keep the order in which they were given.
struct Arguments {
  std::vector<std::string> words;
  std::map<std::string, std::vector<std::string>> options;

  bool has(const std::string& option) const { return options.contains(option); }

  /// The option's value, or `fallback` when it was not given.
  std::string value(const std::string& option, const std::string& fallback = "") const;

  std::vector<std::string> values(const std::string& option) const;
};

/// Whether the token is an option, whole or shortened, whose value is the next token.
bool takesNext(const std::string& token, const std::vector<OptionRow>& known);

struct DurationRange {
  Millis min;
  Millis max;
};

/// The option's value as a duration, like 500ms, 2s, 5m or 1h; `fallback` when it was not given. Throws Failure(usage)
/// when it is none, or is out of range.
Millis durationOf(const Arguments& arguments, const std::string& option, Millis fallback, const DurationRange& range);

/// Throws Failure(usage) that names the option and what is wrong with it. A lone `-` is a word, or an option's value.
Arguments parseArguments(const std::vector<std::string>& given, const std::vector<OptionRow>& known);

/// One line an option, for the help.
std::string describeOptions(const std::vector<OptionRow>& known);

}  // namespace jobq::ctl
