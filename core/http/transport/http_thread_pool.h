// The threads that serve connections, started on demand. A few of them are kept for a minute without work; the others,
// started for a busy moment, end after a second. A connection goes to the thread with the shortest idle time, because
// the memory of such a thread is warm.
#pragma once

#include <atomic>
#include <cstddef>
#include <deque>
#include <list>
#include <memory>
#include <vector>

#include "core/http/transport/crowd.h"
#include "jobq/mutex.h"

namespace Poco {
class Thread;
}

namespace jobq {

class Connection;

/// The work of the pool's threads.
class ConnectionHandler {
 public:
  virtual ~ConnectionHandler() = default;

  /// Serves the requests that have arrived on the connection. Threads of the pool call, several at once. Throws
  /// nothing.
  virtual void serve(std::unique_ptr<Connection> connection) = 0;
};

/// Any thread calls submit() and busyFlag(). (Poco's ThreadPool walks over all its threads for each task and has no
/// queue.)
class HttpThreadPool {
 public:
  struct Size {
    std::size_t most;  ///< bounds the threads
    std::size_t kept;  ///< threads that stay for a minute without work; threads beyond end after a second
  };
  /// `handler` and `crowd` outlive the pool. `crowd` gets the number of busy threads.
  HttpThreadPool(Size size, ConnectionHandler& handler, Crowd& crowd);
  /// Calls stop().
  ~HttpThreadPool();

  /// Hands a connection to an idle thread, or queues the connection while all threads are busy. Never waits. Returns
  /// the connection if close() was called, or if there is no thread and the system gives none; else null. Throws
  /// std::bad_alloc, and does not take the connection then.
  std::unique_ptr<Connection> submit(std::unique_ptr<Connection>&& connection);

  /// Returns a flag, set while more than half of the threads are busy: no thread should then wait for a next request.
  /// Any thread.
  const std::atomic<bool>& busyFlag() const noexcept { return threadsBusy_; }

  /// Returns the number of threads, busy and idle.
  std::size_t size() {
    Lock lock(mutex_);
    return threads_.size();
  }

  /// Makes the threads begin no further connection. Returns the queued connections.
  std::deque<std::unique_ptr<Connection>> close();

  /// Calls close() and blocks until all threads have finished their connections and have ended.
  void stop();

 private:
  using Threads = std::list<std::unique_ptr<Poco::Thread>>;

  struct IdleThread {
    Condition over;
    bool called = false;
  };

  // Returns false if the system gives no thread.
  bool addThread() noexcept JOBQ_REQUIRES(mutex_);
  void noteLoad() JOBQ_REQUIRES(mutex_);
  void work(Threads::iterator self);
  std::unique_ptr<Connection> next(Threads::iterator self) JOBQ_EXCLUDES(mutex_);
  bool waitIdle() JOBQ_REQUIRES(mutex_);

  const Size size_;
  ConnectionHandler& handler_;
  Crowd& crowd_;                           // noted under the mutex
  std::atomic<bool> threadsBusy_ = false;  // written under the mutex
  Mutex mutex_;
  Condition left_;
  std::deque<std::unique_ptr<Connection>> queue_ JOBQ_GUARDED_BY(mutex_);
  Threads threads_ JOBQ_GUARDED_BY(mutex_);
  Threads ended_ JOBQ_GUARDED_BY(mutex_);
  std::vector<IdleThread*> resting_ JOBQ_GUARDED_BY(mutex_);  // on the threads' stacks; the latest is last
  bool stopping_ JOBQ_GUARDED_BY(mutex_) = false;
};

}  // namespace jobq
