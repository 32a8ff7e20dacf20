// Which verb a command line means.
#include <algorithm>

#include "core/ctl/table_print.h"
#include "core/ctl/verbs.h"

namespace jobq::ctl {
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
  for (const Verb& verb : verbs()) all.insert(all.end(), verb.options.begin(), verb.options.end());
  return all;
}

bool nameVerb(const std::vector<std::string>& words) {
  return std::any_of(verbs().begin(), verbs().end(),
                     [&words](const Verb& verb) { return startsWith(words, verb.name); });
}

}  // namespace

void printAnswer(std::string_view answer, std::ostream& out) {
  out << answer;
  if (!answer.empty() && answer.back() != '\n') out << '\n';
}

std::vector<std::string> leadingWords(const std::vector<std::string>& given) {
  const std::vector<OptionRow> options = allOptions();
  std::vector<std::string> words;
  for (std::size_t i = 0; i < given.size() && !nameVerb(words); ++i) {
    if (takesNext(given[i], options)) {
      ++i;
    } else if (given[i] == "-" || !given[i].starts_with('-')) {
      words.push_back(given[i]);
    }
  }
  return words;
}

std::string verbsOfGroup(const std::string& word) {
  std::string group;
  for (const Verb& verb : verbs()) {
    if (std::string(verb.name).starts_with(word + " ")) group += (group.empty() ? "" : ", ") + std::string(verb.name);
  }
  return group;
}

const Verb& takeVerb(std::vector<std::string>& words) {
  for (const Verb& verb : verbs()) {
    if (!startsWith(words, verb.name)) continue;
    words.erase(words.begin(), words.begin() + wordCount(verb.name));
    return verb;
  }
  if (words.empty()) throw Failure(ExitCode::usage, "say what to do; `jobqctl --help` lists the verbs");
  const std::string group = verbsOfGroup(words[0]);
  if (!group.empty()) throw Failure(ExitCode::usage, "'" + words[0] + "' needs a second word: " + group);
  throw Failure(ExitCode::usage, "'" + harmless(words[0]) + "' is not a verb; `jobqctl --help` lists them");
}

}  // namespace jobq::ctl
