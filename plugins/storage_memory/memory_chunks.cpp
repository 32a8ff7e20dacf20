#include <algorithm>
#include <iterator>

#include "memory_faces.h"

namespace jobq::memory {
namespace {

// The chunks from `from` on that fit, at least one if there is one.
ChunkPage page(const Row& row, std::size_t from, std::size_t maxBytes) {
  ChunkPage page;
  std::size_t bytes = 0;
  std::size_t at = std::min(from, row.chunks.size());
  for (; at < row.chunks.size(); ++at) {
    const Chunk& chunk = row.chunks[at];
    bytes += chunk.output.size() + chunk.metrics.size();
    if (!page.chunks.empty() && bytes > maxBytes) break;
    page.chunks.push_back(chunk);
  }
  page.next = at;
  page.more = at < row.chunks.size();
  page.state = row.job.state;
  page.attempt = row.job.attempt;
  return page;
}

}  // namespace

Fenced Chunks::append(const LeaseRef& lease, std::vector<Chunk> chunks) {
  Lock lock(s_.mutex);
  s_.retire();
  Row* row = s_.held(lease);
  if (row == nullptr) return Fenced::stale;
  std::move(chunks.begin(), chunks.end(), std::back_inserter(row->chunks));
  return Fenced::accepted;
}

std::optional<ChunkPage> Chunks::take(const JobKey& key, std::size_t maxBytes) {
  Lock lock(s_.mutex);
  s_.retire();
  Row* row = s_.find(key);
  if (row == nullptr) return std::nullopt;
  ChunkPage taken = page(*row, row->taken, maxBytes);
  row->taken = taken.next;
  return taken;
}

std::optional<ChunkPage> Chunks::read(const JobKey& key, std::uint64_t offset, std::size_t maxBytes) {
  Lock lock(s_.mutex);
  s_.retire();
  const Row* row = s_.find(key);
  if (row == nullptr) return std::nullopt;
  return page(*row, offset, maxBytes);
}

Fenced Chunks::appendLog(const LeaseRef& lease, std::vector<LogLine> lines) {
  Lock lock(s_.mutex);
  const Instant now = s_.retire();
  Row* row = s_.held(lease);
  if (row == nullptr) return Fenced::stale;
  for (LogLine& line : lines) {
    line.at = now;
    row->log.push_back(std::move(line));
    if (row->log.size() > kMaxLogLines) row->log.pop_front();
  }
  return Fenced::accepted;
}

std::optional<std::vector<LogLine>> Chunks::readLog(const JobKey& key) {
  Lock lock(s_.mutex);
  s_.retire();
  const Row* row = s_.find(key);
  if (row == nullptr) return std::nullopt;
  return std::vector<LogLine>(row->log.begin(), row->log.end());
}

}  // namespace jobq::memory
