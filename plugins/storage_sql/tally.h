// Numbers of jobs by endpoint and state, and of owed webhooks by endpoint.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string_view>

#include "jobq/job.h"
#include "jobq/job_store.h"
#include "jobq/time.h"

namespace jobq::sql {

inline constexpr std::size_t kStates = 6;

/// Most expired, unswept jobs subtracted by counts(): the call stays cheap after a long time without a sweep. Beyond
/// the bound the counts are too high until the sweep has caught up.
inline constexpr int kExpiredBound = 10'000;

/// Numbers of an endpoint, or changes of such numbers. Not thread-safe.
struct Tally {
  std::array<std::int64_t, kStates> jobs{};  ///< by JobState; expired jobs count until removed by a sweep
  std::int64_t queuedLow = 0;
  std::int64_t completed = 0;
  std::int64_t failed = 0;
  std::int64_t retried = 0;
  std::int64_t owed = 0;  ///< webhooks; an owed webhook outlives the job and the endpoint

  bool operator==(const Tally&) const = default;

  std::int64_t in(JobState state) const { return jobs.at(static_cast<std::size_t>(state)); }

  /// Counts `number` further jobs in the state; a negative number takes jobs away.
  void place(JobState state, bool low, std::int64_t number) {
    jobs.at(static_cast<std::size_t>(state)) += number;
    if (low && state == JobState::inQueue) queuedLow += number;
  }
};

/// Changes of the numbers of endpoints by the steps of a transaction. `Change` is a Tally with the further numbers of a
/// storage. Not thread-safe.
template <class Change>
class TallyChanges {
 public:
  /// Counts a new job in the queue.
  void added(const EndpointId& endpoint, bool low) { endpoints_[endpoint].place(JobState::inQueue, low, 1); }
  /// Counts `jobs` deleted jobs whose state was `from`.
  void gone(const EndpointId& endpoint, JobState from, bool low, std::int64_t jobs = 1) {
    endpoints_[endpoint].place(from, low, -jobs);
  }
  /// Counts a change of a job's state, except its end.
  void moved(const EndpointId& endpoint, JobState from, JobState to, bool low) {
    Tally& tally = endpoints_[endpoint];
    tally.place(from, low, -1);
    tally.place(to, low, 1);
  }
  /// Counts the end of a job, with the outcome as completed or failed. A cancelled job counts as neither.
  void ended(const EndpointId& endpoint, JobState from, JobState to, bool low) {
    moved(endpoint, from, to, low);
    if (to == JobState::completed) ++endpoints_[endpoint].completed;
    if (to == JobState::failed || to == JobState::timedOut) ++endpoints_[endpoint].failed;
  }
  /// Counts a retry by a caller or the loss of a worker.
  void retried(const EndpointId& endpoint) { ++endpoints_[endpoint].retried; }
  /// Adds `webhooks` to the number of webhooks owed by the endpoint; a negative value lowers the number.
  void owes(const EndpointId& endpoint, std::int64_t webhooks) { endpoints_[endpoint].owed += webhooks; }
  /// Returns the changes of the endpoint so far.
  Change of(std::string_view endpoint) const {
    const auto found = endpoints_.find(endpoint);
    return found == endpoints_.end() ? Change{} : found->second;
  }

 protected:
  std::map<EndpointId, Change, std::less<>> endpoints_;  // sorted: all transactions lock rows in one order
};

/// Returns the number of jobs that have not expired. A commit between the two sources can make the difference negative
/// for a moment.
inline std::uint64_t alive(std::int64_t all, std::int64_t expired) {
  return all > expired ? static_cast<std::uint64_t>(all - expired) : 0;
}

/// Returns the number of jobs that pass the filter.
inline std::size_t totalOf(const Tally& all, const Tally& expired, const JobFilter& filter) {
  std::uint64_t total = 0;
  for (std::size_t state = 0; state < kStates; ++state) {
    if (filter.state && static_cast<std::size_t>(*filter.state) != state) continue;
    total += alive(all.jobs[state], expired.jobs[state]);
  }
  return total;
}

/// Returns the numbers of an endpoint, with the wait of the head of the queue.
inline EndpointCounts countsOf(const Tally& all, const Tally& expired, const std::optional<Millis>& headWait) {
  const auto in = [&](JobState state) { return alive(all.in(state), expired.in(state)); };
  return {in(JobState::inQueue),
          alive(all.queuedLow, expired.queuedLow),
          in(JobState::inProgress),
          static_cast<std::uint64_t>(all.completed),
          static_cast<std::uint64_t>(all.failed),
          static_cast<std::uint64_t>(all.retried),
          headWait};
}

}  // namespace jobq::sql
