// The stay of an HTTP thread with its connection while the request waits for a moment.
#pragma once

#include <chrono>

#include "jobq/mutex.h"

namespace jobq {

/// A thread that stays waits for the next bytes of its client. Meanwhile a second thread may borrow the connection, to
/// send the answer itself: the staying thread then need not wake for the answer. Any thread.
class ThreadStay {
 public:
  /// Begins the stay of the calling thread.
  void begin();

  /// Waits until `descriptor` is readable or its peer has closed, until wake() was called, or for `atMost`. Returns
  /// true after a wake(), perhaps of an earlier stay of this thread. The staying thread.
  static bool await(int descriptor, std::chrono::milliseconds atMost) noexcept;

  /// Ends the stay, and waits for the end of a loan. Returns true if there was a loan. The staying thread.
  bool end();

  /// Borrows the connection. Returns false if no thread stays, or if the connection is borrowed already.
  bool borrow();
  /// Ends the loan. With `wakes` the staying thread wakes. The connection is not touched afterwards.
  void endLoan(bool wakes);

  /// Wakes the staying thread, if there is one.
  void wake();

 private:
  enum class State { none, staying, borrowed, returned };

  Mutex mutex_;
  Condition returned_;
  State state_ JOBQ_GUARDED_BY(mutex_) = State::none;
  int wakeup_ JOBQ_GUARDED_BY(mutex_) = -1;  // of the staying thread
};

}  // namespace jobq
