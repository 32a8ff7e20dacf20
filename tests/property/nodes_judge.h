// The judge of the simulation of nodes sees each step of the storage and each handler, and knows the true time. Each
// group of rules is a class.
#pragma once

#include "jobq/time.h"
#include "nodes_findings.h"
#include "nodes_handler_rules.h"
#include "nodes_job_rules.h"
#include "nodes_life_rules.h"

namespace jobq::model {

/// Confined to one thread.
struct NodesJudge {
  /// `clock` is the true time, and outlives the judge.
  explicit NodesJudge(const Clock& clock)
      : handlers(findings, clock), lives(findings, clock), jobs(findings, handlers, lives, clock) {}

  NodesFindings findings;
  HandlerRules handlers;
  LifeRules lives;
  JobRules jobs;
};

}  // namespace jobq::model
