// The context of a write inside the writer's transaction.
#pragma once

#include "connection.h"
#include "counters.h"
#include "ended_jobs.h"
#include "job_listing.h"
#include "jobq/time.h"
#include "running_rows.h"

namespace jobq::sqlite {

/// Changes of a group of writes in memory. The writer applies them after the commit.
struct GroupChanges {
  CounterChanges counters;
  RunningChanges running;
  EndedChanges ended;
  ListingChange listing;

  void clear() noexcept {
    counters.clear();
    running.clear();
    ended.clear();
    listing.clear();
  }
};

/// The context of a write: transaction, moment, and the changes in memory.
struct Step {
  Connection& db;
  Instant now;
  CounterChanges& counters;
  RunningChanges& running;
  EndedChanges& ended;
  ListingChange& listing;
};

}  // namespace jobq::sqlite
