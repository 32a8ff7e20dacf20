#include "core/ctl/arguments.h"

#include <Poco/Exception.h>
#include <Poco/Util/Option.h>
#include <Poco/Util/OptionException.h>
#include <Poco/Util/OptionProcessor.h>
#include <Poco/Util/OptionSet.h>

#include <sstream>

#include "core/ctl/exit_code.h"
#include "core/ctl/table_print.h"

namespace jobq::ctl {

std::string Arguments::value(const std::string& option, const std::string& fallback) const {
  const auto found = options.find(option);
  return found == options.end() ? fallback : found->second.back();
}

std::vector<std::string> Arguments::values(const std::string& option) const {
  const auto found = options.find(option);
  return found == options.end() ? std::vector<std::string>{} : found->second;
}

Arguments parseArguments(const std::vector<std::string>& given, const std::vector<OptionRow>& known) {
  Poco::Util::OptionSet options;
  for (const OptionRow& row : known) {
    Poco::Util::Option option(row.name, "", row.help);
    option.repeatable(row.repeatable);
    if (row.value[0] != '\0') option.argument(row.value);
    options.addOption(option);
  }
  Poco::Util::OptionProcessor processor(options);
  Arguments arguments;
  try {
    for (const std::string& text : given) {
      std::string name;
      std::string value;
      if (text == "-" || !processor.process(text, name, value)) {
        arguments.words.push_back(text);
      } else if (!name.empty()) {
        arguments.options[name].push_back(value);
      }
    }
    processor.checkRequired();
  } catch (const Poco::Util::OptionException& error) {
    throw Failure(ExitCode::usage, error.displayText());
  }
  return arguments;
}

std::string describeOptions(const std::vector<OptionRow>& known) {
  Table table;
  for (const OptionRow& row : known) {
    const std::string value = row.value[0] == '\0' ? "" : std::string(" ") + row.value;
    table.add({"  --" + (row.name + value), std::string(row.help) + (row.repeatable ? " (may be repeated)" : "")});
  }
  std::ostringstream out;
  table.print(out);
  return out.str();
}

}  // namespace jobq::ctl
