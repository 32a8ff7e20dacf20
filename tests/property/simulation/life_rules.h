// The rules of lives of a simulation: epochs grow, and a life ends by time only if its node has not beaten for
// leaseLife(), where a time without the beat of any node counts as kBeatGap (`jobq/node_store.h`).
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "findings.h"
#include "jobq/holder.h"
#include "jobq/job.h"
#include "jobq/time.h"

namespace jobq::model {

/// Confined to one thread.
class LifeRules {
 public:
  /// `clock` is the true time. Both outlive the object.
  LifeRules(Findings& findings, const Clock& clock) : findings_(findings), clock_(clock) {}

  /// Told of each step of the storage.
  void joined(const Holder& life);
  void beaten(const Holder& life) { noteBeat(lives_[life.epoch]); }
  void left(const Holder& life) { lives_[life.epoch].hasEnded = true; }

  /// Judges the loss of an attempt that the life `epoch` has claimed.
  void lost(const LeaseRef& lease, std::uint64_t epoch);
  /// Returns the time since the last beat of the node.
  Millis sinceBeat(const std::string& node) const;

 private:
  struct Life {
    std::string node;
    Millis served{0};  // served_ at the last beat
    Instant lastBeat{};
    bool hasEnded = false;
  };
  void noteBeat(Life& life);
  Millis servedNow() const;

  Findings& findings_;
  const Clock& clock_;
  std::map<std::uint64_t, Life> lives_;
  std::uint64_t lastEpoch_ = 0;
  Instant lastBeat_{};  // of any node
  Millis served_{0};    // time until lastBeat_ in which a node reached the storage
};

}  // namespace jobq::model
