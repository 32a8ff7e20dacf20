// The threads that serve connections. Started when they are needed, ended after a minute without work. Work goes to the
// thread that has rested least: its memory is warm, and those that a busy moment made get their minute of rest and end.
#pragma once

#include <atomic>
#include <cstddef>
#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <vector>

#include "jobq/mutex.h"

namespace Poco {
class Thread;
}

namespace jobq {

class Connection;

/// Any thread submits. (Poco's ThreadPool walks over all its threads for each task and has no queue.)
class HttpThreadPool {
 public:
  using Serve = std::function<void(std::unique_ptr<Connection>)>;

  HttpThreadPool(std::size_t most, Serve serve);
  ~HttpThreadPool();

  /// Hands a connection to a thread; it stands in line while none is free. Never waits. Returns the connection when
  /// close() was called, else null.
  std::unique_ptr<Connection> submit(std::unique_ptr<Connection> connection);

  /// More than half of the threads are at work: none should be held for comfort.
  const std::atomic<bool>& crowded() const noexcept { return crowded_; }

  /// From now on no connection is begun. Returns those that stood in line.
  std::deque<std::unique_ptr<Connection>> close();

  /// close(), and waits until the threads have finished what they serve and have ended.
  void stop();

 private:
  using Threads = std::list<std::unique_ptr<Poco::Thread>>;

  struct IdleThread {
    Condition over;
    bool called = false;
  };

  void addThread() JOBQ_REQUIRES(mutex_);
  void noteLoad() JOBQ_REQUIRES(mutex_);
  void work(Threads::iterator self);
  std::unique_ptr<Connection> next() JOBQ_EXCLUDES(mutex_);
  bool waitIdle() JOBQ_REQUIRES(mutex_);

  const std::size_t most_;
  const Serve serve_;
  std::atomic<bool> crowded_ = false;  // written under the mutex
  Mutex mutex_;
  Condition left_;
  std::deque<std::unique_ptr<Connection>> line_ JOBQ_GUARDED_BY(mutex_);
  Threads threads_ JOBQ_GUARDED_BY(mutex_);
  Threads ended_ JOBQ_GUARDED_BY(mutex_);
  std::vector<IdleThread*> resting_ JOBQ_GUARDED_BY(mutex_);  // on the threads' stacks; the last began last
  bool stopping_ JOBQ_GUARDED_BY(mutex_) = false;
};

}  // namespace jobq
