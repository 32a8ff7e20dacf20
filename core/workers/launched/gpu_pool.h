// The GPUs of this machine that launched workers share (the setting `launcher.gpus`). A GPU belongs to a single worker
// from the start of the worker to its end, so no worker finds the memory of its GPU taken.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "jobq/job.h"

namespace jobq {

/// Plain state without threads.
class GpuPool {
 public:
  /// `ids` are the GPUs in the order of their use. Without ids the server counts no GPUs.
  explicit GpuPool(const std::vector<std::string>& ids);

  /// Returns false if the server counts no GPUs.
  bool isCounted() const noexcept { return !gpus_.empty(); }
  std::size_t size() const noexcept { return gpus_.size(); }
  /// Returns the number of GPUs without a worker.
  std::size_t countFree() const noexcept;

  /// Gives the worker the first `count` free GPUs, and returns their ids. `count` is at most countFree().
  std::vector<std::string> reserve(const WorkerId& worker, std::size_t count);
  /// Frees the GPUs of the worker, if the worker has any.
  void release(const WorkerId& worker);

 private:
  struct Row {
    std::string id;
    WorkerId holder;  // empty: free
  };
  std::vector<Row> gpus_;
};

}  // namespace jobq
