// Repetition of a call of the storage whose answer was lost.
#pragma once

#include "jobq/error.h"

namespace jobq {

/// Number of times that callRepeatedly() repeats a call.
inline constexpr int kRepeats = 2;

/// Calls a repeatable operation of the storage, and repeats the call at once, up to kRepeats times, if its answer was
/// lost. A client would otherwise read 503 and send its request a second time. Throws OutcomeUnknown if the operation
/// may have happened, also if a repeated call fails with another StorageError.
template <class Operation>
auto callRepeatedly(Operation&& operation) {
  for (int repeats = 0;; ++repeats) {
    try {
      return operation();
    } catch (const OutcomeUnknown&) {
      if (repeats == kRepeats) throw;
    } catch (const StorageError& error) {
      if (repeats == 0) throw;
      throw OutcomeUnknown(error.what());
    }
  }
}

}  // namespace jobq
