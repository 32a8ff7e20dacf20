// A fake database whose row locks exclude no session, as some servers of the MySQL protocol behave: a proxy in front of
// the test's server replaces the locking words of each statement by spaces.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "jobq/mutex.h"
#include "testkit/loopback_listener.h"

namespace jobq::testkit {

/// Listens on a free port of 127.0.0.1 and passes each connection on to the Unix socket of a database server.
class LocklessProxy {
 public:
  /// `socket` is the path of the server's Unix socket. Throws std::runtime_error.
  explicit LocklessProxy(std::string socket);
  /// Closes all connections.
  ~LocklessProxy();
  LocklessProxy(const LocklessProxy&) = delete;
  LocklessProxy& operator=(const LocklessProxy&) = delete;

  std::uint16_t port() const noexcept { return listener_.port(); }

  /// Chooses whether statements lose their locking words. Any thread.
  void strip(bool on) { strips_ = on; }
  /// Returns the number of statements that lost locking words.
  int stripped() const { return stripped_; }

 private:
  void accept();
  void connect(int client);
  void blank(std::string& packet);

  const std::string socket_;
  const Listener listener_;
  std::atomic<bool> strips_ = true;
  std::atomic<int> stripped_ = 0;
  Mutex mutex_;
  std::vector<int> sockets_ JOBQ_GUARDED_BY(mutex_);          // shut down at the end, closed after the threads
  std::vector<std::thread> threads_ JOBQ_GUARDED_BY(mutex_);  // two for each connection
  std::thread acceptor_;
};

}  // namespace jobq::testkit
