// The output of launched workers, on the way from a launcher to the server.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "jobq/job.h"
#include "jobq/mutex.h"

namespace jobq {

/// Bytes that a worker has written to its standard output and standard error.
struct WorkerOutput {
  WorkerId worker;
  std::string bytes;
};

/// The output of a launcher's workers that the server has not collected yet. Any thread.
class OutputBuffer {
 public:
  /// Most bytes kept for a worker. The newest bytes stay.
  static constexpr std::size_t kMostBytes = 256UL << 10;

  void add(const WorkerId& worker, std::string_view bytes) JOBQ_EXCLUDES(mutex_) {
    if (bytes.size() > kMostBytes) bytes.remove_prefix(bytes.size() - kMostBytes);
    Lock lock(mutex_);
    std::string& kept = outputs_[worker];
    if (kept.size() + bytes.size() > kMostBytes) kept.erase(0, kept.size() + bytes.size() - kMostBytes);
    kept += bytes;
  }

  /// Removes and returns the output of all workers.
  std::vector<WorkerOutput> drain() JOBQ_EXCLUDES(mutex_) {
    std::map<WorkerId, std::string> outputs;
    {
      Lock lock(mutex_);
      outputs.swap(outputs_);
    }
    std::vector<WorkerOutput> drained;
    for (auto& [worker, bytes] : outputs) drained.push_back({worker, std::move(bytes)});
    return drained;
  }

 private:
  Mutex mutex_;
  std::map<WorkerId, std::string> outputs_ JOBQ_GUARDED_BY(mutex_);
};

}  // namespace jobq
