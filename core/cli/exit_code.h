// How a call of jobqctl can end: the exit codes scripts rely on, and the exception that carries one with its sentence.
#pragma once

#include <stdexcept>
#include <string>

namespace jobq::ctl {

/// Part of the program's interface: the numbers never change.
enum class ExitCode : int {
  ok = 0,
  refused = 1,       ///< the server said no, and why
  usage = 2,         ///< the command line is wrong; nothing was sent
  unreachable = 3,   ///< no server answered, or what answered is not one
  notCompleted = 4,  ///< `run --sync`, `job stream`: the server did what it was told, but the job was not COMPLETED
  halted = 5,        ///< `release status --wait`: the newest version does not run
  waitElapsed = 6,   ///< `release status --wait`: --timeout passed while the release was rolling
};

/// what() is one sentence for the person at the terminal. Only main catches it.
class Failure : public std::runtime_error {
 public:
  Failure(ExitCode code, const std::string& sentence) : std::runtime_error(sentence), code_(code) {}

  ExitCode code() const noexcept { return code_; }

 private:
  ExitCode code_;
};

}  // namespace jobq::ctl
