// An admission filter of endpoints, and the pool of its instances: an instance reviews one job at a time.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/base/result.h"
#include "jobq/admission_filter.h"
#include "jobq/mutex.h"

namespace jobq {

/// Any thread may call all functions. The pool outlives all endpoints that use the pool.
class FilterPool {
 public:
  /// Makes the pool of an installed filter. `factory` outlives the pool; `script` is empty for `plugin/<filter>`.
  FilterPool(std::string name, AdmissionFilterFactory& factory, std::string script)
      : name_(std::move(name)), factory_(&factory), script_(std::move(script)) {}

  /// Makes the pool of a missing filter, which accepts no job. `absence` is the reason, in one sentence.
  FilterPool(std::string name, std::string absence) : name_(std::move(name)), absence_(std::move(absence)) {}

  const std::string& name() const { return name_; }

  /// Fails, with one sentence, if the filter cannot run.
  Result<void> check() const;

  /// Throws the exceptions of the filter.
  Decision review(const AdmissionRequest& job);

 private:
  // Idle instances by the processor of their last use: the memory of an instance is in the caches of that processor.
  struct Shard {
    Mutex mutex;
    std::vector<std::unique_ptr<AdmissionFilter>> idle JOBQ_GUARDED_BY(mutex);
  };
  static constexpr std::size_t kShards = 16;

  std::unique_ptr<AdmissionFilter> acquireFilter(Shard& shard);
  static void releaseFilter(Shard& shard, std::unique_ptr<AdmissionFilter> filter);

  const std::string name_;
  AdmissionFilterFactory* const factory_ = nullptr;
  const std::string script_;
  const std::string absence_;
  std::array<Shard, kShards> shards_;
};

}  // namespace jobq
