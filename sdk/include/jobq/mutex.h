// A mutex and a condition variable with annotations for clang's -Wthread-safety; the types of libstdc++ have no
// annotations. With GCC the annotations expand to nothing. A class has one private mutex (QueueSignal has two), and no
// thread holds a lock during a call into another component, a plugin, the storage or the log.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

#if defined(__clang__)
#define JOBQ_ANNOTATE(x) __attribute__((x))
#else
#define JOBQ_ANNOTATE(x)
#endif
#define JOBQ_GUARDED_BY(x) JOBQ_ANNOTATE(guarded_by(x))
#define JOBQ_REQUIRES(...) JOBQ_ANNOTATE(requires_capability(__VA_ARGS__))
#define JOBQ_EXCLUDES(...) JOBQ_ANNOTATE(locks_excluded(__VA_ARGS__))

namespace jobq {

/// A mutex, locked through Lock. Any thread; not recursive.
class JOBQ_ANNOTATE(capability("mutex")) Mutex {
 public:
  Mutex() = default;
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;

  void lock() JOBQ_ANNOTATE(acquire_capability()) { native_.lock(); }
  void unlock() JOBQ_ANNOTATE(release_capability()) { native_.unlock(); }

 private:
  friend class Condition;
  std::mutex native_;
};

/// Locks a Mutex for a scope. The owning thread may unlock and lock the mutex again within the scope. The mutex
/// outlives the object.
class JOBQ_ANNOTATE(scoped_lockable) Lock {
 public:
  explicit Lock(Mutex& mutex) JOBQ_ANNOTATE(acquire_capability(mutex)) : mutex_(mutex) { mutex_.lock(); }
  ~Lock() JOBQ_ANNOTATE(release_capability()) {
    if (held_) mutex_.unlock();
  }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

  void unlock() JOBQ_ANNOTATE(release_capability()) {
    held_ = false;
    mutex_.unlock();
  }
  void lock() JOBQ_ANNOTATE(acquire_capability()) {
    mutex_.lock();
    held_ = true;
  }

 private:
  Mutex& mutex_;
  bool held_ = true;
};

/// A condition variable for Mutex. Any wait may return without a notification: a caller waits in a while loop.
class Condition {
 public:
  /// Blocks until a notification. The calling thread holds `mutex` on entry and on return; the call releases the mutex
  /// meanwhile.
  void wait(Mutex& mutex) JOBQ_REQUIRES(mutex) {
    Adopted lock(mutex.native_);
    native_.wait(lock.lock);
  }

  /// Waits as wait() does, at most for `duration` of real time. Clock::waitUntil waits for an Instant.
  void waitFor(Mutex& mutex, std::chrono::nanoseconds duration) JOBQ_REQUIRES(mutex) {
    Adopted lock(mutex.native_);
    native_.wait_until(lock.lock, std::chrono::steady_clock::now() + duration);
  }

  void notifyOne() noexcept { native_.notify_one(); }
  void notifyAll() noexcept { native_.notify_all(); }

 private:
  struct Adopted {
    explicit Adopted(std::mutex& native) : lock(native, std::adopt_lock) {}
    ~Adopted() { lock.release(); }
    std::unique_lock<std::mutex> lock;
  };

  std::condition_variable native_;
};

}  // namespace jobq
