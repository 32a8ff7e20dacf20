// Storage, face 5: which workers the nodes have.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "jobq/storage.h"
#include "jobq/time.h"
#include "readers.h"
#include "writer.h"

namespace jobq::sqlite {

/// Any thread. The writer and readers outlive it.
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
