// The commands of jobqctl, one row each. A new command is a row in core/cli/commands.cpp and a function in the file of
// its topic.
#pragma once

#include <Poco/JSON/Array.h>

#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "core/cli/api_client.h"
#include "core/client/arguments.h"
#include "core/client/exit_code.h"

namespace jobq::cli {

/// Arguments of a command's function. `arguments.words` holds the words of the row's arguments, in their order.
struct Invocation {
  const Arguments& arguments;
  const ApiClient& api;
  bool json;          ///< prints the server's answer byte for byte and a line end; `top` prints objects of its own
  std::ostream& out;  ///< receives answers only; failures are thrown
};

struct Command {
  const char* name;       ///< a text of one or two words; no name is the beginning of another name
  const char* arguments;  ///< shown in the help; each word is an argument, a word in brackets is optional
  const char* help;       ///< the first line is for the list of commands, further lines for the command's own help
  std::vector<OptionRow> options;
  ExitCode (*run)(const Invocation&);  ///< throws CommandError
};

/// Prints the server's answer byte for byte and ends the line. An empty answer prints no line.
void printAnswer(std::string_view answer, std::ostream& out);

/// Prints the answer like printAnswer() and returns true if the call has the option --json. Otherwise returns false.
bool printIfJson(const Invocation& invocation, std::string_view answer);

/// Name of the option of printIfQuiet().
inline constexpr const char* kQuiet = "quiet";

/// Prints the text `member` of the answer alone and returns true if the call has the option --quiet, which --json
/// precedes. Otherwise returns false. Throws CommandError(unreachable) if the answer is no JSON object.
bool printIfQuiet(const Invocation& invocation, std::string_view answer, const char* member = "id");
/// Does the same with the ids of a list, one a line.
bool printIfQuiet(const Invocation& invocation, const Poco::JSON::Array::Ptr& list);

/// Returns the table of commands. The table lives as long as the process.
const std::vector<Command>& commands();

/// Returns the options that every command accepts.
const std::vector<OptionRow>& commonOptions();

/// Returns the words of a command line up to the end of the command's name. The options before the name may be those of
/// any command.
std::vector<std::string> leadingWords(const std::vector<std::string>& given);

/// Returns the command named by the first words, and removes its name from `words`. Throws CommandError(usage) if the
/// words name no command.
const Command& extractCommand(std::vector<std::string>& words);

/// Returns the commands whose first word is `word`, separated by commas, or an empty text.
std::string commandsOfGroup(const std::string& word);

/// Returns a script for `shell` that completes commands and options. Throws CommandError(usage) if the shell is not
/// bash, zsh or fish.
std::string completionOf(const std::string& shell);

/// Returns the help of jobqctl.
std::string programHelp();
/// Returns the help of the commands whose first word is `word`.
std::string groupHelp(const std::string& word);
/// Returns the help of one command with all its options.
std::string commandHelp(const Command& command);

/// The functions of the commands. Each prints its answer to `invocation.out`, returns the exit code, and throws
/// CommandError.
ExitCode createKey(const Invocation& invocation);
ExitCode showOwnKey(const Invocation& invocation);
ExitCode listKeys(const Invocation& invocation);
ExitCode revokeKey(const Invocation& invocation);
ExitCode printWorkerEnvironment(const Invocation& invocation);
ExitCode listWorkers(const Invocation& invocation);
ExitCode listNodes(const Invocation& invocation);
ExitCode drainNode(const Invocation& invocation);
ExitCode resumeNode(const Invocation& invocation);
ExitCode listPlugins(const Invocation& invocation);
ExitCode describePlugin(const Invocation& invocation);
ExitCode runJob(const Invocation& invocation);
ExitCode showJob(const Invocation& invocation);
ExitCode cancelJob(const Invocation& invocation);
ExitCode retryJob(const Invocation& invocation);
ExitCode streamJob(const Invocation& invocation);
ExitCode showLog(const Invocation& invocation);
ExitCode showWorkerLog(const Invocation& invocation);
ExitCode showHealth(const Invocation& invocation);
ExitCode listJobs(const Invocation& invocation);
ExitCode purgeQueue(const Invocation& invocation);
ExitCode listTemplates(const Invocation& invocation);
ExitCode showTemplate(const Invocation& invocation);
ExitCode createTemplate(const Invocation& invocation);
ExitCode updateTemplate(const Invocation& invocation);
ExitCode deleteTemplate(const Invocation& invocation);
ExitCode listEndpoints(const Invocation& invocation);
ExitCode showEndpoint(const Invocation& invocation);
ExitCode createEndpoint(const Invocation& invocation);
ExitCode updateEndpoint(const Invocation& invocation);
ExitCode deleteEndpoint(const Invocation& invocation);
ExitCode pauseEndpoint(const Invocation& invocation);
ExitCode resumeEndpoint(const Invocation& invocation);
ExitCode showRelease(const Invocation& invocation);
ExitCode listWebhooks(const Invocation& invocation);
ExitCode replayWebhook(const Invocation& invocation);
ExitCode showTop(const Invocation& invocation);
ExitCode probeStorage(const Invocation& invocation);
ExitCode probeLauncher(const Invocation& invocation);
ExitCode makeBackup(const Invocation& invocation);
ExitCode runScript(const Invocation& invocation);
ExitCode checkScript(const Invocation& invocation);
ExitCode printCompletion(const Invocation& invocation);

}  // namespace jobq::cli
