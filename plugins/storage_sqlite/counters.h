// How many jobs every endpoint has, state by state, and how many webhooks it owes, kept in memory, so that no question
// counts rows. The numbers change when the commit that caused them has succeeded, never before.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "connection.h"
#include "jobq/job.h"
#include "jobq/mutex.h"

namespace jobq::sqlite {

inline constexpr std::size_t kStates = 6;

/// Numbers of one endpoint, or by how much they change.
struct Tally {
  std::array<std::int64_t, kStates> jobs{};  ///< by JobState; expired jobs count until they are swept
  std::int64_t queuedLow = 0;
  std::int64_t completed = 0;
  std::int64_t failed = 0;
  std::int64_t retried = 0;
  std::int64_t owed = 0;  ///< webhooks; they outlive their jobs and their endpoint

  Tally& operator+=(const Tally& other) noexcept;
  bool hasTotals() const noexcept { return completed != 0 || failed != 0 || retried != 0; }
};

/// What a step, or a group of them, does to the counters. One thread.
class CounterChanges {
 public:
  void added(const std::string& endpoint, bool low) { place(endpoint, JobState::inQueue, low, 1); }
  void gone(const std::string& endpoint, JobState from, bool low, std::int64_t jobs = 1) {
    place(endpoint, from, low, -jobs);
  }
  void moved(const std::string& endpoint, JobState from, JobState to, bool low);
  /// Also counts the end as completed or failed; a cancelled job is neither.
  void ended(const std::string& endpoint, JobState from, JobState to, bool low);
  void retried(const std::string& endpoint) { ++at(endpoint).tally.retried; }
  /// The endpoint owes so many webhooks more; fewer, when `webhooks` is below 0.
  void owes(const std::string& endpoint, std::int64_t webhooks) { at(endpoint).tally.owed += webhooks; }
  /// Returns by how much the number of webhooks that the endpoint owes changes.
  std::int64_t owedChange(std::string_view endpoint) const;
  /// The endpoint is deleted: its totals start again from 0.
  void forget(const std::string& endpoint);

  /// Puts `later` behind these.
  void append(const CounterChanges& later);
  void clear() noexcept { endpoints_.clear(); }

  /// Writes the totals, one row an endpoint, in the transaction that is open.
  void persist(Connection& connection) const;

 private:
  friend class Counters;
  struct Change {
    Tally tally;
    bool forgotten = false;  // before `tally`
  };

  Change& at(const std::string& endpoint) { return endpoints_[endpoint]; }
  void place(const std::string& endpoint, JobState state, bool low, std::int64_t jobs);

  std::map<std::string, Change, std::less<>> endpoints_;
};

/// Any thread.
class Counters {
 public:
  /// Counts once what the file holds.
  void load(Connection& connection);
  void apply(const CounterChanges& changes);
  Tally of(std::string_view endpoint) const;
  /// Returns the endpoints that owe webhooks, in ascending order.
  std::vector<std::string> owing() const;

 private:
  mutable Mutex mutex_;
  std::map<std::string, Tally, std::less<>> endpoints_ JOBQ_GUARDED_BY(mutex_);
};

}  // namespace jobq::sqlite
