// The store of the workers of all nodes. Contract: `sdk/include/jobq/worker_store.h`.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "jobq/storage.h"
#include "jobq/time.h"
#include "readers.h"
#include "writer.h"

namespace jobq::sqlite {

/// Any thread may call the methods. The writer, the readers and the clock outlive the store.
class Workers final : public WorkerStore {
 public:
  Workers(Writer& writer, Readers& readers, Clock& clock) : writer_(writer), readers_(readers), clock_(clock) {}

  void beat(std::string_view node, std::span<const EndpointWorkers> workers) override;
  WorkerCounts count(std::string_view endpoint, std::string_view exceptNode) override;
  std::vector<NodeInfo> nodes() override;

 private:
  Writer& writer_;
  Readers& readers_;
  Clock& clock_;
};

}  // namespace jobq::sqlite
