// The repetition of a step whose rows meet rows of another step under a unique key.
#pragma once

#include "connection/statement.h"

namespace jobq::mysql {

/// Number of attempts of a step that meets another step with the same id, the same idempotency key or the same number
/// of a job. The other step is committed by then, so a further attempt reads its row, or has another number.
inline constexpr int kMeetings = 4;

/// Calls `write(isRepeated)` until no row is a duplicate, at most kMeetings times. Returns the result. Throws what
/// `write` throws.
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
