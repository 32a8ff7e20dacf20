// jobqctl: the admin's command line. Options, verb, exit code; what the verbs do is in *_verbs.cpp.
#include <cstdlib>
#include <iostream>

#include "core/ctl/table_print.h"
#include "core/ctl/verbs.h"

namespace jobq::ctl {
namespace {

std::string environment(const char* name, const char* fallback) {
  const char* value = std::getenv(name);
  return value && *value ? value : fallback;
}

// Options may stand before the verb, so the whole line is read once with every verb's options to find the verb, and
// once more with this verb's own.
Arguments parseFor(const std::vector<std::string>& given, const std::vector<OptionRow>& options) {
  std::vector<OptionRow> known = commonOptions();
  known.insert(known.end(), options.begin(), options.end());
  return parseArguments(given, known);
}

std::vector<OptionRow> optionsOfAllVerbs() {
  std::vector<OptionRow> all;
  for (const Verb& verb : verbs()) all.insert(all.end(), verb.options.begin(), verb.options.end());
  for (OptionRow& option : all) option.repeatable = true;
  return all;
}

void checkCount(const Verb& verb, std::size_t given) {
  std::size_t expected = verb.arguments[0] == '\0' ? 0 : 1;
  for (const char* c = verb.arguments; *c; ++c) expected += *c == ' ' ? 1 : 0;
  if (given == expected) return;
  const std::string takes = expected == 0 ? "no arguments" : verb.arguments;
  throw Failure(ExitCode::usage,
                std::string(verb.name) + " takes " + takes + "; `jobqctl " + verb.name + " --help` says more");
}

ExitCode perform(const std::vector<std::string>& given) {
  Arguments arguments = parseFor(given, optionsOfAllVerbs());
  const bool aboutAll =
      arguments.words.empty() || (arguments.words.size() == 1 && !verbsOfGroup(arguments.words[0]).empty());
  if (aboutAll && arguments.has("help")) {
    std::cout << programHelp();
    return ExitCode::ok;
  }
  const Verb& verb = takeVerb(arguments.words);
  if (arguments.has("help")) {
    std::cout << verbHelp(verb);
    return ExitCode::ok;
  }
  arguments = parseFor(given, verb.options);
  takeVerb(arguments.words);
  checkCount(verb, arguments.words.size());
  const ApiClient api(arguments.value("url", environment("JOBQ_URL", "http://127.0.0.1:8000")),
                      arguments.value("key", environment("JOBQ_KEY", "")));
  return verb.run(Call{arguments, api, arguments.has("json"), std::cout});
}

int run(const std::vector<std::string>& given) {
  try {
    const ExitCode code = perform(given);
    std::cout.flush();
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
