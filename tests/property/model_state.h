// The content of the modelled storage: plain lists and maps, shared by the models of the stores.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "jobq/call_id.h"
#include "jobq/job.h"
#include "jobq/storage.h"
#include "jobq/time.h"
#include "jobq/transitions.h"

namespace jobq::model {

/// The text of an error worded by the store: any text except an empty one is right.
inline constexpr char kAnyError[] = "*";

struct Entry {
  JobSpec spec;
  Job job;  // the result of JobModel::find()
  std::int64_t rank = 0;
  std::uint64_t arrival = 0;
  bool expiryFixed = false;
  Instant deadline{};
  CallId claim = 0;
  std::uint64_t holder = 0;  // epoch of the life that claimed last
  std::vector<Chunk> chunks;
  std::size_t taken = 0;
  CallId takenBy = 0;  // the last call that consumed chunks of the attempt
  std::size_t takenFrom = 0;
  std::vector<LogLine> log;
  std::uint64_t logLines = 0;  // lines of all attempts, also lines dropped from `log`
};

struct Owed {
  Delivery delivery;
  Instant owedAt{};
  Instant settledAt{};
};

/// The position of a queued job among the jobs of its endpoint: (lowPriority, rank, arrival).
using QueuePlace = std::tuple<bool, std::int64_t, std::uint64_t>;

/// The end of the counted part of a queue at the moment of a question about a position.
struct CountedPart {
  EndpointId endpoint;
  std::size_t most = 0;
  Instant asOf{};
  QueuePlace end;  ///< position of the queued job number `most`
};

struct IdempotencyEntry {
  Idempotency words;
  JobId job;
  Instant endsAt{};
};

/// An expired job is absent, also before the sweep. Confined to one thread.
struct ModelState {
  struct Counters {
    std::uint64_t completed = 0;
    std::uint64_t failed = 0;
    std::uint64_t retried = 0;
  };

  /// Returns the job; null if the job is absent.
  const Entry* find(std::string_view id) const;
  Entry* find(std::string_view id);
  const Entry* find(const JobKey& key) const;
  Entry* find(const JobKey& key);
  /// Returns the running job of exactly this attempt; null without such a job.
  Entry* held(const LeaseRef& lease);
  /// Returns the queued jobs of an endpoint in the order of their claims: (lowPriority, rank, arrival).
  std::vector<const Entry*> queue(std::string_view endpoint) const;
  static QueuePlace placeOf(const Entry& entry) { return {entry.job.lowPriority, entry.rank, entry.arrival}; }
  /// Returns true if a job of the endpoint is queued, also an expired job before the sweep.
  bool hasQueue(std::string_view endpoint) const;
  /// Returns true if an expired job still waits for its sweep: the counters may or may not include the job.
  bool hasUnswept(std::string_view endpoint) const;
  /// Ends a job. The same step owes the webhook.
  void end(Entry& entry, Trigger trigger, std::string error, std::string output);
  void removeIf(const std::function<bool(const Entry&)>& goes);

  Instant now{};               ///< set by the caller before each operation
  std::vector<Entry> entries;  ///< in the order of submission, expired jobs included until their sweep
  std::vector<Owed> outbox;    ///< oldest first
  std::map<std::pair<EndpointId, std::string>, std::int64_t> lastRanks;
  std::map<std::tuple<EndpointId, std::string, std::string>, IdempotencyEntry> idempotencyKeys;
  std::map<EndpointId, Counters, std::less<>> counters;
  std::uint64_t arrivals = 0;
  std::uint64_t epochs = 0;          ///< number of lives so far
  std::uint64_t life = 0;            ///< epoch of the present life
  std::vector<CountedPart> counted;  ///< counted parts of the last second
};

}  // namespace jobq::model
