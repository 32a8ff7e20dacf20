// The chunks, and the log lines, of running jobs.
#include <algorithm>
#include <iterator>

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

Leaf leaf(const Row& row, std::uint64_t from, std::size_t maxBytes) {
  Leaf leaf;
  leaf.page.state = row.state;
  leaf.page.attempt = row.attempt;
  leaf.page.next = from;
  if (!row.run) return leaf;
  const auto& all = row.run->chunks;
  std::size_t bytes = 0;
  for (; leaf.page.next < all.size(); ++leaf.page.next) {
    const auto& chunk = all[leaf.page.next];
    bytes += chunk->output.size() + chunk->metrics.size();
    if (!leaf.chunks.empty() && bytes > maxBytes) break;
    leaf.chunks.push_back(chunk);
  }
  leaf.page.more = leaf.page.next < all.size();
  return leaf;
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
  if (first > stored.size()) {
    throw Error("job " + row->spec->id + " has " + std::to_string(stored.size()) + " chunks; chunk " +
                std::to_string(first) + " does not follow");
  }
  const std::size_t known = std::min(stored.size() - first, shared.size());
  stored.insert(stored.end(), shared.begin() + static_cast<std::ptrdiff_t>(known), shared.end());
  return ReportResult::accepted;
}

std::optional<ChunkPage> Chunks::consume(const JobKey& key, std::size_t maxBytes) {
  Leaf taken;
  {
    Lock lock(s_.mutex);
    const Row* row = s_.find(key, s_.clock.now());
    if (row == nullptr) return std::nullopt;
    taken = leaf(*row, row->run ? row->run->taken : 0, maxBytes);
    if (row->run) row->run->taken = taken.page.next;
  }
  return std::move(taken).whole();
}

std::optional<ChunkPage> Chunks::read(const JobKey& key, std::uint64_t offset, std::size_t maxBytes) {
  Leaf read;
  {
    Lock lock(s_.mutex);
    const Row* row = s_.find(key, s_.clock.now());
    if (row == nullptr) return std::nullopt;
    read = leaf(*row, offset, maxBytes);
  }
  return std::move(read).whole();
}

ReportResult Chunks::appendLog(const LeaseRef& lease, std::vector<LogLine> lines) {
  std::list<LogLine> added(std::make_move_iterator(lines.begin()), std::make_move_iterator(lines.end()));
  Lock lock(s_.mutex);
  const Instant now = s_.clock.now();
  Row* row = s_.held(lease, now);
  if (row == nullptr) return ReportResult::staleAttempt;
  for (LogLine& line : added) line.at = now;
  auto& log = row->run->log;
  log.splice(log.end(), added);
  while (log.size() > kMaxLogLines) log.pop_front();
  return ReportResult::accepted;
}

std::optional<std::vector<LogLine>> Chunks::readLog(const JobKey& key) {
  Lock lock(s_.mutex);
  const Row* row = s_.find(key, s_.clock.now());
  if (row == nullptr) return std::nullopt;
  if (!row->run) return std::vector<LogLine>();
  return std::vector<LogLine>(row->run->log.begin(), row->run->log.end());
}

}  // namespace jobq::memory
