#include "core/endpoints/endpoint_registry.h"

#include <algorithm>

#include "core/endpoints/endpoint_maker.h"
#include "core/endpoints/endpoint_record.h"
#include "core/model/image.h"
#include "jobq/error.h"

namespace jobq {
namespace {

// Returns true if the newest release cannot run because of its script, which may be written or mended.
bool needsScript(const Endpoint& endpoint) {
  const bool isReleased = endpoint.release && endpoint.release->version == endpoint.spec.version;
  return !isReleased && !endpoint.runnable && parseImage(endpoint.spec.image).kind == Image::Kind::lua;
}

}  // namespace

EndpointRegistry::EndpointRegistry(const Deps& deps, const std::vector<EndpointSpec>& fixed)
    : deps_(deps), records_(deps.records, deps.box, deps.log) {
  // The default filters are checked here on their own, because every endpoint of the file may have other filters while
  // endpoints of the API may not.
  if (const auto good = checkFilters(deps_.resolver.defaults().filters, deps_.resolver); !good) {
    throw ConfigError("filters: " + good.failure().message());
  }
  std::set<EndpointId> ids;
  for (EndpointSpec spec : fixed) {
    spec.createdAt = deps_.startedAt;
    fixed_.emplace(spec.id, makeStatic(spec, deps_.resolver));
    ids.insert(spec.id);
  }
  rebuild(ids);
  state_.set(std::make_shared<State>(next_));
}

EndpointEntryPtr EndpointRegistry::entry(std::string_view id) const { return state_.get()->endpoints.find(id); }

EndpointPtr EndpointRegistry::find(std::string_view id) const {
  const auto found = entry(id);
  return found ? found->endpoint : nullptr;
}

TemplateEntryPtr EndpointRegistry::findTemplate(std::string_view id) const { return state_.get()->templates.find(id); }

std::vector<EndpointEntryPtr> EndpointRegistry::entries(std::string_view after, std::size_t most) const {
  return state_.get()->endpoints.page(after, most);
}

std::vector<TemplateEntryPtr> EndpointRegistry::templates(std::string_view after, std::size_t most) const {
  return state_.get()->templates.page(after, most);
}

std::vector<EndpointPtr> EndpointRegistry::all() const {
  std::vector<EndpointPtr> endpoints;
  for (const EndpointEntryPtr& entry : entries()) endpoints.push_back(entry->endpoint);
  return endpoints;
}

std::vector<EndpointId> EndpointRegistry::leaving() const {
  std::vector<EndpointId> ids;
  for (const auto& id : state_.get()->leaving.all()) ids.push_back(*id);
  return ids;
}

void EndpointRegistry::checkIds() {
  for (const Record& record : deps_.records.list(kEndpointKind)) {
    if (!fixed_.contains(record.id)) continue;
    throw ConfigError("endpoint." + record.id +
                      " is in the file, but the storage has an endpoint of that id: rename the one in the file");
  }
}

// One thread refreshes at a time. A second caller waits and then refreshes anew, because its own change may have come
// too late for the first refresh.
void EndpointRegistry::refresh() {
  {
    Lock lock(mutex_);
    while (refreshing_) refreshed_.wait(mutex_);
    refreshing_ = true;
  }
  const auto done = [this] {
    Lock lock(mutex_);
    refreshing_ = false;
    refreshed_.notifyAll();
  };
  try {
    readChanges();
  } catch (...) {
    done();
    throw;
  }
  done();
}

bool EndpointRegistry::tryRefresh() {
  try {
    refresh();
    return true;
  } catch (const StorageError& error) {
    deps_.log.write(LogLevel::warning, "endpoints.refresh", error.what());
    return false;
  }
}

bool EndpointRegistry::isInUse(const EndpointId& id) const {
  Lock lock(mutex_);
  const auto found = inUse_.find(id);
  return found != inUse_.end() && std::any_of(found->second.begin(), found->second.end(),
                                              [](const auto& endpoint) { return !endpoint.expired(); });
}

void EndpointRegistry::announceEndpoint(const EndpointId& id, const EndpointPtr& endpoint) {
  Lock lock(mutex_);
  auto& all = inUse_[id];
  std::erase_if(all, [](const auto& former) { return former.expired(); });
  if (endpoint) all.emplace_back(endpoint);
  if (all.empty()) inUse_.erase(id);
}

// Changes that were read are not read again: after an exception the next refresh publishes them.
void EndpointRegistry::readChanges() {
  const auto publish = [this] {
    if (touched_.empty() && state_.get()->templates.isSame(records_.templates())) return;
    next_.templates = records_.templates();
    rebuild(touched_);
    state_.set(std::make_shared<State>(next_));
    for (const EndpointId& id : touched_) {
      const EndpointPtr now = find(id);
      // Workers get a copy of their own, because isInUse counts references: a worker that keeps its
      // endpoint would look like a request.
      listener_->endpointChanged(id, now ? std::make_shared<Endpoint>(*now) : nullptr);
    }
    touched_.clear();
  };
  try {
    // Scripts first: the records may need a write, and a storage that refuses writes must not keep a mended script out.
    followScripts();
    records_.follow(touched_);
  } catch (...) {
    publish();
    throw;
  }
  publish();
}

// Adds the endpoints whose script was missing or faulty and is good now, so that a halted release continues.
void EndpointRegistry::followScripts() {
  for (const EndpointId& id : withoutScript_) {
    if (checkImage(next_.endpoints.find(id)->endpoint->spec.image, deps_.resolver)) touched_.insert(id);
  }
}

// Makes the published entries of some endpoints anew, from the file or from the records.
void EndpointRegistry::rebuild(const std::set<EndpointId>& ids) {
  SharedMap<EndpointEntry, idOf>::Changes endpoints;
  SharedMap<EndpointId, idOfLeaving>::Changes leaving;
  std::set<EndpointId> waiting;
  for (const EndpointId& id : ids) {
    const EndpointSpec* const stored = records_.find(id);
    const bool leaves = stored != nullptr && stored->deleting;
    leaving[id] = leaves ? std::make_shared<EndpointId>(id) : nullptr;
    const EndpointEntryPtr& entry = endpoints[id] = makeEntry(id);
    if (!fixed_.contains(id)) announceEndpoint(id, entry ? entry->endpoint : nullptr);
    if (entry && needsScript(*entry->endpoint)) waiting.insert(id);
  }
  next_.leaving.apply(leaving);
  next_.endpoints.apply(endpoints);
  // No step from here on can fail, so next_.endpoints has each id of withoutScript_.
  for (const EndpointId& id : ids) withoutScript_.erase(id);
  withoutScript_.merge(waiting);
}

// Returns null for an endpoint that is neither in the file nor stored, or is deleted.
EndpointEntryPtr EndpointRegistry::makeEntry(const EndpointId& id) const {
  if (const auto fixed = fixed_.find(id); fixed != fixed_.end()) {
    auto endpoint = std::make_shared<Endpoint>(*fixed->second);
    endpoint->spec.paused = records_.isPaused(id);
    return std::make_shared<EndpointEntry>(EndpointEntry{endpoint->spec, endpoint});
  }
  const EndpointSpec* const stored = records_.find(id);
  if (stored == nullptr || stored->deleting) return nullptr;
  EndpointSpec spec = *stored;
  spec.paused = records_.isPaused(id);
  if (const TemplateEntryPtr of = next_.templates.find(spec.templateId)) {
    spec.image = of->form.imageName;
    spec.env = of->form.env;
    spec.container = containerOf(of->form);
  }
  const EndpointEntryPtr before = next_.endpoints.find(id);
  const EndpointPtr endpoint = makeEndpoint(spec, deps_.resolver, before ? before->endpoint : nullptr);
  return std::make_shared<EndpointEntry>(EndpointEntry{std::move(spec), endpoint});
}

}  // namespace jobq
