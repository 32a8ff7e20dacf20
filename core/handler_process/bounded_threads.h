// Threads whose end is awaited for a bounded time.
#pragma once

#include <cstddef>
#include <thread>
#include <vector>

#include "core/base/service.h"
#include "jobq/mutex.h"
#include "jobq/time.h"

namespace jobq::worker {

/// One thread uses the object. The process ends without destructors if the threads do not end in time.
class BoundedThreads {
 public:
  /// `clock` outlives the object.
  explicit BoundedThreads(Clock& clock) : clock_(clock) {}
  /// Joins the threads.
  ~BoundedThreads();
  BoundedThreads(const BoundedThreads&) = delete;
  BoundedThreads& operator=(const BoundedThreads&) = delete;

  /// Starts a thread that runs `body` once. `name` has at most 15 characters. `body` throws nothing.
  template <class Body>
  void start(const char* name, Body body) {
    noteStart();
    threads_.emplace_back([this, name, body] {
      nameThread(name);
      body();
      noteEnd();
    });
  }

  /// Blocks until all threads have ended, or until `latest`. Returns true if all have ended; they are joined then.
  bool awaitEnd(Instant latest);

 private:
  void joinAll();
  void noteStart();
  void noteEnd();

  Clock& clock_;
  std::vector<std::thread> threads_;
  Mutex mutex_;
  Condition ended_;
  std::size_t running_ JOBQ_GUARDED_BY(mutex_) = 0;
};

}  // namespace jobq::worker
