// The store of nodes. Contract: `sdk/include/jobq/node_store.h`.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "connection/connection.h"
#include "connection/database_clock.h"
#include "jobq/holder.h"
#include "jobq/job.h"
#include "jobq/mutex.h"
#include "jobq/storage.h"
#include "reads/readers.h"
#include "writes/writer.h"

namespace jobq::mysql {

/// Any thread may call the methods.
class Nodes final : public NodeStore {
 public:
  /// Everything here outlives the store.
  struct Deps {
    Writer& writer;      ///< for this store alone
    Readers& ownReader;  ///< for this store alone, with one connection
    Readers& readers;
    const DatabaseClock& clock;
    const Connector& ownConnector;  ///< of `writer` and `ownReader`
    const Connector& connector;     ///< of the connections of all other stores
  };
  explicit Nodes(const Deps& deps) : deps_(deps) {}

  Holder join(std::string_view name, const std::optional<JobKey>& culprit) override;
  BeatResult beat(const Holder& holder, std::span<const EndpointWorkers> workers) override;
  void leave(const Holder& holder) override;
  WorkerCounts count(std::string_view endpoint, std::string_view exceptNode) override;
  std::vector<NodeInfo> nodes() override;

 private:
  /// The workers of a node by endpoint.
  using Report = std::map<EndpointId, WorkerCounts, std::less<>>;

  bool extendAlone(const Holder& holder, const Report& report);
  BeatResult extendLife(const Holder& holder, Report report);
  /// Cuts the connections of all stores until a beat is answered, if for kSilence no beat has been answered and no
  /// connection could be opened.
  void cutAfterSilence();
  void noteAnswer();

  const Deps deps_;
  Mutex mutex_;
  std::chrono::steady_clock::time_point answeredAt_ JOBQ_GUARDED_BY(mutex_);  // the last beat, or the join
  std::uint64_t reportedBy_ JOBQ_GUARDED_BY(mutex_) = 0;                      // epoch of the last stored report
  Report reported_ JOBQ_GUARDED_BY(mutex_);
};

}  // namespace jobq::mysql
