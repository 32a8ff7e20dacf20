// An admission filter as endpoints name it (`filters = require_fields, plugin/ours`), and the instances of it that the
// host keeps: a filter judges one job at a time.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "jobq/admission_filter.h"
#include "jobq/mutex.h"

namespace jobq {

/// What the name of a filter means.
struct FilterName {
  std::string plugin;  ///< entry of kind filter; `lua` runs scripts
  std::string script;  ///< empty for `plugin/<filter>`
};

/// Throws ConfigError when it is no name of a filter.
FilterName parseFilter(const std::string& name);

/// The names of an endpoint's filters. Throws ConfigError when one is no name of a filter, or is there twice.
void checkFilterNames(const std::vector<std::string>& names);

/// Any thread. Outlives every endpoint that has it.
class FilterPool {
 public:
  FilterPool(std::string name, AdmissionFilterFactory& factory, std::string script)
      : name_(std::move(name)), factory_(&factory), script_(std::move(script)) {}

  /// Of a filter that is not there: it lets no job in.
  FilterPool(std::string name, std::string absence) : name_(std::move(name)), absence_(std::move(absence)) {}

  const std::string& name() const { return name_; }

  /// Why it cannot run, in one sentence; empty when it can.
  std::string fault() const { return factory_ == nullptr ? absence_ : factory_->fault(script_); }

  /// Throws what the filter throws.
  Decision review(const AdmissionRequest& job);

 private:
  // Those that rest where one processor used them last: what a filter remembers lies in that processor's caches.
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
