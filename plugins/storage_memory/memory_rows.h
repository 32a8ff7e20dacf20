// The rows of the memory storage. A million jobs may wait, so a row is small: the values of claimed jobs are kept apart
// (Run), and bodies are shared, immutable text. An operation takes a reference to a body in the critical section and
// copies the body afterwards; an owed webhook shares the bodies with its job.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "jobq/call_id.h"
#include "jobq/job.h"
#include "jobq/storage.h"
#include "jobq/time.h"

namespace jobq::memory {

using Text = std::shared_ptr<const std::string>;  // null if absent

using ChunkList = std::vector<std::shared_ptr<const Chunk>>;

/// The chunks of attempts that go back to the queue. The list outlives the lock: an attempt may have a million chunks,
/// which are freed outside the lock.
using DiscardedChunks = std::list<ChunkList>;

struct Run {
  WorkerId worker;
  CallId claim = 0;
  std::uint64_t holder = 0;  // epoch of the holder of the running attempt
  std::optional<Instant> startedAt;
  std::optional<Instant> finishedAt;
  Instant deadline{};  // end of the running attempt, by the execution timeout
  Text output;
  std::string progress;
  std::string error;
  ChunkList chunks;
  std::size_t taken = 0;       // number of chunks already consumed
  CallId takenBy = 0;          // the last call that consumed chunks of the attempt
  std::size_t takenFrom = 0;   // number of the first chunk of that call
  std::list<LogLine> log;      // the last kMaxLogLines of all attempts
  std::uint64_t logLines = 0;  // of all attempts, with those that have left `log`
};

struct Endpoint;

struct Row {
  std::shared_ptr<const JobSpec> spec;
  Endpoint* endpoint = nullptr;
  JobState state = JobState::inQueue;
  bool isQueued = false;     // an expired queued job may have left the queue already
  bool expiryFixed = false;  // set by `/status?ttl=`; the end of the job keeps the expiry
  std::uint32_t attempt = 0;
  std::uint32_t losses = 0;
  std::uint32_t retries = 0;
  std::int64_t rank = 0;
  std::uint64_t number = 0;  // grows with every submission
  std::uint64_t arrival = 0;
  Instant submittedAt{};
  Instant queuedAt{};
  Instant expiresAt{};
  std::unique_ptr<Run> run;  // null until the job was claimed or has ended

  bool expired(Instant now) const { return expiresAt <= now; }
};

using Rows = std::list<Row>;
using Queue = std::map<std::pair<std::int64_t, std::uint64_t>, Row*>;  // by rank, arrival
using RowsByTime = std::set<std::pair<Instant, Row*>>;

struct IdempotencyEntry {  // an idempotency record
  std::string bodyHash;
  JobId job;
  Instant endsAt{};
};
using IdempotencyRef = std::pair<std::string, std::string>;  // id of the API key, idempotency key

struct Endpoint {
  Rows jobs;                                      // newest first
  std::array<Queue, 2> queues;                    // normal, lowPriority
  std::map<std::string, std::int64_t> lastRanks;  // by group
  std::map<IdempotencyRef, IdempotencyEntry> idempotencyKeys;
  std::uint64_t inProgress = 0;
  std::uint64_t completed = 0;
  std::uint64_t failed = 0;
  std::uint64_t retried = 0;
};

/// A job as a result, before its bodies are copied.
struct Found {
  Job job;
  Text output;
  std::shared_ptr<const JobSpec> spec{};  ///< set for within()

  /// Copies the bodies of `extent`, unless they have more than `mostBytes` bytes. Called outside the critical section.
  Job within(std::uint64_t mostBytes, JobExtent extent) && {
    const bool withInput = extent == JobExtent::input;
    job.apiKeyId = spec->apiKeyId;
    job.bodyBytes = (output ? output->size() : 0) + job.progress.size() + (withInput ? spec->input.size() : 0);
    if (output && job.bodyBytes <= mostBytes) job.output = *output;
    if (withInput && job.bodyBytes <= mostBytes) job.input = spec->input;
    if (job.bodyBytes > mostBytes) std::string().swap(job.progress);
    return std::move(job);
  }
};

inline Found found(const Row& row) {
  Found answer;
  Job& job = answer.job;
  job.id = row.spec->id;
  job.endpoint = row.spec->endpoint;
  job.state = row.state;
  job.attempt = row.attempt;
  job.losses = row.losses;
  job.retries = row.retries;
  job.lowPriority = row.spec->policy.lowPriority;
  job.submittedAt = row.submittedAt;
  job.queuedAt = row.queuedAt;
  job.expiresAt = row.expiresAt;
  if (!row.run) return answer;
  job.startedAt = row.run->startedAt;
  job.finishedAt = row.run->finishedAt;
  job.workerId = row.run->worker;
  job.progress = row.run->progress;
  job.error = row.run->error;
  answer.output = row.run->output;
  return answer;
}

}  // namespace jobq::memory
