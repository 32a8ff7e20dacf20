// jobqctl: the admin's command line. Options, verb, exit code; what the verbs do is in *_verbs.cpp.
#include <algorithm>
#include <cstdlib>
#include <exception>
#include <iostream>

#include "core/ctl/table_print.h"
#include "core/ctl/verbs.h"

namespace jobq::ctl {
namespace {

std::string environment(const char* name, const char* fallback) {
  const char* value = std::getenv(name);
  return value && *value ? value : fallback;
}

bool asksForHelp(const std::vector<std::string>& given) {
  return std::find(given.begin(), given.end(), "--help") != given.end();
}

std::vector<OptionRow> optionsOf(const Verb& verb) {
  std::vector<OptionRow> known = commonOptions();
  known.insert(known.end(), verb.options.begin(), verb.options.end());
  return known;
}

void checkCount(const Verb& verb, std::size_t given) {
  const std::string text = verb.arguments;
  const auto words = text.empty() ? 0 : 1 + static_cast<std::size_t>(std::count(text.begin(), text.end(), ' '));
  const auto optional = static_cast<std::size_t>(std::count(text.begin(), text.end(), '['));
  if (given <= words && given + optional >= words) return;
  throw Failure(ExitCode::usage, std::string(verb.name) + " takes " + (words == 0 ? "no arguments" : text) +
                                     "; `jobqctl " + verb.name + " --help` says more");
}

ExitCode tell(const std::string& text) {
  std::cout << text;
  return ExitCode::ok;
}

ExitCode perform(std::vector<std::string> given) {
  // `help VERB` is `VERB --help`.
  if (!given.empty() && given[0] == "help") {
    given.erase(given.begin());
    given.emplace_back("--help");
  }
  std::vector<std::string> words = leadingWords(given);
  if (words.empty() && given == std::vector<std::string>{"--version"}) return tell("jobqctl " JOBQ_VERSION "\n");
  if (asksForHelp(given)) {
    if (words.empty()) return tell(programHelp());
    if (words.size() == 1 && !verbsOfGroup(words[0]).empty()) return tell(groupHelp(words[0]));
    return tell(verbHelp(takeVerb(words)));
  }
  const Verb& verb = takeVerb(words);
  Arguments arguments = parseArguments(given, optionsOf(verb));
  takeVerb(arguments.words);
  if (arguments.has("help")) return tell(verbHelp(verb));
  checkCount(verb, arguments.words.size());
  const ApiClient api(arguments.value("url", environment("JOBQ_URL", "http://127.0.0.1:8000")),
                      arguments.value("key", environment("JOBQ_KEY", "")),
                      arguments.value("ca", environment("JOBQ_CA", "")));
  return verb.run(Call{arguments, api, arguments.has("json"), std::cout});
}

int run(const std::vector<std::string>& given) {
  try {
    const ExitCode code = perform(given);
    if (!std::cout.flush()) throw Failure(ExitCode::refused, "the output cannot be written: is the disk full?");
    return static_cast<int>(code);
  } catch (const Failure& failure) {
    std::cerr << "jobqctl: " << harmless(failure.what()) << '\n';
    return static_cast<int>(failure.code());
  } catch (const std::exception& error) {
    std::cerr << "jobqctl: " << harmless(error.what()) << '\n';
    return static_cast<int>(ExitCode::refused);
  }
}

}  // namespace
}  // namespace jobq::ctl

int main(int argc, char** argv) { return jobq::ctl::run({argv + 1, argv + argc}); }
