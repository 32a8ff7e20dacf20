// What jobqctl can do: one row a verb. A new verb is a row in commands.cpp and a function in the file of its concept.
#pragma once

#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "core/cli/api_client.h"
#include "core/cli/arguments.h"
#include "core/cli/exit_code.h"

namespace jobq::ctl {

/// What a verb's function is given. `arguments.words` holds the row's arguments, in their order.
struct Invocation {
  const Arguments& arguments;
  const ApiClient& api;
  bool json;          ///< print the server's answer byte for byte and a line end; `top` has no single one
  std::ostream& out;  ///< answers only; failures are thrown
};

struct Command {
  const char* name;       ///< one or two words; no verb's name begins another's
  const char* arguments;  ///< as the help shows them; each word is one argument, one in brackets may be left out
  const char* help;       ///< one line for the list, more lines below it for the verb's own help
  std::vector<OptionRow> options;
  ExitCode (*run)(const Invocation&);  ///< throws Failure
};

/// Prints the server's answer byte for byte and ends the line; nothing for an answer without a body.
void printAnswer(std::string_view answer, std::ostream& out);

const std::vector<Command>& commands();

/// Every verb accepts these.
const std::vector<OptionRow>& commonOptions();

/// The words of a command line up to the end of its verb: what comes before a verb may hold every verb's options.
std::vector<std::string> leadingWords(const std::vector<std::string>& given);

/// The verb that the words start with; its words are taken away from them. Throws Failure(usage) when there is none.
const Command& takeCommand(std::vector<std::string>& words);

/// The verbs whose first word is `word`, separated by commas; empty when there are none.
std::string commandsOfGroup(const std::string& word);

/// A script that completes verbs and options in `shell`. Throws Failure(usage) for a shell that is not bash, zsh or
/// fish.
std::string completionOf(const std::string& shell);

std::string programHelp();
std::string groupHelp(const std::string& word);
std::string commandHelp(const Command& command);

ExitCode createKey(const Invocation& invocation);
ExitCode listKeys(const Invocation& invocation);
ExitCode revokeKey(const Invocation& invocation);
ExitCode listPlugins(const Invocation& invocation);
ExitCode describePlugin(const Invocation& invocation);
ExitCode runJob(const Invocation& invocation);
ExitCode showJob(const Invocation& invocation);
ExitCode cancelJob(const Invocation& invocation);
ExitCode retryJob(const Invocation& invocation);
ExitCode streamJob(const Invocation& invocation);
ExitCode showLog(const Invocation& invocation);
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
ExitCode makeBackup(const Invocation& invocation);
ExitCode runScript(const Invocation& invocation);
ExitCode checkScript(const Invocation& invocation);
ExitCode printCompletion(const Invocation& invocation);

}  // namespace jobq::ctl
