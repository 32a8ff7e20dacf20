// What the memory storage remembers, and the steps that several verbs share. One mutex guards all of it: every verb is
// one critical section, which is what makes this the simplest correct storage, the judge of the others.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "jobq/storage.h"
#include "jobq/transitions.h"

namespace jobq::memory {

struct Row {
  JobSpec spec;
  Job job;
  std::int64_t rank = 0;
  std::uint64_t arrival = 0;
  std::uint64_t sequence = 0;    // order of submission, never changes
  std::optional<Instant> lease;  // end of a timed lease
  Instant deadline{};            // execution timeout of the running attempt
  bool pinned = false;           // /status?ttl= has set the expiry for good
  std::vector<Chunk> chunks;
  std::size_t taken = 0;  // chunks handed out
  std::deque<LogLine> log;
};

// One endpoint's line and counters.
struct Line {
  std::set<std::tuple<bool, std::int64_t, std::uint64_t, Row*>> waiting;  // lowPriority, rank, arrival
  std::map<std::uint64_t, Row*> rows;                                     // by sequence
  std::map<std::string, std::int64_t> lastRank;                           // by group
  EndpointCounts counts;
};

struct Promise {  // an idempotency record
  std::string bodyHash;
  JobId job;
};
using PromiseKey = std::tuple<EndpointId, std::string, std::string>;  // endpoint, API key, key

struct OutboxRow {
  Delivery delivery;
  std::uint64_t sequence = 0;
  Instant settledAt{};
};

struct State {
  explicit State(Clock& systemClock) : clock(systemClock) {}

  Clock& clock;
  Mutex mutex;

  std::unordered_map<JobId, std::unique_ptr<Row>> jobs JOBQ_GUARDED_BY(mutex);
  std::map<EndpointId, Line, std::less<>> lines JOBQ_GUARDED_BY(mutex);
  std::set<std::pair<Instant, Row*>> byExpiry JOBQ_GUARDED_BY(mutex);
  std::set<std::pair<Instant, Row*>> byDeadline JOBQ_GUARDED_BY(mutex);
  std::set<std::pair<Instant, Row*>> byLease JOBQ_GUARDED_BY(mutex);
  std::map<PromiseKey, Promise> promises JOBQ_GUARDED_BY(mutex);
  std::set<std::pair<Instant, PromiseKey>> promiseExpiry JOBQ_GUARDED_BY(mutex);
  std::map<std::string, OutboxRow, std::less<>> outbox JOBQ_GUARDED_BY(mutex);
  std::set<std::tuple<Instant, std::uint64_t, std::string>> byDue JOBQ_GUARDED_BY(mutex);
  std::uint64_t sequence JOBQ_GUARDED_BY(mutex) = 0;
  Swept unreported JOBQ_GUARDED_BY(mutex);  // what retire() did since the last sweep

  /// Every verb starts with this: drops what has expired, so that it is absent from here on. Returns now.
  Instant retire() JOBQ_REQUIRES(mutex);

  Row* find(const JobKey& key) JOBQ_REQUIRES(mutex);
  /// The row, if the job is IN_PROGRESS under this attempt.
  Row* held(const LeaseRef& lease) JOBQ_REQUIRES(mutex);

  void putInLine(Row& row) JOBQ_REQUIRES(mutex);
  void takeFromLine(Row& row) JOBQ_REQUIRES(mutex);
  /// Ends the running attempt's bookkeeping: deadline and lease.
  void stopRunning(Row& row) JOBQ_REQUIRES(mutex);
  /// Makes the job terminal and writes the owed webhook. The row is neither in line nor running any more.
  void end(Row& row, JobState state, Instant now) JOBQ_REQUIRES(mutex);
  /// Back in line with the old place; chunks and progress discarded.
  void sendBack(Row& row) JOBQ_REQUIRES(mutex);
  void setExpiry(Row& row, Instant expiry) JOBQ_REQUIRES(mutex);
  void rankAnew(Row& row, const QueuePolicy& policy, Instant now) JOBQ_REQUIRES(mutex);
  void erase(Row& row) JOBQ_REQUIRES(mutex);
};

}  // namespace jobq::memory
