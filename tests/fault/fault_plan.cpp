// The plan of the failures of a FaultyStorage.
#include <new>
#include <utility>

#include "faulty_storage.h"
#include "testkit/wait_for.h"

namespace jobq::fault {

void FaultPlan::failCall(std::uint64_t number) {
  Lock lock(mutex_);
  once_ = number;
}

void FaultPlan::failNext(std::string operation) {
  Lock lock(mutex_);
  next_ = std::move(operation);
}

void FaultPlan::exhaustNext(std::string operation) {
  Lock lock(mutex_);
  exhausted_ = std::move(operation);
}

void FaultPlan::failFrom(std::uint64_t number) {
  Lock lock(mutex_);
  from_ = number;
}

void FaultPlan::failOperation(std::string operation, Instant until) {
  Lock lock(mutex_);
  operation_ = std::move(operation);
  until_ = until;
}

void FaultPlan::failAtRandom(unsigned seed, unsigned every) {
  Lock lock(mutex_);
  dice_.seed(seed);
  every_ = every;
}

void FaultPlan::failCall(std::string operation, std::uint64_t number, CallFault how) {
  Lock lock(mutex_);
  failing_ = std::move(operation);
  failIn_ = number;
  how_ = how;
}

void FaultPlan::hold(std::string operation, std::uint64_t number) {
  Lock lock(mutex_);
  held_ = std::move(operation);
  holdIn_ = number;
}

bool FaultPlan::isHolding() const {
  Lock lock(mutex_);
  return holding_;
}

void FaultPlan::letGo() {
  Lock lock(mutex_);
  held_.clear();
  holding_ = false;
  ++releases_;
  letGo_.notifyAll();
}

void FaultPlan::countCall(int change) {
  Lock lock(mutex_);
  underWay_ += change;
}

bool FaultPlan::isQuiet() const {
  Lock lock(mutex_);
  return underWay_ == 0;
}

// Holds the thread if the test has asked for a hold at this point.
void FaultPlan::holdAt(std::string_view point) {
  if (held_ != point || holdIn_ == 0 || --holdIn_ > 0) return;
  holding_ = true;
  // The thread waits for a change of this number: the test may plan the next hold before this thread runs again.
  const std::uint64_t mine = releases_;
  for (testkit::WaitDeadline wait("the test to let " + held_ + " go on"); releases_ == mine;) wait.on(letGo_, mutex_);
}

void FaultPlan::leave(const char* operation) {
  Lock lock(mutex_);
  --underWay_;
  holdAt(operation);
  ++underWay_;
  if (!doubtful_ || failing_ != operation) return;
  doubtful_ = false;
  failed_.emplace_back(operation);
  throw OutcomeUnknown(std::string(kInjected) + " after " + operation);
}

void FaultPlan::heal() {
  Lock lock(mutex_);
  every_ = 0;
  once_ = 0;
  next_.clear();
  from_ = UINT64_MAX;
  until_ = Instant::min();
  failIn_ = 0;
  losing_.clear();
  doubtful_ = false;
}

std::uint64_t FaultPlan::calls() const {
  Lock lock(mutex_);
  return calls_;
}

std::vector<std::string> FaultPlan::failed() const {
  Lock lock(mutex_);
  return failed_;
}

bool FaultPlan::hits(std::string_view operation) {
  if (calls_ == once_ || calls_ >= from_) return true;
  if (next_ == operation) {
    next_.clear();
    return true;
  }
  if (every_ > 0 && dice_() % every_ == 0) return true;
  return until_ != Instant::min() && (operation_.empty() || operation_ == operation) && clock_.now() < until_;
}

Millis FaultPlan::sinceBeat() const { return clock_.now() - fromEpochMillis(beatAt_); }

void FaultPlan::enter(const char* operation) {
  const std::string_view name = operation;
  if (name == "nodes.join" || name == "nodes.beat") beatAt_ = toEpochMillis(clock_.now());
  Lock lock(mutex_);
  holdAt("before " + std::string(name));
  ++calls_;
  if (exhausted_ == operation) {
    exhausted_.clear();
    failed_.emplace_back(operation);
    throw std::bad_alloc();
  }
  if (failIn_ > 0 && failing_ == operation && --failIn_ == 0) {
    if (how_ == CallFault::before) once_ = calls_;
    if (how_ == CallFault::onward) from_ = calls_;
    if (how_ == CallFault::unanswered) losing_ = failing_;
    doubtful_ = how_ == CallFault::done;
    if (how_ == CallFault::lost) {
      failed_.emplace_back(operation);
      throw OutcomeUnknown(std::string(kInjected) + " before " + operation);
    }
  }
  if (losing_ == operation) {
    failing_ = losing_;
    doubtful_ = true;
  }
  if (!hits(operation)) return;
  failed_.emplace_back(operation);
  throw StorageError(std::string(kInjected) + " at " + operation);
}

}  // namespace jobq::fault
