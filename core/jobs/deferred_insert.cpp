#include "core/jobs/deferred_insert.h"

#include <exception>
#include <new>
#include <utility>

namespace jobq {

DeferredInsert::DeferredInsert(Storage& storage, Clock& clock, JobSpec job, const QueuePolicy& policy, Begun run)
    : storage_(storage),
      clock_(clock),
      job_(std::move(job)),
      policy_(policy),
      run_(std::move(run)),
      begin_(clock.now()) {}

void DeferredInsert::store() { (void)storeOnce(nullptr); }

bool DeferredInsert::storeEnded(const Outcome& outcome) { return storeOnce(&outcome); }

void DeferredInsert::discard() {
  Lock lock(mutex_);
  while (state_ == State::storing) changed_.wait(mutex_);
  if (state_ == State::deferred) state_ = State::discarded;
}

// No lock is held during the call of the storage. Other threads wait for the end of the call.
bool DeferredInsert::storeOnce(const Outcome* outcome) {
  if (state_ == State::stored) return false;
  {
    Lock lock(mutex_);
    while (state_ == State::storing) changed_.wait(mutex_);
    if (state_ == State::stored || state_ == State::discarded) return false;
    if (state_ == State::lost) throw StorageError(reason_.empty() ? "the storage has refused the job" : reason_);
    state_ = State::storing;
  }
  insertBegun(outcome);
  return true;
}

void DeferredInsert::insertBegun(const Outcome* outcome) {
  try {
    const Begun begun{run_.worker, run_.holder, clock_.now() - begin_, outcome};
    (void)storage_.jobs().insert(std::move(job_), policy_, {.start = begun});  // only reads the job
  } catch (const std::exception& error) {
    end(State::lost, error.what());
    throw StorageError(error.what());
  } catch (...) {
    constexpr char kReason[] = "the queue policy threw an exception that is not a std::exception";
    end(State::lost, kReason);
    throw StorageError(kReason);
  }
  end(State::stored, "");
}

void DeferredInsert::end(State state, const char* reason) {
  Lock lock(mutex_);
  state_ = state;
  changed_.notifyAll();
  try {
    reason_ = reason;
  } catch (const std::bad_alloc&) {  // storeOnce() has a reason for this case
  }
}

}  // namespace jobq
