// The lives of nodes. Contract: `sdk/include/jobq/node_store.h`. The caller guards the object with the mutex of the
// state.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "jobq/holder.h"
#include "jobq/node_store.h"
#include "jobq/time.h"

namespace jobq::memory {

class Lives {
 public:
  /// An empty `leaseLife` means a storage of a single process.
  explicit Lives(std::optional<Millis> leaseLife) : leaseLife_(leaseLife) {}

  Holder join(std::string_view name, Instant now);
  BeatResult beat(const Holder& holder, std::span<const EndpointWorkers> workers, Instant now);
  void leave(const Holder& holder);
  WorkerCounts count(std::string_view endpoint, std::string_view exceptNode) const;
  std::vector<NodeInfo> nodes(Instant now);

  bool isAlive(const Holder& holder) const { return isAlive(holder.epoch); }
  bool isAlive(std::uint64_t epoch) const { return alive_.contains(epoch); }

  /// Ends the lives without a beat, unless no node has reached the storage lately.
  void endOverdue(Instant now);

  /// Returns true if a life has ended since the last noteNoLostJobs().
  bool mayHaveLostJobs() const { return mayHaveLostJobs_; }
  void noteNoLostJobs() { mayHaveLostJobs_ = false; }

 private:
  struct Life {
    std::string node;
    Instant endsAt{};  // used with a leaseLife only
    std::vector<EndpointWorkers> workers;
  };
  struct Node {
    std::uint64_t epoch = 0;  // of the last life
    Instant lastBeat{};
  };
  using LifeRef = std::map<std::uint64_t, Life>::iterator;

  void noteBeat(Node& node, Instant now);
  LifeRef endLife(LifeRef life);
  void forgetOld(Instant now);

  const std::optional<Millis> leaseLife_;
  std::map<std::uint64_t, Life> alive_;  // by epoch
  std::map<std::string, Node, std::less<>> nodes_;
  std::uint64_t lastEpoch_ = 0;
  Instant lastBeat_{};  // of any node
  bool mayHaveLostJobs_ = false;
};

}  // namespace jobq::memory
