#include "core/http/api/readiness.h"

#include <exception>
#include <new>
#include <utility>

namespace jobq {
namespace {

constexpr Millis kGood{1'000};

}  // namespace

std::optional<Result<void, StorageError>> Readiness::check(Question& question) {
  Lock lock(mutex_);
  if (question.check && *question.check < ended_) return result_;
  if (clock_.now() < goodUntil_) return Result<void, StorageError>();
  if (isChecking_) {
    if (!question.check) waiting_.push_back(question.call);
    question.check = ended_;
    return std::nullopt;
  }
  isChecking_ = true;
  lock.unlock();
  const Result<void, StorageError> result = askStorage();
  lock.lock();
  isChecking_ = false;
  ++ended_;
  const std::vector<SuspendedCall> waiting = std::exchange(waiting_, {});
  if (result) goodUntil_ = clock_.now() + kGood;
  result_ = result;
  lock.unlock();
  for (const SuspendedCall& call : waiting) call.resume();
  return result;
}

// Fails if the storage cannot take a write.
Result<void, StorageError> Readiness::askStorage() noexcept {
  try {
    try {
      storage_.check();
      return {};
    } catch (const StorageError& error) {
      return error;
    } catch (const std::exception& error) {
      return StorageError(error.what());
    } catch (...) {
      return StorageError("the storage threw an exception that is not a std::exception");
    }
  } catch (const std::bad_alloc&) {  // of a text above
    return lacking_;
  }
}

}  // namespace jobq
