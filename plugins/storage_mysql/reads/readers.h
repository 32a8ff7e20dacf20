// The connections for reads. A read of several statements is a snapshot (Snapshot).
#pragma once

#include <cstddef>
#include <list>
#include <memory>
#include <utility>
#include <vector>

#include "connection/connection.h"
#include "connection/statement.h"
#include "jobq/mutex.h"

namespace jobq::mysql {

/// A bounded number of connections, opened on demand and handed out in the order of the callers' arrival. Any thread
/// may read. The connector outlives the object.
class Readers {
 public:
  Readers(const Connector& connector, std::size_t connections) : connector_(connector), free_(connections) {}
  Readers(const Readers&) = delete;
  Readers& operator=(const Readers&) = delete;

  /// Calls `operation(Connection&)` and returns its result. A read may be repeated: a read changes at most the beat of
  /// a node and the lag of the clock, and a repetition writes the same values. The call is therefore made again on a
  /// new connection if the connection is dead or its generation has ended. Throws the exception of `operation`, or
  /// StorageError if no connection is free for ten seconds.
  template <class Operation>
  auto read(Operation&& operation) {
    Place place(*this);
    try {
      return operation(place.connection());
    } catch (const MysqlError& error) {
      if (!error.isLost()) throw;
      place.drop(error);
    }
    try {
      return operation(place.connection());
    } catch (const MysqlError& error) {
      if (error.isLost()) place.drop(error);
      throw;
    }
  }

 private:
  /// The right to use one connection.
  class Place {
   public:
    explicit Place(Readers& readers) : readers_(readers), connection_(readers.awaitPlace()) {}
    ~Place() { readers_.releasePlace(std::move(connection_)); }
    Place(const Place&) = delete;
    Place& operator=(const Place&) = delete;

    Connection& connection() {
      if (connection_ && !readers_.connector_.isCurrent(*connection_)) connection_.reset();
      if (!connection_) connection_ = readers_.connector_.open(Isolation::repeatableRead);
      return *connection_;
    }
    /// Closes the connection. The death of a single connection does not concern the others: the server closes idle
    /// connections. A server without writes ends the generation.
    void drop(const MysqlError& error) {
      if (connection_ && error.isOfReplica()) readers_.connector_.leave(*connection_);
      connection_.reset();
    }

   private:
    Readers& readers_;
    std::unique_ptr<Connection> connection_;
  };
  struct Waiter {
    Condition called;
    bool isCalled = false;
  };

  /// Waits for a free place. Returns an open connection, or null if the caller has to open one.
  std::unique_ptr<Connection> awaitPlace();
  void releasePlace(std::unique_ptr<Connection> connection);

  const Connector& connector_;
  Mutex mutex_;
  std::size_t free_ JOBQ_GUARDED_BY(mutex_);  // places neither used nor promised to a waiter
  std::list<Waiter*> waiters_ JOBQ_GUARDED_BY(mutex_);
  std::vector<std::unique_ptr<Connection>> idle_ JOBQ_GUARDED_BY(mutex_);
};

/// Makes the reads within the scope of the object a single snapshot. Only for connections of Readers.
class Snapshot {
 public:
  explicit Snapshot(Connection& connection) : connection_(connection) {
    connection_.execute("START TRANSACTION READ ONLY");
  }
  ~Snapshot();
  Snapshot(const Snapshot&) = delete;
  Snapshot& operator=(const Snapshot&) = delete;

 private:
  Connection& connection_;
};

}  // namespace jobq::mysql
