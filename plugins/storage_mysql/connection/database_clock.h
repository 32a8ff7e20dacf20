// The clock of the storage: follows the clock of the database slowly.
//
// Asking the database for the time at each step would cost a round trip, so a node computes the time: the clock of the
// host plus the difference to the clock of the database, measured when the storage is opened and every 15 s afterwards.
// Nodes whose hosts have different clocks agree, because each node adds the difference of its host. The error of a
// measurement is at most half a round trip, some milliseconds, and far below the life of a lease.
//
// A step of the database's clock must end no job: the difference changes by a tenth of the passing time at most, in
// both directions. Meanwhile the time of the storage differs from the clock of the database, for all nodes alike: each
// node stores this difference, and a node that opens the storage begins with it. Leases go by the same time.
//
// The measurement is a separate function (database_offset.cpp). The conformance tests link a replacement, which reads
// the difference from a row of the database, or finds 0: the tests move the clock of the host by hand and expect the
// storage to follow.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

#include "connection/connection.h"
#include "jobq/log.h"
#include "jobq/mutex.h"
#include "jobq/time.h"

namespace jobq::mysql {

/// Returns the clock of the database minus `host`. Throws MysqlError.
Millis measureOffset(Connection& connection, const Clock& host);

/// Computes the present time of the database. Any thread.
class DatabaseClock {
 public:
  /// `host` and `log` outlive the object. The difference is 0 until the first measurement.
  DatabaseClock(const Clock& host, Log& log) : host_(host), log_(log) {}

  /// Returns the current time, which never goes back.
  Instant now() const;

  /// Measures for the first time, and begins with the difference of the other nodes. Returns the clock of the database
  /// minus the host's. The schema exists, and no other thread uses the clock. Throws MysqlError.
  Millis open(Connection& connection);

  /// Measures the difference if the last measurement is older than 15 s. The connection has no transaction. Throws
  /// MysqlError.
  void measureWhenDue(Connection& connection);

 private:
  /// The difference to the host at the moment `host` of its clock.
  Millis offsetAt(Instant host) const JOBQ_REQUIRES(mutex_);
  void storeLag(Connection& connection, Millis lag);

  const Clock& host_;
  Log& log_;
  std::atomic<std::int64_t> measureAt_ = 0;  // by the clock of the host, in milliseconds
  std::atomic<bool> hasStoredLag_ = false;
  mutable Mutex mutex_;
  Millis from_ JOBQ_GUARDED_BY(mutex_){0};    // the difference at the last measurement,
  Instant since_ JOBQ_GUARDED_BY(mutex_){};   // moment by the clock of the host,
  Millis target_ JOBQ_GUARDED_BY(mutex_){0};  // and the measured difference
  mutable Instant latest_ JOBQ_GUARDED_BY(mutex_){};
};

}  // namespace jobq::mysql
