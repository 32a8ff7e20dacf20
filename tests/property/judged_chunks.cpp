#include "judged_stores.h"

namespace jobq::model {

ReportResult JudgedChunks::append(const LeaseRef& lease, std::uint64_t first, std::vector<Chunk> chunks) {
  return compared_.askUnsynced(
      "append to " + lease.job + " from " + std::to_string(first),
      [&] { return compared_.real().chunks().append(lease, first, chunks); },
      [&](StorageModel& model) { return model.chunks().append(lease, first, chunks); });
}

std::optional<ChunkPage> JudgedChunks::consume(const JobKey& key, std::size_t maxBytes, CallId id) {
  auto page = compared_.ask(
      "consume from " + key.id, [&] { return compared_.real().chunks().consume(key, maxBytes, id); },
      [&](StorageModel& model) { return model.chunks().consume(key, maxBytes, id); });
  if (page && !page->chunks.empty()) compared_.noteSynced();
  noteShown(key, page);
  return page;
}

std::optional<ChunkPage> JudgedChunks::read(const JobKey& key, std::uint64_t offset, std::size_t maxBytes) {
  auto page = compared_.ask(
      "read of " + key.id, [&] { return compared_.real().chunks().read(key, offset, maxBytes); },
      [&](StorageModel& model) { return model.chunks().read(key, offset, maxBytes); });
  noteShown(key, page);
  return page;
}

void JudgedChunks::noteShown(const JobKey& key, const std::optional<ChunkPage>& page) {
  if (page && page->state != JobState::inQueue && page->state != JobState::inProgress) compared_.noteShown(key.id);
}

ReportResult JudgedChunks::appendLog(const LeaseRef& lease, std::uint64_t first, std::vector<LogLine> lines) {
  return compared_.askUnsynced(
      "log of " + lease.job, [&] { return compared_.real().chunks().appendLog(lease, first, lines); },
      [&](StorageModel& model) { return model.chunks().appendLog(lease, first, lines); });
}

std::optional<LogPart> JudgedChunks::readLog(const JobKey& key, const LogPosition& from, std::uint64_t maxBytes) {
  return compared_.ask(
      "log of " + key.id, [&] { return compared_.real().chunks().readLog(key, from, maxBytes); },
      [&](StorageModel& model) -> std::optional<LogPart> {
        auto whole = model.chunks().readLog(key);
        if (!whole) return std::nullopt;
        LogPartBuilder builder(from, maxBytes);
        for (LogLine& line : whole->lines) {
          if (!builder.add(std::move(line))) break;
        }
        return std::move(builder).finish();
      });
}

}  // namespace jobq::model
