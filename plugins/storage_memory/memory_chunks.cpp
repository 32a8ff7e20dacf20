// The chunks, and the log lines, of running jobs.
#include <algorithm>
#include <iterator>
#include <limits>

#include "memory_stores.h"

namespace jobq::memory {
namespace {

/// A page before its chunks are copied.
struct Leaf {
  std::vector<std::shared_ptr<const Chunk>> chunks;
  ChunkPage page;

  /// Copies the chunks. Called outside the critical section.
  ChunkPage whole() && {
    page.chunks.reserve(chunks.size());
    for (const auto& chunk : chunks) page.chunks.push_back(*chunk);
    return std::move(page);
  }
};

/// The chunks of an attempt from number `from` up to number `to`, without `to`.
struct Range {
  std::size_t from;
  std::size_t to;
};

constexpr std::size_t kAnyBytes = std::numeric_limits<std::size_t>::max();

/// Returns the chunks of the range, up to `maxBytes` bytes. The first chunk is returned even if larger.
Leaf leaf(const Row& row, const Range& range, std::size_t maxBytes) {
  Leaf leaf;
  leaf.page.state = row.state;
  leaf.page.attempt = row.attempt;
  leaf.page.next = range.from;
  if (!row.run) return leaf;
  const auto& all = row.run->chunks;
  std::size_t bytes = 0;
  for (; leaf.page.next < range.to; ++leaf.page.next) {
    const auto& chunk = all[leaf.page.next];
    bytes += chunk->output.size() + chunk->metrics.size();
    if (!leaf.chunks.empty() && bytes > maxBytes) break;
    leaf.chunks.push_back(chunk);
  }
  leaf.page.more = leaf.page.next < all.size();
  return leaf;
}

/// Returns the page of the last call again if that call has the id; otherwise returns the next page and moves the
/// cursor behind the page.
Leaf consumeNow(Row& row, std::size_t maxBytes, CallId id) {
  if (!row.run) return leaf(row, {0, 0}, maxBytes);
  Run& run = *row.run;
  if (run.takenBy == id) return leaf(row, {run.takenFrom, run.taken}, kAnyBytes);
  Leaf next = leaf(row, {run.taken, run.chunks.size()}, maxBytes);
  if (next.chunks.empty()) return next;
  run.takenBy = id;
  run.takenFrom = run.taken;
  run.taken = next.page.next;
  return next;
}

/// Throws Error if the store has fewer than `first` pieces: the caller has left some out.
void checkNothingLeftOut(const Row& row, const char* pieces, std::uint64_t stored, std::uint64_t first) {
  if (first <= stored) return;
  throw Error("job " + row.spec->id + " has " + std::to_string(stored) + " " + pieces + "; number " +
              std::to_string(first) + " does not follow");
}

}  // namespace

ReportResult Chunks::append(const LeaseRef& lease, std::uint64_t first, std::vector<Chunk> chunks) {
  std::vector<std::shared_ptr<const Chunk>> shared;
  shared.reserve(chunks.size());
  for (Chunk& chunk : chunks) shared.push_back(std::make_shared<const Chunk>(std::move(chunk)));
  Lock lock(s_.mutex);
  Row* row = s_.held(lease, s_.clock.now());
  if (row == nullptr) return ReportResult::staleAttempt;
  auto& stored = row->run->chunks;
  checkNothingLeftOut(*row, "chunks", stored.size(), first);
  const std::size_t known = std::min(stored.size() - first, shared.size());
  stored.insert(stored.end(), shared.begin() + static_cast<std::ptrdiff_t>(known), shared.end());
  return ReportResult::accepted;
}

std::optional<ChunkPage> Chunks::consume(const JobKey& key, std::size_t maxBytes, CallId id) {
  Leaf taken;
  {
    Lock lock(s_.mutex);
    Row* row = s_.find(key, s_.clock.now());
    if (row == nullptr) return std::nullopt;
    taken = consumeNow(*row, maxBytes, id);
  }
  return std::move(taken).whole();
}

std::optional<ChunkPage> Chunks::read(const JobKey& key, std::uint64_t offset, std::size_t maxBytes) {
  Leaf read;
  {
    Lock lock(s_.mutex);
    const Row* row = s_.find(key, s_.clock.now());
    if (row == nullptr) return std::nullopt;
    read = leaf(*row, {offset, row->run ? row->run->chunks.size() : 0}, maxBytes);
  }
  return std::move(read).whole();
}

ReportResult Chunks::appendLog(const LeaseRef& lease, std::uint64_t first, std::vector<LogLine> lines) {
  std::list<LogLine> added(std::make_move_iterator(lines.begin()), std::make_move_iterator(lines.end()));
  Lock lock(s_.mutex);
  const Instant now = s_.clock.now();
  Row* row = s_.held(lease, now);
  if (row == nullptr) return ReportResult::staleAttempt;
  checkNothingLeftOut(*row, "log lines", row->run->logLines, first);
  for (std::uint64_t known = row->run->logLines - first; known > 0 && !added.empty(); --known) added.pop_front();
  for (LogLine& line : added) line.at = now;
  auto& log = row->run->log;
  row->run->logLines += added.size();
  log.splice(log.end(), added);
  while (log.size() > kMaxLogLines) log.pop_front();
  return ReportResult::accepted;
}

std::optional<LogPart> Chunks::readLog(const JobKey& key, const LogPosition& from, std::uint64_t maxBytes) {
  LogPartBuilder builder(from, maxBytes);
  Lock lock(s_.mutex);
  const Row* row = s_.find(key, s_.clock.now());
  if (row == nullptr) return std::nullopt;
  if (!row->run) return LogPart{};
  for (const LogLine& line : row->run->log) {
    if (line.at >= from.at && !builder.add(line)) break;
  }
  return std::move(builder).finish();
}

}  // namespace jobq::memory
