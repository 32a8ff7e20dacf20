#include "core/http/api/readiness.h"

#include <exception>
#include <utility>

namespace jobq {
namespace {

constexpr Millis kGood{1'000};

}  // namespace

void Readiness::check() {
  Lock lock(mutex_);
  if (clock_.now() < goodUntil_) return;
  if (asking_) {
    for (const std::uint64_t before = answers_; answers_ == before;) asked_.wait(mutex_);
  } else {
    asking_ = true;
    lock.unlock();
    auto result = ask();
    lock.lock();
    asking_ = false;
    ++answers_;
    if (result) goodUntil_ = clock_.now() + kGood;
    result_ = std::move(result);
    asked_.notifyAll();
  }
  if (!result_) throw StorageError(result_.failure());
}

// Fails if the storage cannot take a write.
Result<void, StorageError> Readiness::ask() noexcept {
  try {
    storage_.check();
    return {};
  } catch (const std::exception& error) {
    return StorageError(error.what());
  } catch (...) {
    return StorageError("the storage threw an exception that is not a std::exception");
  }
}

}  // namespace jobq
