#include "removal_hold.h"

#include <algorithm>
#include <optional>
#include <string>

namespace jobq::sqlite {
namespace {

constexpr Millis kHold{3'600'000};  // also the age of the newest job from which a start is doubtful
constexpr Millis kSmallLead{60'000};

/// An opened database has listed jobs only (`job_listing.h`).
bool hasExpired(Connection& connection, Instant now) {
  Query query = connection.query(
      "SELECT 1 FROM job INDEXED BY job_expiry WHERE listed = 1 AND expires_at <= ?1 ORDER BY expires_at LIMIT 1");
  return query.bind(now).next();
}

/// Returns the time at which the last job was submitted or ended.
Instant newestJob(Connection& connection) {
  Query query = connection.query(
      "SELECT max(submitted_at, ifnull(finished_at, 0)) FROM job WHERE num = (SELECT max(num) FROM job)");
  return query.next() ? query.instant(0) : Instant::max();
}

}  // namespace

void RemovalHold::open(Connection& connection, const std::filesystem::path& file, Log& log) {
  const Instant now = clock_.now();
  if (clock_.lead() || !hasExpired(connection, now)) return;
  const Instant newest = newestJob(connection);
  const Instant held = fromEpochMillis(connection.number("SELECT value FROM number WHERE name = 'held_until'"));
  const bool goesOn = now < held && held <= now + kHold;
  if (!goesOn && now - std::max(newest, std::min(held, now)) <= kHold) return;
  const Instant end = goesOn ? held : now + kHold;
  connection.query("INSERT OR REPLACE INTO number (name, value) VALUES ('held_until', ?1)").bind(end).run();
  end_ = end;
  log.write(LogLevel::warning, "storage.clock",
            "no service keeps the clock of this host right, and the newest job in " + file.string() + " is " +
                std::to_string((now - newest).count() / 3'600'000) +
                " h old by it: nothing that has expired is removed for " +
                std::to_string((end - now + Millis(59'999)).count() / 60'000) +
                " minutes; if the clock is wrong, stop the server, set the clock, and start the server again");
}

bool RemovalHold::isOver() {
  if (end_.load() == Instant::min()) return true;
  const std::optional<Millis> lead = clock_.lead();
  if (lead ? *lead > kSmallLead : clock_.now() < end_.load()) return false;
  end_ = Instant::min();
  return true;
}

}  // namespace jobq::sqlite
