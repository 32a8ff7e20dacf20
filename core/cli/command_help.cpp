// The help texts of jobqctl.
#include <sstream>

#include "core/cli/commands.h"
#include "core/client/table_print.h"

namespace jobq::cli {
namespace {

std::string firstLine(const std::string& text) { return text.substr(0, text.find('\n')); }

std::string argumentsOf(const Command& command) {
  return command.arguments[0] == '\0' ? "" : std::string(" ") + command.arguments;
}

// Returns one line for each command whose name begins with `start`.
std::string describeCommands(const std::string& start) {
  Table table;
  for (const Command& command : commands()) {
    if (!std::string(command.name).starts_with(start)) continue;
    table.add({"  " + (command.name + argumentsOf(command)), firstLine(command.help)});
  }
  std::ostringstream out;
  table.print(out);
  return out.str();
}

}  // namespace

std::string programHelp() {
  return "usage: jobqctl COMMAND [ARGUMENTS] [OPTIONS]\n\nThe command line of a jobq server.\n\nCommands:\n" +
         describeCommands("") + "\nOptions of every command:\n" + describeOptions(commonOptions()) +
         "\n`jobqctl COMMAND --help` shows a command's own options, `jobqctl --version` the version.\n"
         "Exit codes: 0 done, 1 the server refused, 2 wrong usage, 3 the server cannot be reached,\n"
         "4 the job of `run --sync` or `job stream` did not end COMPLETED,\n"
         "5 the release of `release status --wait` is halted, 6 the --timeout passed.\n";
}

std::string groupHelp(const std::string& word) {
  return "usage: jobqctl " + word + " COMMAND [ARGUMENTS] [OPTIONS]\n\nCommands:\n" + describeCommands(word + " ") +
         "\n`jobqctl " + word + " COMMAND --help` shows a command's own options.\n";
}

std::string commandHelp(const Command& command) {
  std::vector<OptionRow> options = command.options;
  options.insert(options.end(), commonOptions().begin(), commonOptions().end());
  return "usage: jobqctl " + (command.name + argumentsOf(command)) + " [OPTIONS]\n\n" + command.help +
         "\n\nOptions:\n" + describeOptions(options);
}

}  // namespace jobq::cli
