// The rules of a simulation, which see each step of the storage and each handler, and know the true time. Each group of
// rules is a class.
#pragma once

#include "findings.h"
#include "handler_rules.h"
#include "job_rules.h"
#include "jobq/time.h"
#include "life_rules.h"

namespace jobq::model {

/// Confined to one thread.
struct Rules {
  /// `clock` is the true time, and outlives the rules. `isShared` tells whether answers of the storage may be late.
  Rules(const Clock& clock, bool isShared)
      : handlers(findings, clock), lives(findings, clock), jobs({findings, handlers, lives, clock}, isShared) {}

  Findings findings;
  HandlerRules handlers;
  LifeRules lives;
  JobRules jobs;
};

}  // namespace jobq::model
