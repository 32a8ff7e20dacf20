#include "core/handler_process/bounded_threads.h"

namespace jobq::worker {

BoundedThreads::~BoundedThreads() { joinAll(); }

void BoundedThreads::joinAll() {
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

void BoundedThreads::noteStart() {
  Lock lock(mutex_);
  ++running_;
}

void BoundedThreads::noteEnd() {
  Lock lock(mutex_);
  --running_;
  ended_.notifyAll();
}

bool BoundedThreads::awaitEnd(Instant latest) {
  {
    Lock lock(mutex_);
    while (running_ > 0 && clock_.now() < latest) clock_.waitUntil(mutex_, ended_, latest);
    if (running_ > 0) return false;
  }
  joinAll();
  return true;
}

}  // namespace jobq::worker
