// All endpoints and templates. The definitions in the configuration file are fixed while the server runs; every node
// may change the definitions in the storage. The registry follows the records and makes a release of a changed template
// for each endpoint using the template (core/decisions/endpoints.md); the first node to see the change stores the new
// version.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/shared_snapshot.h"
#include "core/config/config.h"
#include "core/endpoints/endpoint.h"
#include "core/endpoints/endpoint_maker.h"
#include "core/endpoints/template.h"
#include "jobq/job.h"
#include "jobq/log.h"
#include "jobq/mutex.h"
#include "jobq/record_store.h"

namespace jobq {

class SecretBox;

/// A template with the version of its record.
struct TemplateEntry {
  Template form;
  std::uint64_t record = 0;  ///< version of the stored record
};

using EndpointEntryPtr = std::shared_ptr<const EndpointEntry>;
using TemplateEntryPtr = std::shared_ptr<const TemplateEntry>;

/// Any thread may call all functions. The data is as old as the last refresh(). Every request reads here, so readers
/// share no lock.
class EndpointRegistry {
 public:
  /// The referenced objects outlive the registry.
  struct Deps {
    RecordStore& records;
    const SecretBox& box;
    PluginResolver resolver;
    Log& log;
  };
  /// Receives every endpoint that was added, changed or removed (null), before refresh() returns.
  using Listener = std::function<void(const EndpointId& id, const EndpointPtr& now)>;

  /// Takes in the endpoints of the file; endpoints of the storage follow with the first refresh(). Throws ConfigError
  /// if an endpoint of the file cannot run.
  EndpointRegistry(Deps deps, const std::vector<EndpointConfig>& fixed, Listener listener);

  /// Return null if the id is unknown.
  EndpointPtr find(std::string_view id) const;
  EndpointEntryPtr entry(std::string_view id) const;
  TemplateEntryPtr findTemplate(std::string_view id) const;

  /// Return all entries, sorted by id.
  std::vector<EndpointPtr> all() const;
  std::vector<EndpointEntryPtr> entries() const;
  std::vector<TemplateEntryPtr> templates() const;

  /// Returns the deleted endpoints with jobs still to remove. All other functions treat these endpoints as gone.
  std::vector<EndpointId> leaving() const;

  /// Takes in all changes of the storage, by any node. Changes stored before the call are visible after the call.
  /// Throws StorageError; the next call then takes in the same changes.
  void refresh();

  /// Calls refresh() after a change that is already stored. Returns false if the storage failed, after logging the
  /// failure.
  bool showChange();

  /// Returns true while a request on this node holds the stored endpoint, in the present or an older version: a request
  /// under way may still submit a job, even after the deletion of the endpoint.
  bool isInUse(const EndpointId& id) const;

  /// Throws ConfigError if an endpoint of the file has the id of a stored endpoint. Call before the first refresh().
  void checkIds();

  const PluginResolver& resolver() const { return deps_.resolver; }

 private:
  struct State {
    std::map<EndpointId, EndpointEntryPtr, std::less<>> endpoints;
    std::map<std::string, TemplateEntryPtr, std::less<>> templates;
    std::set<EndpointId> leaving;
  };

  void takeIn();
  void follow(std::set<EndpointId>& touched);
  void followTemplates(std::set<EndpointId>& touched);
  void followEndpoints(std::set<EndpointId>& touched);
  void followPauses(std::set<EndpointId>& touched);
  void followScripts(std::set<EndpointId>& touched) const;
  bool decideRemovals();
  bool releaseTemplates();
  void store(const std::vector<EndpointEntry>& raised);
  void rebuild(const EndpointId& id);
  void announceEndpoint(const EndpointId& id, const EndpointPtr& endpoint);
  void logDamage(const std::exception& error) const;

  const Deps deps_;
  const Listener listener_;
  std::map<EndpointId, EndpointEntry> fixed_;

  // Used only by the refreshing thread, one at a time.
  State next_;
  std::map<EndpointId, EndpointEntry> stored_;  // content of the records
  std::set<EndpointId> paused_;
  std::set<std::string> unwanted_;  // templates to remove if no endpoint uses them
  std::set<std::string> gone_;      // removed templates with a record left over
  std::uint64_t templatesSeen_ = 0;
  std::uint64_t endpointsSeen_ = 0;
  std::uint64_t pausesSeen_ = 0;

  SharedSnapshot<State> state_;
  mutable Mutex mutex_;
  Condition refreshed_;
  bool refreshing_ JOBQ_GUARDED_BY(mutex_) = false;
  std::map<EndpointId, std::vector<std::weak_ptr<const Endpoint>>> inUse_ JOBQ_GUARDED_BY(mutex_);
};

}  // namespace jobq
