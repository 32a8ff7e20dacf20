#include "core/jobs/deferred_insert.h"

#include <utility>

namespace jobq {

DeferredInsert::DeferredInsert(Storage& storage, Clock& clock, JobSpec job, const QueuePolicy& policy, FirstRun run)
    : storage_(storage),
      clock_(clock),
      job_(std::move(job)),
      policy_(policy),
      run_(std::move(run)),
      begin_(clock.now()) {}

void DeferredInsert::store() { (void)storeOnce(nullptr); }

bool DeferredInsert::storeEnded(const Outcome& outcome) { return storeOnce(&outcome); }

// No lock is held during the call of the storage. Other threads wait for its end: either way the storage has the job
// when they go on, or they try by themselves.
bool DeferredInsert::storeOnce(const Outcome* outcome) {
  if (stored_) return false;
  Lock lock(mutex_);
  while (storing_) changed_.wait(mutex_);
  if (stored_) return false;
  storing_ = true;
  lock.unlock();
  const auto end = [this](bool isStored) {
    Lock ending(mutex_);
    stored_ = isStored;
    storing_ = false;
    changed_.notifyAll();
  };
  try {
    storage_.insertRun(job_, policy_, {run_.worker, run_.holder, clock_.now() - begin_}, outcome);
  } catch (...) {
    end(false);
    throw;
  }
  end(true);
  return true;
}

}  // namespace jobq
