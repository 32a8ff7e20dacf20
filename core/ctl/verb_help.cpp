// What jobqctl says about itself.
#include <sstream>

#include "core/ctl/table_print.h"
#include "core/ctl/verbs.h"

namespace jobq::ctl {
namespace {

std::string firstLine(const std::string& text) { return text.substr(0, text.find('\n')); }

std::string argumentsOf(const Verb& verb) { return verb.arguments[0] == '\0' ? "" : std::string(" ") + verb.arguments; }

// One line a verb whose name begins with `start`.
std::string describeVerbs(const std::string& start) {
  Table table;
  for (const Verb& verb : verbs()) {
    if (!std::string(verb.name).starts_with(start)) continue;
    table.add({"  " + (verb.name + argumentsOf(verb)), firstLine(verb.help)});
  }
  std::ostringstream out;
  table.print(out);
  return out.str();
}

}  // namespace

std::string programHelp() {
  return "usage: jobqctl VERB [ARGUMENTS] [OPTIONS]\n\nThe command line of a jobq server.\n\nVerbs:\n" +
         describeVerbs("") + "\nOptions of every verb:\n" + describeOptions(commonOptions()) +
         "\n`jobqctl VERB --help` shows a verb's own options, `jobqctl --version` the version.\n"
         "Exit codes: 0 done, 1 the server said no, 2 wrong usage, 3 the server cannot be reached,\n"
         "4 the job of `run --sync` or `job stream` did not end COMPLETED,\n"
         "5 the release of `release status --wait` is halted, 6 its --timeout passed.\n";
}

std::string groupHelp(const std::string& word) {
  return "usage: jobqctl " + word + " VERB [ARGUMENTS] [OPTIONS]\n\nVerbs:\n" + describeVerbs(word + " ") +
         "\n`jobqctl " + word + " VERB --help` shows a verb's own options.\n";
}

std::string verbHelp(const Verb& verb) {
  std::vector<OptionRow> options = verb.options;
  options.insert(options.end(), commonOptions().begin(), commonOptions().end());
  return "usage: jobqctl " + (verb.name + argumentsOf(verb)) + " [OPTIONS]\n\n" + verb.help + "\n\nOptions:\n" +
         describeOptions(options);
}

}  // namespace jobq::ctl
