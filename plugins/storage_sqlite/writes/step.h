// The context of a write inside the writer's transaction.
#pragma once

#include <cstdint>

#include "connection.h"
#include "jobq/time.h"
#include "reads/ended_jobs.h"
#include "reads/job_listing.h"
#include "writes/counters.h"
#include "writes/running_rows.h"

namespace jobq::sqlite {

/// Most chunks and log lines that a group of writes removes. A job may have a million chunks, and no other write runs
/// meanwhile.
inline constexpr std::int64_t kMostRowsRemoved = 20'000;

/// Changes of a group of writes in memory. The writer applies them after the commit.
struct GroupChanges {
  CounterChanges counters;
  RunningChanges running;
  EndedChanges ended;
  ListingChange listing;
  std::int64_t rowsLeft = kMostRowsRemoved;  // chunks and log lines that the group may still remove

  void clear() noexcept {
    counters.clear();
    running.clear();
    ended.clear();
    listing.clear();
    rowsLeft = kMostRowsRemoved;
  }
};

/// The context of a write: transaction, moment, the changes in memory, and the room for removed rows.
struct Step {
  Connection& db;
  Instant now;
  CounterChanges& counters;
  RunningChanges& running;
  EndedChanges& ended;
  ListingChange& listing;
  std::int64_t& rowsLeft;
};

}  // namespace jobq::sqlite
