// The context of a write inside the writer's transaction.
#pragma once

#include "connection.h"
#include "counters.h"
#include "jobq/time.h"

namespace jobq::sqlite {

/// The context of a write: transaction, moment, and the changed counters.
struct Step {
  Connection& db;
  Instant now;
  CounterChanges& counters;
};

}  // namespace jobq::sqlite
