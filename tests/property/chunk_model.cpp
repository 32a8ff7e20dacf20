#include "chunk_model.h"

#include <utility>

namespace jobq::model {

ReportResult ChunkModel::append(const LeaseRef& lease, std::uint64_t first, const std::vector<Chunk>& chunks) {
  Entry* entry = state_.held(lease);
  if (entry == nullptr) return ReportResult::staleAttempt;
  for (std::size_t i = entry->chunks.size() - first; i < chunks.size(); ++i) entry->chunks.push_back(chunks[i]);
  return ReportResult::accepted;
}

std::optional<ChunkPage> ChunkModel::read(const JobKey& key, std::uint64_t offset, std::size_t maxBytes) const {
  const Entry* entry = state_.find(key);
  if (entry == nullptr) return std::nullopt;
  ChunkPage page{{}, offset, false, entry->job.state, entry->job.attempt};
  std::size_t bytes = 0;
  for (; page.next < entry->chunks.size(); ++page.next) {
    const Chunk& chunk = entry->chunks[page.next];
    bytes += chunk.output.size() + chunk.metrics.size();
    if (!page.chunks.empty() && bytes > maxBytes) break;
    page.chunks.push_back(chunk);
  }
  page.more = page.next < entry->chunks.size();
  return page;
}

std::optional<ChunkPage> ChunkModel::consume(const JobKey& key, std::size_t maxBytes, CallId id) {
  Entry* entry = state_.find(key);
  if (entry == nullptr) return std::nullopt;
  if (entry->takenBy == id) return consumedAgain(*entry);
  auto page = read(key, entry->taken, maxBytes);
  if (page->chunks.empty()) return page;
  entry->takenBy = id;
  entry->takenFrom = entry->taken;
  entry->taken = page->next;
  return page;
}

ChunkPage ChunkModel::consumedAgain(const Entry& entry) {
  ChunkPage page{{}, entry.taken, entry.taken < entry.chunks.size(), entry.job.state, entry.job.attempt};
  for (std::size_t i = entry.takenFrom; i < entry.taken; ++i) page.chunks.push_back(entry.chunks[i]);
  return page;
}

ReportResult ChunkModel::appendLog(const LeaseRef& lease, std::uint64_t first, const std::vector<LogLine>& lines) {
  Entry* entry = state_.held(lease);
  if (entry == nullptr) return ReportResult::staleAttempt;
  for (std::size_t i = entry->logLines - first; i < lines.size(); ++i, ++entry->logLines) {
    entry->log.push_back(lines[i]);
    entry->log.back().at = state_.now;
  }
  if (entry->log.size() > kMaxLogLines) {
    entry->log.erase(entry->log.begin(), entry->log.end() - static_cast<std::ptrdiff_t>(kMaxLogLines));
  }
  return ReportResult::accepted;
}

std::optional<LogPart> ChunkModel::readLog(const JobKey& key) const {
  const Entry* entry = state_.find(key);
  return entry != nullptr ? std::optional(LogPart{entry->log, false}) : std::nullopt;
}

}  // namespace jobq::model
