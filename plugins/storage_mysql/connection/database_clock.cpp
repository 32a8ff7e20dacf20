#include "connection/database_clock.h"

#include <algorithm>
#include <string>

namespace jobq::mysql {
namespace {

constexpr std::int64_t kMeasureEvery = 15'000;
constexpr int kFollowPart = 10;  // the difference changes by a tenth of the passing time
constexpr Millis kNotableStep{2'000};
constexpr Millis kNotableLag{1'000};

/// Returns the part of `distance` followed in the time `passed`.
Millis followed(Millis distance, Millis passed) {
  const Millis most = std::max(passed, Millis(0)) / kFollowPart;
  return std::clamp(distance, -most, most);
}

/// Returns the rest of the lag stored by a node, or 0. `raw` is the time of the database.
Millis storedLag(Connection& connection, Instant raw) {
  Query query = connection.query(
      "SELECT l.value, a.value FROM counted AS l JOIN counted AS a ON a.name = 'clock_lag_at' "
      "WHERE l.name = 'clock_lag'");
  if (!query.next()) return Millis(0);
  const Millis lag(query.integer(0));
  return lag - followed(lag, raw - query.instant(1));
}

}  // namespace

Millis DatabaseClock::offsetAt(Instant host) const { return from_ + followed(target_ - from_, host - since_); }

Instant DatabaseClock::now() const {
  const Instant host = host_.now();
  const Lock lock(mutex_);
  latest_ = std::max(latest_, host + offsetAt(host));
  return latest_;
}

Millis DatabaseClock::open(Connection& connection) {
  const Millis measured = measureOffset(connection, host_);
  const Millis lag = storedLag(connection, host_.now() + measured);
  hasStoredLag_ = lag != Millis(0);
  const Instant host = host_.now();
  measureAt_ = toEpochMillis(host) + kMeasureEvery;
  const Lock lock(mutex_);
  target_ = measured;
  from_ = measured + lag;
  since_ = host;
  return measured;
}

void DatabaseClock::measureWhenDue(Connection& connection) {
  const std::int64_t due = toEpochMillis(host_.now());
  std::int64_t next = measureAt_;
  if (next > due || !measureAt_.compare_exchange_strong(next, due + kMeasureEvery)) return;
  const Millis measured = measureOffset(connection, host_);
  const Instant host = host_.now();
  Millis step{0};
  Millis lag{0};
  {
    const Lock lock(mutex_);
    step = measured - target_;
    from_ = offsetAt(host);
    since_ = host;
    target_ = measured;
    lag = from_ - target_;
  }
  if (std::chrono::abs(step) >= kNotableStep) {
    log_.write(LogLevel::warning, "storage.clock",
               "the clock of the database server was set " + std::string(step > Millis(0) ? "forward" : "back") +
                   " by " + std::to_string(std::chrono::abs(step).count() / 1'000) +
                   " s, or that of this host the other way: the time of the storage follows by a tenth of the passing "
                   "time; set both clocks by NTP");
  }
  storeLag(connection, lag);
}

// Most of the time there is no lag, and no value is stored. A conflict with another node is harmless, because both
// store the same value.
void DatabaseClock::storeLag(Connection& connection, Millis lag) {
  const bool isNotable = std::chrono::abs(lag) >= kNotableLag;
  if (!isNotable && !hasStoredLag_.exchange(false)) return;
  if (isNotable) hasStoredLag_ = true;
  try {
    connection
        .query(
            "INSERT INTO counted (name, value) VALUES ('clock_lag', ?), ('clock_lag_at', ?) "
            "ON DUPLICATE KEY UPDATE value = VALUES(value)")
        .bind(isNotable ? lag.count() : 0, now() - lag)
        .run();
  } catch (const MysqlError& error) {
    if (!error.isConflict()) throw;
  }
}

}  // namespace jobq::mysql
