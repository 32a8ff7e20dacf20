#include "schema/shrink.h"

#include <string>

#include "schema/schema.h"

namespace jobq::sqlite {
namespace {

constexpr std::int64_t kFreePages = 1'000;
constexpr std::int64_t kFreeShare = 10;  // a page in so many
constexpr int kPagesACommit = 64;
constexpr int kCommitsACall = 8;
constexpr Millis kBetweenCalls{500};
/// Number of cut pages worth a checkpoint with a sync: 32 MB.
constexpr std::int64_t kCutPages = 8'192;

struct Space {
  std::int64_t pages;
  std::int64_t freePages;

  bool isWorthCutting() const noexcept { return freePages > kFreePages && freePages * kFreeShare > pages; }
};

Space spaceOf(Connection& connection) {
  return {connection.number("PRAGMA page_count"), connection.number("PRAGMA freelist_count")};
}

}  // namespace

// Only one of several sweeping threads continues.
bool Shrinker::isDue() {
  const std::int64_t now = toEpochMillis(clock_.now());
  std::int64_t next = nextAt_.load();
  return now >= next && nextAt_.compare_exchange_strong(next, now + kBetweenCalls.count());
}

void Shrinker::run() {
  if (pauses_ > 0 || !isDue()) return;
  try {
    if (!readers_.read([](Connection& connection) { return spaceOf(connection).isWorthCutting(); })) return;
    for (int i = 0; i < kCommitsACall; ++i) {
      if (!writer_.writeUnsynced([this](Step& step) { return cutSome(step); })) return;
    }
  } catch (const StorageError&) {
    // The writer has logged a permanent failure; after a full disk the next call tries again.
  }
}

// Returns whether more pages are to be cut. The pragma answers a row for each page cut off.
bool Shrinker::cutSome(Step& step) const {
  const Space before = spaceOf(step.db);
  if (!before.isWorthCutting()) return false;
  Query cut = step.db.query("PRAGMA incremental_vacuum");
  for (int i = 0; i < kPagesACommit && cut.next(); ++i) continue;
  const Space after = spaceOf(step.db);
  const bool more = after.pages < before.pages && after.isWorthCutting();
  if (!more || before.pages / kCutPages != after.pages / kCutPages) writer_.checkpointSoon();
  return more;
}

void adviseConversion(Connection& connection, const std::filesystem::path& file, Log& log) {
  if (connection.number("PRAGMA auto_vacuum") == kIncrementalVacuum || !spaceOf(connection).isWorthCutting()) return;
  log.write(LogLevel::information, "storage.space",
            file.string() +
                " has free space and was made by a server that could not give space back; to convert it, "
                "stop the server's clients, run `jobqctl backup DIR`, stop the server, and put the copy in "
                "its place (etc/operation.md, \"Backup\").");
}

}  // namespace jobq::sqlite
