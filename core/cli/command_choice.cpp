// Finds the command that a command line names.
#include <algorithm>

#include "core/cli/answer_reader.h"
#include "core/cli/commands.h"
#include "core/client/table_print.h"

namespace jobq::cli {
namespace {

std::ptrdiff_t wordCount(const std::string& text) {
  return text.empty() ? 0 : 1 + std::count(text.begin(), text.end(), ' ');
}

bool startsWith(const std::vector<std::string>& words, const std::string& name) {
  std::string start;
  for (const std::string& word : words) {
    start += (start.empty() ? "" : " ") + word;
    if (start.size() >= name.size()) break;
  }
  return start == name;
}

std::vector<OptionRow> allOptions() {
  std::vector<OptionRow> all = commonOptions();
  for (const Command& command : commands()) all.insert(all.end(), command.options.begin(), command.options.end());
  return all;
}

bool nameCommand(const std::vector<std::string>& words) {
  return std::any_of(commands().begin(), commands().end(),
                     [&words](const Command& command) { return startsWith(words, command.name); });
}

// Returns a question for the end of a sentence about an unknown command, if a known one is near.
std::string nearestCommand(const std::vector<std::string>& words) {
  std::vector<std::string> names;
  for (const Command& command : commands()) names.emplace_back(command.name);
  std::string near = words.size() > 1 ? nearOf(words[0] + " " + words[1], names) : "";
  if (near.empty()) near = nearOf(words[0], names);
  return near.empty() ? "" : ": did you mean `" + near + "`?";
}

}  // namespace

void printAnswer(std::string_view answer, std::ostream& out) {
  out << answer;
  if (!answer.empty() && answer.back() != '\n') out << '\n';
}

bool printIfQuiet(const Invocation& invocation, std::string_view answer, const char* member) {
  if (!invocation.arguments.has(kQuiet)) return false;
  invocation.out << cell(*readObject(std::string(answer)), member) << '\n';
  return true;
}

bool printIfQuiet(const Invocation& invocation, const Poco::JSON::Array::Ptr& list) {
  if (!invocation.arguments.has(kQuiet)) return false;
  for (const auto& object : objects(list)) invocation.out << cell(*object, "id") << '\n';
  return true;
}

bool printIfJson(const Invocation& invocation, std::string_view answer) {
  if (invocation.json) printAnswer(answer, invocation.out);
  return invocation.json;
}

std::vector<std::string> leadingWords(const std::vector<std::string>& given) {
  const std::vector<OptionRow> options = allOptions();
  std::vector<std::string> words;
  for (std::size_t i = 0; i < given.size() && !nameCommand(words); ++i) {
    if (takesNext(given[i], options)) {
      ++i;
    } else if (given[i] == "-" || !given[i].starts_with('-')) {
      words.push_back(given[i]);
    }
  }
  return words;
}

std::string commandsOfGroup(const std::string& word) {
  std::string group;
  for (const Command& command : commands()) {
    if (std::string(command.name).starts_with(word + " "))
      group += (group.empty() ? "" : ", ") + std::string(command.name);
  }
  return group;
}

const Command& extractCommand(std::vector<std::string>& words) {
  for (const Command& command : commands()) {
    if (!startsWith(words, command.name)) continue;
    words.erase(words.begin(), words.begin() + wordCount(command.name));
    return command;
  }
  if (words.empty()) throw CommandError(ExitCode::usage, "a command is missing; `jobqctl --help` lists the commands");
  const std::string group = commandsOfGroup(words[0]);
  if (!group.empty()) throw CommandError(ExitCode::usage, "'" + words[0] + "' needs a second word: " + group);
  throw CommandError(ExitCode::usage, "'" + harmless(words[0]) + "' is not a command" + nearestCommand(words) +
                                          "; `jobqctl --help` lists the commands");
}

}  // namespace jobq::cli
