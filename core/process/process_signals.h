// The signals and the end of a program.
//
// No signal is blocked or ignored: masks and ignored signals pass through exec, and SIGTERM could not end a program of
// a handler. A signal has a function instead, until the exec. Linux runs the function of a signal to the whole process
// on the main thread, and interrupts no call of a further thread.
#pragma once

#include <chrono>
#include <optional>
#include <vector>

namespace jobq {

/// The signals awaited by the main thread. A process has at most a single object at a time. A forked child without a
/// program of its own survives the signals.
class ProcessSignals {
 public:
  /// Throws std::system_error.
  explicit ProcessSignals(std::vector<int> awaited);
  /// Gives the signals the usual effect.
  ~ProcessSignals();
  ProcessSignals(const ProcessSignals&) = delete;
  ProcessSignals& operator=(const ProcessSignals&) = delete;

  /// Makes SIGPIPE and SIGXFSZ harmless: the write has an error instead. Calls unblockSignals(). Called by the
  /// constructor, and again after the start, because a library may have ignored SIGPIPE.
  static void tameWriteSignals() noexcept;

  /// Blocks until a signal has come, also before the call. Returns the signal. Called by a single thread.
  int await() const;
  /// Does the same for `longest` at most; returns an empty optional if no signal has come.
  std::optional<int> awaitFor(std::chrono::milliseconds longest) const;
  /// Has the effect of the signal. Any thread.
  void send(int signal) const noexcept;

 private:
  const std::vector<int> awaited_;
  int ends_[2] = {-1, -1};  // of a pipe
};

/// Unblocks SIGTERM, SIGINT and SIGHUP without effect on the process. Used by a child whose parent decides about the
/// end.
void surviveSignals() noexcept;

/// Unblocks all signals in the calling thread. Poco blocks SIGPIPE in the main thread, before main(), and several
/// signals in a Poco::Thread.
void unblockSignals() noexcept;

/// Ends the process without the destructors of static objects: a library of a plugin may have a thread there, and a
/// destroyed thread would end the process with SIGABRT. Before the end the standard streams are flushed. A build with a
/// leak check makes the check.
[[noreturn]] void leaveProcess(int code) noexcept;

}  // namespace jobq
