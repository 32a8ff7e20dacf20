#include "core/http/api/readiness.h"

#include <exception>

#include "jobq/error.h"

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
    std::optional<std::string> fault = ask();
    lock.lock();
    asking_ = false;
    ++answers_;
    if (!fault) goodUntil_ = clock_.now() + kGood;
    fault_ = std::move(fault);
    asked_.notifyAll();
  }
  if (fault_) throw StorageError(*fault_);
}

// Returns the fault of the storage, or no value if the storage can take a write.
std::optional<std::string> Readiness::ask() noexcept {
  try {
    storage_.check();
    return std::nullopt;
  } catch (const std::exception& error) {
    return error.what();
  } catch (...) {
    return "the storage threw an exception that is not a std::exception";
  }
}

}  // namespace jobq
