// jobqctl, the command line for administrators: reads options, runs the command and returns the exit code. The
// functions of the commands are in core/cli/*_commands.cpp and core/cli/*_command.cpp.
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <thread>

#include "core/cli/commands.h"
#include "core/client/table_print.h"
#include "core/process/process_signals.h"

namespace jobq::cli {
namespace {

std::string environment(const char* name, const char* fallback) {
  const char* value = std::getenv(name);
  return value && *value ? value : fallback;
}

bool asksForHelp(const std::vector<std::string>& given) {
  return std::find(given.begin(), given.end(), "--help") != given.end();
}

std::vector<OptionRow> optionsOf(const Command& command) {
  std::vector<OptionRow> known = commonOptions();
  known.insert(known.end(), command.options.begin(), command.options.end());
  return known;
}

void checkCount(const Command& command, std::size_t given) {
  const std::string text = command.arguments;
  const auto words = text.empty() ? 0 : 1 + static_cast<std::size_t>(std::count(text.begin(), text.end(), ' '));
  const auto optional = static_cast<std::size_t>(std::count(text.begin(), text.end(), '['));
  if (given <= words && given + optional >= words) return;
  throw CommandError(ExitCode::usage, std::string(command.name) + " takes " + (words == 0 ? "no arguments" : text) +
                                          "; `jobqctl " + command.name + " --help` says more");
}

ExitCode printText(const std::string& text) {
  std::cout << text;
  return ExitCode::ok;
}

/// Shows the reason of each wait on standard error.
class ShownPause final : public RatePause {
 public:
  void wait(const std::string& sentence, Millis time) override {
    std::cerr << faultMessage("jobqctl",
                              sentence + " (trying again in " + std::to_string(time.count() / 1'000) + " s)");
    std::this_thread::sleep_for(time);
  }
};

ExitCode perform(std::vector<std::string> given) {
  // `help COMMAND` means `COMMAND --help`.
  if (!given.empty() && given[0] == "help") {
    given.erase(given.begin());
    given.emplace_back("--help");
  }
  std::vector<std::string> words = leadingWords(given);
  if (words.empty() && given == std::vector<std::string>{"--version"}) return printText("jobqctl " JOBQ_VERSION "\n");
  if (asksForHelp(given)) {
    if (words.empty()) return printText(programHelp());
    if (words.size() == 1 && !commandsOfGroup(words[0]).empty()) return printText(groupHelp(words[0]));
    return printText(commandHelp(extractCommand(words)));
  }
  const Command& command = extractCommand(words);
  Arguments arguments = parseArguments(given, optionsOf(command));
  extractCommand(arguments.words);
  if (arguments.has("help")) return printText(commandHelp(command));
  checkCount(command, arguments.words.size());
  ShownPause pause;
  const ApiClient api(arguments.value("url", environment("JOBQ_URL", "http://127.0.0.1:8000")),
                      arguments.value("key", environment("JOBQ_KEY", "")),
                      arguments.value("ca", environment("JOBQ_CA", "")),
                      command.run == showTop ? nullptr : &pause);  // a live table shows a refusal and asks again anyway
  return command.run(Invocation{arguments, api, arguments.has("json"), std::cout});
}

/// Returns true if standard output has no reader any more, as after `head` has read enough.
bool hasReaderLeft() {
  pollfd out{STDOUT_FILENO, 0, 0};
  return poll(&out, 1, 0) == 1 && (out.revents & POLLERR) != 0;
}

int run(const std::vector<std::string>& given) {
  ProcessSignals::tameWriteSignals();  // a connection closed by the server is an error of the call
  try {
    const ExitCode code = perform(given);
    if (!std::cout.flush() && hasReaderLeft()) return static_cast<int>(code);
    if (!std::cout) throw CommandError(ExitCode::refused, "the output cannot be written: is the disk full?");
    return static_cast<int>(code);
  } catch (const CommandError& failure) {
    std::cerr << faultMessage("jobqctl", failure.what());
    return static_cast<int>(failure.code());
  } catch (const std::exception& error) {
    std::cerr << faultMessage("jobqctl", error.what());
    return static_cast<int>(ExitCode::refused);
  }
}

}  // namespace
}  // namespace jobq::cli

int main(int argc, char** argv) { jobq::leaveProcess(jobq::cli::run({argv + 1, argv + argc})); }
