// The exit codes of jobqctl, on which scripts rely, and the exception carrying an exit code with a sentence.
#pragma once

#include <stdexcept>
#include <string>

namespace jobq::cli {

/// Part of the program's interface: the numbers never change.
enum class ExitCode : int {
  ok = 0,
  refused = 1,      ///< the server refused the request, or a local step failed
  usage = 2,        ///< the command line is wrong; no request was sent
  unreachable = 3,  ///< no server answered, or the answer did not come from a jobq server
  /// `run --sync`, `job stream`, `job logs --follow`, `lua run`: the command worked, but the job did not end COMPLETED.
  notCompleted = 4,
  halted = 5,       ///< `release status --wait`: the newest version does not run
  waitElapsed = 6,  ///< `release status --wait`: --timeout passed while the release was rolling
};

/// A failed command with a sentence for the user at the terminal. The function main() prints the sentence and ends with
/// the code; a few commands handle the error of a single call.
class CommandError : public std::runtime_error {
 public:
  CommandError(ExitCode code, const std::string& sentence) : std::runtime_error(sentence), code_(code) {}

  ExitCode code() const noexcept { return code_; }

 private:
  ExitCode code_;
};

}  // namespace jobq::cli
