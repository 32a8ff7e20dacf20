#include "process_end.h"

#include <string.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <utility>

#include "jobq/byte_order_mark.h"

namespace jobq::process {

namespace {

using Kind = ProcessEnd::Kind;

constexpr std::pair<std::string_view, Kind> kWords[] = {
    {"exit ", Kind::exited},       {"signal ", Kind::signalled}, {"exec ", Kind::notExecuted},
    {"chdir ", Kind::noDirectory}, {"user ", Kind::noUser},      {"refused ", Kind::refused},
};

std::string signalText(int number) {
  const char* const name = ::sigdescr_np(number);
  return "signal " + std::to_string(number) + (name == nullptr ? "" : " (" + std::string(name) + ")");
}

std::string guardEnd(int status) {
  if (WIFSIGNALED(status)) return "its guard was ended by " + signalText(WTERMSIG(status)) + ", and the worker with it";
  return "its guard ended with exit code " + std::to_string(WEXITSTATUS(status)) + " and no report";
}

std::string clauseOf(const ProcessEnd& end) {
  switch (end.kind) {
    case Kind::exited: return "it ended with exit code " + std::to_string(end.value);
    case Kind::signalled: return "it was ended by " + signalText(end.value);
    case Kind::refused: return "it could not be killed, because it runs as another user";
    default: return guardEnd(end.value);
  }
}

// Returns the first line of a program named by a path, up to the bound of the kernel, or an empty text.
std::string firstLineOf(std::string_view program, std::string_view directory) {
  constexpr std::size_t kLongest = 256;  // bound of the kernel
  std::string line(kLongest, '\0');
  const std::filesystem::path file = std::filesystem::path(directory) / program;
  std::error_code ignored;
  if (program.find('/') == std::string_view::npos || !std::filesystem::is_regular_file(file, ignored)) return "";
  std::ifstream in(file, std::ios::binary);
  in.read(line.data(), static_cast<std::streamsize>(line.size()));
  line.resize(static_cast<std::size_t>(in.gcount()));
  line.erase(std::min(line.find('\n'), line.size()));
  return line;
}

// Returns the interpreter named by the first line of a script, or an empty text if the line is not of a script.
std::string interpreterOf(const std::string& line) {
  if (!line.starts_with("#!")) return "";
  const std::size_t begin = std::min(line.find_first_not_of(" \t", 2), line.size());
  return line.substr(begin, line.find_first_of(" \t", begin) - begin);
}

// For a script without its interpreter the kernel reports ENOENT, as if the script did not exist.
std::string whyNotExecuted(std::string_view program, std::string_view directory, int error) {
  const std::string plain = std::string(program) + ": " + errorText(error);
  if (error != ENOENT) return plain;
  std::string interpreter = interpreterOf(firstLineOf(program, directory));
  if (interpreter.empty()) return plain;
  const bool isForWindows = interpreter.ends_with('\r');
  if (isForWindows) interpreter.pop_back();
  return std::string(program) + ": its interpreter " + interpreter +
         (isForWindows
              ? " is not found, because the line ends with CR and LF: save the script with the line ends of Unix"
              : " does not exist: install it, or correct the first line of the script");
}

// The kernel does not recognize a script after a byte order mark. The shell then runs the script, whatever interpreter
// the first line names.
std::string_view hintOfMark(std::string_view program, std::string_view directory) {
  const std::string line = firstLineOf(program, directory);
  const std::string_view unmarked = withoutByteOrderMark(line);
  if (unmarked.size() == line.size() || !unmarked.starts_with("#!")) return "";
  return "; the script begins with a byte order mark, so its first line names no interpreter: save it without the mark";
}

}  // namespace

ProcessEnd readEnd(std::string_view report, int guardStatus) {
  for (const auto& [word, kind] : kWords) {
    if (!report.starts_with(word)) continue;
    int value = 0;
    const std::string_view number = report.substr(word.size());
    const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), value);
    if (error == std::errc() && end == number.data() + number.size()) return {kind, value};
  }
  return {Kind::unknown, guardStatus};
}

WorkerExit exitOf(const WorkerId& worker, const ProcessEnd& end, std::string_view program, std::string_view directory,
                  std::string_view lastLine) {
  if (end.kind == Kind::notExecuted) return failedStart(worker, whyNotExecuted(program, directory, end.value));
  if (end.kind == Kind::noDirectory) {
    return failedStart(worker, "the working directory " + std::string(directory) + ": " + errorText(end.value));
  }
  if (end.kind == Kind::noUser) {
    return failedStart(worker, "it cannot become the user of launcher.process.user: " + errorText(end.value));
  }
  const bool isFailure = end.kind != Kind::exited || end.value != 0;
  const std::string_view hint = isFailure ? hintOfMark(program, directory) : "";
  return {worker, isFailure,
          clauseOf(end) + (lastLine.empty() ? "" : ": " + std::string(lastLine)) + std::string(hint)};
}

WorkerExit failedStart(const WorkerId& worker, std::string_view why) {
  return {worker, true, "it could not be started: " + std::string(why)};
}

std::string errorText(int error) { return std::generic_category().message(error); }

}  // namespace jobq::process
