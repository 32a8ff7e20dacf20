// The repetition of a step whose rows meet rows of another step under a unique key.
#pragma once

#include "connection/statement.h"

namespace jobq::mysql {

/// Number of attempts of a step in conflict with another step: both have the same id, the same idempotency key or the
/// same number of a job. The other step is committed by then, so a further attempt reads the committed row, or takes a
/// new number.
inline constexpr int kMeetings = 4;

/// Calls `write(isRepeated)` until no row is a duplicate, at most kMeetings times. Returns the result. Throws the
/// exceptions of `write`.
template <class Write>
auto untilUnique(Write&& write) {
  for (int meeting = 1;; ++meeting) {
    try {
      return write(meeting > 1);
    } catch (const MysqlError& error) {
      if (!error.isDuplicate() || meeting == kMeetings) throw;
    }
  }
}

}  // namespace jobq::mysql
