// Which endpoints and templates exist: those of the configuration file, fixed while the server runs, and those of the
// storage, which any node may change. Follows the records, and brings a changed template to the endpoints that use it
// (a release, core/decisions/endpoints.md); what that takes is written down by whoever sees it first.
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

struct TemplateEntry {
  Template form;
  std::uint64_t record = 0;  ///< the version of its record
};

using EndpointEntryPtr = std::shared_ptr<const EndpointEntry>;
using TemplateEntryPtr = std::shared_ptr<const TemplateEntry>;

/// Any thread. What is read here is as old as the last refresh(); every request asks, and shares no lock with others.
class EndpointRegistry {
 public:
  struct Deps {
    RecordStore& records;
    const SecretBox& box;
    PluginResolver resolver;
    Log& log;
  };
  /// Hears of every endpoint that came, changed or went (null), before refresh() returns.
  using Listener = std::function<void(const EndpointId& id, const EndpointPtr& now)>;

  /// Knows the file's endpoints at once, those of the storage after the first refresh(). Throws ConfigError when one of
  /// the file's cannot run.
  EndpointRegistry(Deps deps, const std::vector<EndpointConfig>& fixed, Listener listener);

  /// Null when there is none.
  EndpointPtr find(std::string_view id) const;
  EndpointEntryPtr entry(std::string_view id) const;
  TemplateEntryPtr findTemplate(std::string_view id) const;

  /// By id.
  std::vector<EndpointPtr> all() const;
  std::vector<EndpointEntryPtr> entries() const;
  std::vector<TemplateEntryPtr> templates() const;

  /// Endpoints whose jobs are still to be removed: they are gone for everybody else.
  std::vector<EndpointId> leaving() const;

  /// Takes in what has changed in the storage, by whatever node. After it returns, what was stored before the call is
  /// known. Throws StorageError; then the next one takes it in.
  void refresh();

  /// refresh() after a change that is stored already: a storage that fails now is only logged. False: it did.
  bool showChange();

  /// Somebody here has the stored endpoint in hand, as it is or once was: a call that is under way may yet bring it a
  /// job, even when it is deleted.
  bool isInHand(const EndpointId& id) const;

  /// Throws ConfigError when an endpoint of the file has the id of a stored one. Before the first refresh().
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

  // Of the thread that refreshes, one at a time.
  State next_;
  std::map<EndpointId, EndpointEntry> stored_;  // as their records say
  std::set<EndpointId> paused_;
  std::set<std::string> unwanted_;  // templates that are to be removed if nobody uses them
  std::set<std::string> gone_;      // templates of which only the record is left
  std::uint64_t templatesSeen_ = 0;
  std::uint64_t endpointsSeen_ = 0;
  std::uint64_t pausesSeen_ = 0;

  SharedSnapshot<State> state_;
  mutable Mutex mutex_;
  Condition refreshed_;
  bool refreshing_ JOBQ_GUARDED_BY(mutex_) = false;
  std::map<EndpointId, std::vector<std::weak_ptr<const Endpoint>>> inHand_ JOBQ_GUARDED_BY(mutex_);
};

}  // namespace jobq
