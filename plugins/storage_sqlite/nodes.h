// The store of nodes. Contract: `sdk/include/jobq/node_store.h`. A single process uses the file, so at most one life is
// alive: the row `life` of the table `number` has its epoch, or 0.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "jobq/holder.h"
#include "jobq/job.h"
#include "jobq/storage.h"
#include "jobq/time.h"
#include "reads/readers.h"
#include "writes/writer.h"

namespace jobq::sqlite {

/// Any thread may call the methods. The writer, the readers and the clock outlive the store.
class Nodes final : public NodeStore {
 public:
  Nodes(Writer& writer, Readers& readers, Clock& clock) : writer_(writer), readers_(readers), clock_(clock) {}

  Holder join(std::string_view name, const std::optional<JobKey>& culprit) override;
  BeatResult beat(const Holder& holder, std::span<const EndpointWorkers> workers) override;
  void leave(const Holder& holder) override;
  WorkerCounts count(std::string_view endpoint, std::string_view exceptNode) override;
  std::vector<NodeInfo> nodes() override;

 private:
  Writer& writer_;
  Readers& readers_;
  Clock& clock_;
};

}  // namespace jobq::sqlite
