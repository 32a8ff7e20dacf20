// Histories of jobs written by hand, for the tests of the rules.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "history_rules.h"
#include "jobq/job.h"

namespace jobq::fault {

constexpr Nanos kMs = 1'000'000;
inline const Rules kRules{{{"ep", 2}}};

inline Span at(Nanos ms) { return {ms * kMs, ms * kMs + kMs / 2}; }

/// A job acknowledged at 0 ms in life 0. In these histories a life lasts a hundred milliseconds.
class Rule : public testing::Test {
 protected:
  Rule() {
    job_.plan = {7, "ep", 0, 0, false};
    job_.id = "j";
    job_.acknowledged = true;
    job_.sent = at(0);
  }

  void ran(std::uint32_t attempt, Nanos from, Nanos to, Run::End end = Run::End::output) {
    job_.runs.push_back({attempt, life(from), from * kMs, to * kMs, end});
  }
  void cutOff(std::uint32_t attempt, Nanos from) { ran(attempt, from, 0, Run::End::none); }
  Sight& seen(JobState state, Nanos ms, std::uint32_t retries = 0) {
    Sight sight{at(ms), life(ms), state, true, retries, "", ""};
    if (state == JobState::completed) sight.output = "{\"echo\":7,\"square\":49}";
    return job_.sights.emplace_back(sight);
  }
  void ordered(Order::Command command, Nanos ms, Order::Effect effect = Order::Effect::done, Nanos ttlMs = 0) {
    job_.orders.push_back({command, effect, at(ms), life(ms), ttlMs * kMs});
  }
  void missed(Nanos ms) { job_.absences.push_back({at(ms), life(ms)}); }
  std::vector<std::string> faults() { return faultsOf(job_, kRules); }

  static int life(Nanos ms) { return static_cast<int>(ms / 100); }

  JobHistory job_;
};

}  // namespace jobq::fault
