// What the memory storage remembers of a job. A million of them may wait, so a row is small: what only a job that was
// taken has is apart (Run), and bodies are shared, immutable text. A verb takes a reference to them in its critical
// section and copies afterwards; an owed webhook shares them with its job.
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

#include "jobq/job.h"
#include "jobq/storage.h"
#include "jobq/time.h"

namespace jobq::memory {

using Text = std::shared_ptr<const std::string>;  // null for none

struct Run {
  WorkerId worker;
  std::optional<Instant> startedAt;
  std::optional<Instant> finishedAt;
  Instant deadline{};                // of the running attempt, by its execution timeout
  std::optional<Instant> leaseEnds;  // of a timed lease
  Text output;
  std::string progress;
  std::string error;
  std::vector<std::shared_ptr<const Chunk>> chunks;
  std::size_t taken = 0;  // chunks handed out
  std::list<LogLine> log;
};

struct Endpoint;

struct Row {
  std::shared_ptr<const JobSpec> spec;
  Endpoint* endpoint = nullptr;
  JobState state = JobState::inQueue;
  bool inLine = false;       // an expired job that waited may be out of line already
  bool expiryFixed = false;  // /status?ttl= has set it for good
  std::uint32_t attempt = 0;
  std::uint32_t losses = 0;
  std::uint32_t retries = 0;
  std::int64_t rank = 0;
  std::uint64_t number = 0;  // grows with every submission
  std::uint64_t arrival = 0;
  Instant submittedAt{};
  Instant queuedAt{};
  Instant expiresAt{};
  std::unique_ptr<Run> run;  // null until the job was taken or has ended

  bool expired(Instant now) const { return expiresAt <= now; }
};

using Rows = std::list<Row>;
using Line = std::map<std::pair<std::int64_t, std::uint64_t>, Row*>;  // rank, arrival
using RowsByTime = std::set<std::pair<Instant, Row*>>;

struct IdempotencyEntry {  // an idempotency record
  std::string bodyHash;
  JobId job;
  Instant endsAt{};
};
using PromiseKey = std::pair<std::string, std::string>;  // API key, the caller's key

struct Endpoint {
  Rows jobs;                                      // newest first
  std::array<Line, 2> lines;                      // normal, lowPriority
  std::map<std::string, std::int64_t> lastRanks;  // by group
  std::map<PromiseKey, IdempotencyEntry> idempotencyKeys;
  std::uint64_t inProgress = 0;
  std::uint64_t completed = 0;
  std::uint64_t failed = 0;
  std::uint64_t retried = 0;
};

/// A job as an answer, its output not copied yet.
struct Found {
  Job job;
  Text output;

  /// Outside the critical section.
  Job whole() && {
    if (output) job.output = *output;
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
