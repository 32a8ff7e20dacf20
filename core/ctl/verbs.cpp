#include "core/ctl/verbs.h"

#include <algorithm>
#include <sstream>

#include "core/ctl/table_print.h"

namespace jobq::ctl {
namespace {

std::ptrdiff_t wordCount(const std::string& text) {
  return text.empty() ? 0 : 1 + std::count(text.begin(), text.end(), ' ');
}

std::string firstLine(const std::string& text) { return text.substr(0, text.find('\n')); }

bool startsWith(const std::vector<std::string>& words, const std::string& name) {
  std::string start;
  for (const std::string& word : words) {
    start += (start.empty() ? "" : " ") + word;
    if (start.size() >= name.size()) break;
  }
  return start == name;
}

}  // namespace

const std::vector<Verb>& verbs() {
  static const std::vector<Verb> kVerbs = {
      {"key create",
       "NAME",
       "Make an API key and print it, the only time it is shown.",
       {{"scope", "client|worker|admin", "what the key may do; client when left out", true},
        {"endpoint", "ID", "bind the key to this endpoint; all endpoints when left out", true},
        {"expires", "ISO", "the moment it ends, in UTC, like 2027-01-01T00:00:00Z; never when left out"}},
       createKey},
      {"key list", "", "List the API keys, without the keys themselves.", {}, listKeys},
      {"key revoke", "ID", "End a key. ID is its id from `key list`, not the key.", {}, revokeKey},
      {"plugin list", "", "List the plugin files, what they hold, and why a file was rejected.", {}, listPlugins},
      {"plugin describe",
       "NAME",
       "Show a plugin's options. NAME is like sqlite, or storage.sqlite where a name is used by two kinds.",
       {},
       describePlugin},
      {"run",
       "ENDPOINT JSON",
       "Submit a job. JSON is its `input` object; - reads it from standard input, @FILE from a file.\n"
       "With --sync the exit code is 4 when the job did not end COMPLETED.",
       {{"sync", "", "wait for the job's end and show its output"},
        {"wait", "MS", "with --sync: how long to wait, 1000 to 300000 milliseconds; 90000 when left out"}},
       runJob},
      {"status", "ENDPOINT JOB", "Show a job.", {}, showJob},
      {"cancel", "ENDPOINT JOB", "Stop a job, whether it waits or runs.", {}, cancelJob},
      {"retry", "ENDPOINT JOB", "Put a FAILED or TIMED_OUT job in line again.", {}, retryJob},
      {"health", "ENDPOINT", "Show an endpoint's counters of jobs and workers.", {}, showHealth},
  };
  return kVerbs;
}

const std::vector<OptionRow>& commonOptions() {
  static const std::vector<OptionRow> kOptions = {
      {"url", "URL", "the server's address; else JOBQ_URL, else http://127.0.0.1:8000"},
      {"key", "KEY", "the API key; better in JOBQ_KEY, where other users of the machine do not see it"},
      {"json", "", "print the server's answer as it came, for programs"},
      {"help", "", "show this text"},
  };
  return kOptions;
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

std::string programHelp() {
  std::ostringstream out;
  out << "usage: jobqctl VERB [ARGUMENTS] [OPTIONS]\n\nThe command line of a jobq server.\n\nVerbs:\n";
  Table table;
  for (const Verb& verb : verbs()) {
    const std::string arguments = verb.arguments[0] == '\0' ? "" : std::string(" ") + verb.arguments;
    table.add({"  " + (verb.name + arguments), firstLine(verb.help)});
  }
  table.print(out);
  out << "\nOptions of every verb:\n"
      << describeOptions(commonOptions())
      << "\n`jobqctl VERB --help` shows a verb's own options.\n"
         "Exit codes: 0 done, 1 the server said no, 2 wrong usage, 3 the server cannot be reached,\n"
         "4 the job of `run --sync` did not end COMPLETED.\n";
  return out.str();
}

std::string verbHelp(const Verb& verb) {
  std::ostringstream out;
  std::vector<OptionRow> options = verb.options;
  options.insert(options.end(), commonOptions().begin(), commonOptions().end());
  out << "usage: jobqctl " << verb.name << (verb.arguments[0] == '\0' ? "" : " ") << verb.arguments << " [OPTIONS]\n\n"
      << verb.help << "\n\nOptions:\n"
      << describeOptions(options);
  return out.str();
}

}  // namespace jobq::ctl
