// `jobqctl completion SHELL`: prints a completion script generated from the table of commands.
#include <cstddef>
#include <set>
#include <sstream>

#include "core/cli/commands.h"

namespace jobq::cli {
namespace {

std::string firstWord(const std::string& name) { return name.substr(0, name.find(' ')); }

std::string secondWord(const std::string& name) {
  const std::size_t blank = name.find(' ');
  return blank == std::string::npos ? "" : name.substr(blank + 1);
}

// Returns the first words of all commands, without repetitions.
std::set<std::string> firstWords() {
  std::set<std::string> words{"help"};
  for (const Command& command : commands()) words.insert(firstWord(command.name));
  return words;
}

std::string optionsOf(const Command& command) {
  std::string text;
  for (const auto* rows : {&command.options, &commonOptions()}) {
    for (const OptionRow& row : *rows) text += (text.empty() ? "--" : " --") + row.name;
  }
  return text;
}

// Returns true if a shell completes the option's value with names of files.
bool takesFile(const OptionRow& row) { return row.value == "FILE" || row.value == "DIR"; }

std::set<std::string> fileOptions() {
  std::set<std::string> names;
  for (const OptionRow& row : commonOptions()) {
    if (takesFile(row)) names.insert(row.name);
  }
  for (const Command& command : commands()) {
    for (const OptionRow& row : command.options) {
      if (takesFile(row)) names.insert(row.name);
    }
  }
  return names;
}

std::string joined(const std::set<std::string>& words, const std::string& before = "",
                   const std::string& between = " ") {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : between) + before + word;
  return text;
}

// Returns a case of `case "$command" in` for each command and each group. The variable `command` of the script has the
// words before the word to complete.
std::string bashCases() {
  std::ostringstream out;
  for (const std::string& word : firstWords()) {
    std::string seconds;
    for (const Command& command : commands()) {
      if (firstWord(command.name) == word && !secondWord(command.name).empty())
        seconds += " " + secondWord(command.name);
    }
    if (!seconds.empty()) out << "    " << word << ") choices=\"" << seconds.substr(1) << "\" ;;\n";
  }
  for (const Command& command : commands()) {
    out << "    '" << command.name << "'*) choices=\"" << optionsOf(command) << "\" ;;\n";
  }
  return out.str();
}

// zsh reads the same script, with its emulation of bash's completion.
std::string bashScript() {
  return "# jobqctl's completion; made by `jobqctl completion`.\n"
         "_jobqctl() {\n"
         "  local command choices last current\n"
         "  current=\"${COMP_WORDS[COMP_CWORD]}\"\n"
         "  last=\"${COMP_WORDS[COMP_CWORD-1]}\"\n"
         "  command=\"${COMP_WORDS[*]:1:COMP_CWORD-1}\"\n"
         "  case \"$last\" in\n"
         "    " +
         joined(fileOptions(), "--", "|") +
         ") COMPREPLY=($(compgen -f -- \"$current\")); return ;;\n"
         "  esac\n"
         "  case \"$command\" in\n"
         "    '') choices=\"" +
         joined(firstWords()) + "\" ;;\n" + bashCases() +
         "    *) choices= ;;\n"
         "  esac\n"
         "  COMPREPLY=($(compgen -W \"$choices\" -- \"$current\"))\n"
         "  if [ ${#COMPREPLY[@]} -eq 0 ]; then COMPREPLY=($(compgen -f -- \"$current\")); fi\n"
         "}\n"
         "complete -F _jobqctl jobqctl\n";
}

std::string quotedForFish(const std::string& text) {
  std::string out = "'";
  for (const char c : text.substr(0, text.find('\n'))) {
    if (c == '\'' || c == '\\') out += '\\';
    out += c;
  }
  return out + "'";
}

std::string fishScript() {
  std::ostringstream out;
  out << "# jobqctl's completion; made by `jobqctl completion`.\n"
         "function __jobqctl_begins\n"
         "  set -l words (commandline -opc)\n"
         "  test (count $words) -gt (count $argv); and test \"$words[2..(math (count $argv) + 1)]\" = \"$argv\"\n"
         "end\n"
         "function __jobqctl_at\n"
         "  set -l words (commandline -opc)\n"
         "  test \"$words[2..]\" = \"$argv\"\n"
         "end\n";
  out << "complete -c jobqctl -n __fish_use_subcommand -f -a '" << joined(firstWords()) << "'\n";
  for (const OptionRow& row : commonOptions()) {
    out << "complete -c jobqctl -l " << row.name
        << (row.value.empty() ? ""
            : takesFile(row)  ? " -rF"
                              : " -x")
        << " -d " << quotedForFish(row.help) << '\n';
  }
  for (const Command& command : commands()) {
    const std::string second = secondWord(command.name);
    if (!second.empty()) {
      out << "complete -c jobqctl -n '__jobqctl_at " << firstWord(command.name) << "' -f -a " << second << " -d "
          << quotedForFish(command.help) << '\n';
    }
    for (const OptionRow& row : command.options) {
      out << "complete -c jobqctl -n '__jobqctl_begins " << command.name << "' -l " << row.name
          << (row.value.empty() ? ""
              : takesFile(row)  ? " -rF"
                                : " -x")
          << " -d " << quotedForFish(row.help) << '\n';
    }
  }
  return out.str();
}

}  // namespace

std::string completionOf(const std::string& shell) {
  if (shell == "bash") return bashScript();
  if (shell == "zsh") return "autoload -U +X bashcompinit && bashcompinit\n" + bashScript();
  if (shell == "fish") return fishScript();
  throw CommandError(ExitCode::usage, "completion takes bash, zsh or fish, not '" + shell + "'");
}

ExitCode printCompletion(const Invocation& invocation) {
  invocation.out << completionOf(invocation.arguments.words[0]);
  return ExitCode::ok;
}

}  // namespace jobq::cli
