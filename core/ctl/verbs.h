// What jobqctl can do: one row a verb. A new verb is a row in verbs.cpp and a function in the file of its concept.
#pragma once

#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "core/ctl/api_client.h"
#include "core/ctl/arguments.h"
#include "core/ctl/exit_code.h"

namespace jobq::ctl {

/// What a verb's function is given. `arguments.words` holds the row's arguments, in their order.
struct Call {
  const Arguments& arguments;
  const ApiClient& api;
  bool json;          ///< print the server's answer byte for byte and a line end; `top` has no single one
  std::ostream& out;  ///< answers only; failures are thrown
};

struct Verb {
  const char* name;       ///< one or two words; no verb's name begins another's
  const char* arguments;  ///< as the help shows them; each word is one argument, one in brackets may be left out
  const char* help;       ///< one line for the list, more lines below it for the verb's own help
  std::vector<OptionRow> options;
  ExitCode (*run)(const Call&);  ///< throws Failure
};

/// Prints the server's answer byte for byte and ends the line; nothing for an answer without a body.
void printAnswer(std::string_view answer, std::ostream& out);

const std::vector<Verb>& verbs();

/// Every verb accepts these.
const std::vector<OptionRow>& commonOptions();

/// The words of a command line up to the end of its verb: what comes before a verb may hold every verb's options.
std::vector<std::string> leadingWords(const std::vector<std::string>& given);

/// The verb that the words start with; its words are taken away from them. Throws Failure(usage) when there is none.
const Verb& takeVerb(std::vector<std::string>& words);

/// The verbs whose first word is `word`, separated by commas; empty when there are none.
std::string verbsOfGroup(const std::string& word);

/// A script that completes verbs and options in `shell`. Throws Failure(usage) for a shell that is not bash, zsh or
/// fish.
std::string completionOf(const std::string& shell);

std::string programHelp();
std::string groupHelp(const std::string& word);
std::string verbHelp(const Verb& verb);

ExitCode createKey(const Call& call);
ExitCode listKeys(const Call& call);
ExitCode revokeKey(const Call& call);
ExitCode listPlugins(const Call& call);
ExitCode describePlugin(const Call& call);
ExitCode runJob(const Call& call);
ExitCode showJob(const Call& call);
ExitCode cancelJob(const Call& call);
ExitCode retryJob(const Call& call);
ExitCode streamJob(const Call& call);
ExitCode showLog(const Call& call);
ExitCode showHealth(const Call& call);
ExitCode listJobs(const Call& call);
ExitCode purgeQueue(const Call& call);
ExitCode listTemplates(const Call& call);
ExitCode showTemplate(const Call& call);
ExitCode createTemplate(const Call& call);
ExitCode updateTemplate(const Call& call);
ExitCode deleteTemplate(const Call& call);
ExitCode listEndpoints(const Call& call);
ExitCode showEndpoint(const Call& call);
ExitCode createEndpoint(const Call& call);
ExitCode updateEndpoint(const Call& call);
ExitCode deleteEndpoint(const Call& call);
ExitCode pauseEndpoint(const Call& call);
ExitCode resumeEndpoint(const Call& call);
ExitCode showRelease(const Call& call);
ExitCode listWebhooks(const Call& call);
ExitCode replayWebhook(const Call& call);
ExitCode showTop(const Call& call);
ExitCode makeBackup(const Call& call);
ExitCode runScript(const Call& call);
ExitCode checkScript(const Call& call);
ExitCode printCompletion(const Call& call);

}  // namespace jobq::ctl
