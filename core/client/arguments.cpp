#include "core/client/arguments.h"

#include <Poco/Exception.h>
#include <Poco/Util/Option.h>
#include <Poco/Util/OptionException.h>
#include <Poco/Util/OptionProcessor.h>
#include <Poco/Util/OptionSet.h>

#include <Poco/String.h>

#include <algorithm>
#include <sstream>

#include "core/client/exit_code.h"
#include "core/client/table_print.h"
#include "core/config/units.h"
#include "jobq/nearest.h"

namespace jobq::cli {
namespace {

// Returns a question for the end of a sentence about an unknown option, if a known one is near.
std::string nearestOption(const std::string& given, const std::vector<OptionRow>& known) {
  std::vector<std::string> names;
  for (const OptionRow& row : known) names.push_back(row.name);
  const std::string near = nearOf(given, names);
  return near.empty() ? "" : ": did you mean --" + near + "?";
}

}  // namespace

std::string nearOf(const std::string& given, const std::vector<std::string>& known) {
  constexpr std::size_t kLongest = 64;  // of a name; the search takes time for longer ones
  return given.size() > kLongest ? std::string() : std::string(nearest(given, known));
}

std::string Arguments::value(const std::string& option, const std::string& fallback) const {
  const auto found = options.find(option);
  return found == options.end() ? fallback : found->second.back();
}

std::vector<std::string> Arguments::values(const std::string& option) const {
  const auto found = options.find(option);
  return found == options.end() ? std::vector<std::string>{} : found->second;
}

std::map<std::string, std::string> pairsOf(const Arguments& arguments, const std::string& option) {
  std::map<std::string, std::string> pairs;
  for (const std::string& text : arguments.values(option)) {
    const std::size_t equals = text.find('=');
    if (equals == 0 || equals == std::string::npos) {
      throw CommandError(ExitCode::usage, "--" + option + " takes NAME=VALUE, not '" + harmless(text) + "'");
    }
    pairs[text.substr(0, equals)] = text.substr(equals + 1);
  }
  return pairs;
}

bool takesNext(const std::string& token, const std::vector<OptionRow>& known) {
  if (!token.starts_with("--") || token.size() == 2 || token.find_first_of("=:") != std::string::npos) return false;
  const std::string name = Poco::toLower(token.substr(2));
  bool shortened = false;
  for (const OptionRow& row : known) {
    if (row.name == name) return !row.value.empty();
    shortened = shortened || (row.name.starts_with(name) && !row.value.empty());
  }
  return shortened;
}

Millis durationOf(const Arguments& arguments, const std::string& option, Millis fallback, const DurationRange& range) {
  if (!arguments.has(option)) return fallback;
  const std::string text = arguments.value(option);
  const auto duration = units::readDuration(text);
  if (duration && *duration >= range.min && *duration <= range.max) return *duration;
  throw CommandError(ExitCode::usage, "--" + option + " takes a time from " + units::print(range.min) + " to " +
                                          units::print(range.max) + ", like 500ms or 2s, not '" + harmless(text) + "'");
}

Arguments parseArguments(const std::vector<std::string>& given, const std::vector<OptionRow>& known) {
  Poco::Util::OptionSet options;
  for (const OptionRow& row : known) {
    Poco::Util::Option option(row.name, row.letter, row.help);
    option.repeatable(row.repeatable);
    if (!row.value.empty()) option.argument(row.value);
    options.addOption(option);
  }
  Poco::Util::OptionProcessor processor(options);
  Arguments arguments;
  try {
    bool ended = false;
    for (std::size_t i = 0; i < given.size(); ++i) {
      // A value joined to its option may be empty or begin with a dash.
      const bool joined = !ended && i + 1 < given.size() && takesNext(given[i], known);
      const std::string text = joined ? given[i] + "=" + given[i + 1] : given[i];
      i += joined ? 1 : 0;
      ended = ended || text == "--";
      std::string name;
      std::string value;
      if (text == "-" || !processor.process(text, name, value)) {
        arguments.words.push_back(text);
      } else if (!name.empty()) {
        arguments.options[name].push_back(value);
      }
    }
    processor.checkRequired();
  } catch (const Poco::Util::UnknownOptionException& error) {
    throw CommandError(ExitCode::usage, "there is no option --" + harmless(error.message()) +
                                            nearestOption(error.message(), known) + "; --help lists the options");
  } catch (const Poco::Util::OptionException& error) {
    throw CommandError(ExitCode::usage, error.displayText() + "; --help lists the options");
  }
  return arguments;
}

std::string describeOptions(const std::vector<OptionRow>& known) {
  Table table;
  for (const OptionRow& row : known) {
    const std::string value = row.value.empty() ? "" : " " + row.value;
    const std::string letter = row.letter.empty() ? "" : ", -" + row.letter;
    table.add({"  --" + row.name + letter + value, row.help + (row.repeatable ? " (may be repeated)" : "")});
  }
  std::ostringstream out;
  table.print(out);
  return out.str();
}

}  // namespace jobq::cli
