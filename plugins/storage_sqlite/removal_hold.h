// A pause of removals after a start under a clock that may be far ahead.
//
// After a pause of days, jobs and results have expired; under a clock that was set wrong at the boot, the same rows are
// still wanted. SQLite has no second clock that could tell, but the kernel knows whether a service keeps the time
// right. Without such a service the sweeps remove nothing for an hour, so an administrator can set the clock. Expired
// jobs are absent meanwhile, as before any sweep.
#pragma once

#include <atomic>
#include <filesystem>

#include "connection.h"
#include "jobq/log.h"
#include "jobq/time.h"

namespace jobq::sqlite {

/// Any thread may call isOver(). The clock outlives the object.
class RemovalHold {
 public:
  explicit RemovalHold(const Clock& clock) : clock_(clock) {}

  /// Begins the hold if nobody knows the right time, a job has expired, and the newest job is over an hour older than
  /// the clock. A pause of the server is held once: a restart within the hour continues the hold, a later one begins
  /// none. Writes the end of the hold into the database, and a warning into the log. Called once, after the jobs
  /// were listed. Throws SqliteError.
  void open(Connection& connection, const std::filesystem::path& file, Log& log);

  /// Returns false while a sweep must remove nothing: for an hour, or until a service has confirmed the time. If the
  /// service has set the time back, the clock of this process is still ahead, and the hold lasts until a restart.
  bool isOver();

 private:
  const Clock& clock_;
  std::atomic<Instant> end_ = Instant::min();
};

}  // namespace jobq::sqlite
