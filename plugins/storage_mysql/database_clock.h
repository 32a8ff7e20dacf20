// The clock of the storage: the clock of the database.
//
// Asking the database for the time at each step would cost a round trip, so a node computes the time: the clock of its
// own host plus the difference to the clock of the database, measured when the storage is opened and every 15 s
// afterwards. Nodes whose hosts have different clocks agree, because each corrects its host by its own difference. The
// error of a measurement is at most half a round trip, some milliseconds, and far below the life of a lease.
//
// The measurement is a function of its own (database_offset.cpp). The conformance tests link another one, which always
// finds a difference of 0: they move the clock of the host by hand and expect the storage to follow.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

#include "connection.h"
#include "jobq/time.h"

namespace jobq::mysql {

/// Returns the clock of the database minus `host`. Throws MysqlError.
Millis measureOffset(Connection& connection, const Clock& host);

/// Computes the present time of the database. Any thread.
class DatabaseClock {
 public:
  /// `host` outlives the object. The difference is 0 until the first measurement.
  explicit DatabaseClock(const Clock& host) : host_(host) {}

  /// Returns the present time. The time never goes back: after a step back of the database's clock the time stands
  /// still until the clock has caught up.
  Instant now() const;

  /// Measures the difference if the last measurement is older than 15 s. Throws MysqlError.
  void measureWhenDue(Connection& connection);

 private:
  const Clock& host_;
  std::atomic<std::int64_t> offset_ = 0;
  std::atomic<std::int64_t> measureAt_ = 0;  // on the steady clock, in milliseconds
  mutable std::atomic<std::int64_t> latest_ = 0;
};

}  // namespace jobq::mysql
