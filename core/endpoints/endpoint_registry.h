// All endpoints and templates, for readers. The definitions in the configuration file are fixed while the server runs;
// every node may change the definitions in the storage, which EndpointRecords follows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/shared_map.h"
#include "core/base/shared_snapshot.h"
#include "core/config/endpoint_spec.h"
#include "core/endpoints/endpoint.h"
#include "core/endpoints/endpoint_records.h"
#include "core/endpoints/plugin_resolver.h"
#include "jobq/job.h"
#include "jobq/log.h"
#include "jobq/mutex.h"
#include "jobq/record_store.h"

namespace jobq {

class SecretBox;

/// An endpoint in both forms: the description for responses, and the object that serves jobs. The description is newer
/// than the object in the answer to a change that this node has not read back yet; the object is then null for a new
/// endpoint.
struct EndpointEntry {
  EndpointSpec spec;
  EndpointPtr endpoint;
};

using EndpointEntryPtr = std::shared_ptr<const EndpointEntry>;

inline const std::string& idOf(const EndpointEntry& entry) { return entry.spec.id; }

/// Learns of changed endpoints.
class EndpointListener {
 public:
  virtual ~EndpointListener() = default;

  /// Called by the refreshing thread for every endpoint that was added, changed or removed (null), before refresh()
  /// returns.
  virtual void endpointChanged(const EndpointId& id, const EndpointPtr& now) = 0;
};

/// Any thread may call all functions. The data is as old as the last refresh(). Every request reads here, so readers
/// share no lock.
class EndpointRegistry {
 public:
  /// The referenced objects outlive the registry.
  struct Deps {
    RecordStore& records;
    const SecretBox& box;
    PluginResolver& resolver;
    Log& log;
    std::string startedAt;  ///< `createdAt` of endpoints of the file: the file holds no time of creation
  };

  /// Takes in the endpoints of the file; endpoints of the storage follow with the first refresh(). Throws ConfigError
  /// if an endpoint of the file cannot run.
  EndpointRegistry(const Deps& deps, const std::vector<EndpointSpec>& fixed);

  /// Sets the listener. The listener needs parts that need the registry, so it is constructed later and set afterwards:
  /// before the first refresh(). `listener` is valid until the last refresh().
  void setListener(EndpointListener& listener) { listener_ = &listener; }

  /// Return null if the id is unknown.
  EndpointPtr find(std::string_view id) const;
  EndpointEntryPtr entry(std::string_view id) const;
  TemplateEntryPtr findTemplate(std::string_view id) const;

  /// Return up to `most` entries behind the id `after`, sorted by id.
  std::vector<EndpointEntryPtr> entries(std::string_view after = {}, std::size_t most = SIZE_MAX) const;
  std::vector<TemplateEntryPtr> templates(std::string_view after = {}, std::size_t most = SIZE_MAX) const;

  /// Returns all endpoints, sorted by id.
  std::vector<EndpointPtr> all() const;

  /// Returns the deleted endpoints with jobs still to remove. All other functions treat these endpoints as gone.
  std::vector<EndpointId> leaving() const;

  /// Takes in all changes of the storage, by any node. Changes stored before the call are visible after the call.
  /// Throws StorageError and std::bad_alloc; the next call then takes in the same changes.
  void refresh();

  /// Calls refresh() after a change that is already stored. Returns false if the storage failed, after logging the
  /// failure.
  bool tryRefresh();

  /// Returns true while a request on this node holds the stored endpoint, in the present or an older version: a request
  /// under way may still submit a job, even after the deletion of the endpoint.
  bool isInUse(const EndpointId& id) const;

  /// Throws ConfigError if an endpoint of the file has the id of a stored endpoint. Call before the first refresh().
  void checkIds();

  PluginResolver& resolver() const { return deps_.resolver; }

 private:
  static const EndpointId& idOfLeaving(const EndpointId& id) { return id; }
  // A version shares the entries without a change with the version before.
  struct State {
    SharedMap<EndpointEntry, idOf> endpoints;
    TemplateEntries templates;
    SharedMap<EndpointId, idOfLeaving> leaving;
  };

  void readChanges();
  void followScripts();
  void rebuild(const std::set<EndpointId>& ids);
  EndpointEntryPtr makeEntry(const EndpointId& id) const;
  void announceEndpoint(const EndpointId& id, const EndpointPtr& endpoint);

  const Deps deps_;
  EndpointListener* listener_ = nullptr;
  std::map<EndpointId, EndpointPtr> fixed_;

  // Used only by the refreshing thread, one at a time.
  EndpointRecords records_;
  State next_;
  std::set<EndpointId> touched_;        // endpoints with changes that were read and are not published yet
  std::set<EndpointId> withoutScript_;  // endpoints of next_ whose newest release waits for a script

  SharedSnapshot<State> state_;
  mutable Mutex mutex_;
  Condition refreshed_;
  bool refreshing_ JOBQ_GUARDED_BY(mutex_) = false;
  std::map<EndpointId, std::vector<std::weak_ptr<const Endpoint>>> inUse_ JOBQ_GUARDED_BY(mutex_);
};

}  // namespace jobq
