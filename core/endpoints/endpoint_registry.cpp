#include "core/endpoints/endpoint_registry.h"

#include <algorithm>

#include "core/base/image.h"
#include "core/endpoints/endpoint_maker.h"
#include "core/endpoints/endpoint_record.h"
#include "jobq/error.h"

namespace jobq {

EndpointRegistry::EndpointRegistry(const Deps& deps, const std::vector<EndpointSpec>& fixed)
    : deps_(deps), records_(deps.records, deps.box, deps.log) {
  // The default filters are checked here on their own, because every endpoint of the file may have other filters while
  // endpoints of the API may not.
  if (const auto good = checkFilters(deps_.resolver.defaultFilters(), deps_.resolver); !good) {
    throw ConfigError("filters: " + good.failure().message());
  }
  for (EndpointSpec spec : fixed) {
    spec.createdAt = deps_.startedAt;
    fixed_.emplace(spec.id, makeStatic(spec, deps_.resolver));
    rebuild(spec.id);
  }
  state_.set(std::make_shared<State>(next_));
}

EndpointEntryPtr EndpointRegistry::entry(std::string_view id) const {
  const auto state = state_.get();
  const auto found = state->endpoints.find(id);
  return found == state->endpoints.end() ? nullptr : found->second;
}

EndpointPtr EndpointRegistry::find(std::string_view id) const {
  const auto found = entry(id);
  return found ? found->endpoint : nullptr;
}

TemplateEntryPtr EndpointRegistry::findTemplate(std::string_view id) const {
  const auto state = state_.get();
  const auto found = state->templates.find(id);
  return found == state->templates.end() ? nullptr : found->second;
}

std::vector<EndpointEntryPtr> EndpointRegistry::entries() const {
  const auto state = state_.get();
  std::vector<EndpointEntryPtr> entries;
  for (const auto& [id, entry] : state->endpoints) entries.push_back(entry);
  return entries;
}

std::vector<EndpointPtr> EndpointRegistry::all() const {
  std::vector<EndpointPtr> endpoints;
  for (const EndpointEntryPtr& entry : entries()) endpoints.push_back(entry->endpoint);
  return endpoints;
}

std::vector<TemplateEntryPtr> EndpointRegistry::templates() const {
  const auto state = state_.get();
  std::vector<TemplateEntryPtr> templates;
  for (const auto& [id, entry] : state->templates) templates.push_back(entry);
  return templates;
}

std::vector<EndpointId> EndpointRegistry::leaving() const {
  const auto state = state_.get();
  return {state->leaving.begin(), state->leaving.end()};
}

void EndpointRegistry::checkIds() {
  for (const auto& [id, endpoint] : fixed_) {
    if (deps_.records.find(kEndpointKind, id)) {
      throw ConfigError("endpoint." + id +
                        " is in the file, but the storage has an endpoint of that id: rename the one in the file");
    }
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

void EndpointRegistry::readChanges() {
  std::set<EndpointId> touched;
  const auto publish = [&] {
    if (touched.empty() && state_.get()->templates == records_.templates()) return;
    next_.templates = records_.templates();
    for (const EndpointId& id : touched) rebuild(id);
    state_.set(std::make_shared<State>(next_));
    for (const EndpointId& id : touched) {
      const EndpointPtr now = find(id);
      // Workers get a copy of their own, because isInUse counts references: a worker that keeps its
      // endpoint would look like a request.
      listener_->endpointChanged(id, now ? std::make_shared<Endpoint>(*now) : nullptr);
    }
  };
  try {
    // Scripts first: the records may need a write, and a storage that refuses writes must not keep a mended script out.
    followScripts(touched);
    records_.follow(touched);
  } catch (...) {
    publish();  // changes that were read are not read again
    throw;
  }
  publish();
}

// Rebuilds the endpoints whose script was missing or faulty and is good now, so that a halted release continues.
void EndpointRegistry::followScripts(std::set<EndpointId>& touched) const {
  for (const auto& [id, entry] : next_.endpoints) {
    const Endpoint& endpoint = *entry->endpoint;
    const EndpointSpec& spec = endpoint.spec;
    const bool isReleased = endpoint.release && endpoint.release->version == spec.version;
    if (isReleased || endpoint.runnable || parseImage(spec.image).kind != Image::Kind::lua) continue;
    if (checkImage(spec.image, deps_.resolver)) touched.insert(id);
  }
}

// Makes the published entry of an endpoint anew, from the file or from the records.
void EndpointRegistry::rebuild(const EndpointId& id) {
  const auto fixed = fixed_.find(id);
  const EndpointSpec* stored = records_.find(id);
  const bool leaves = stored != nullptr && stored->deleting;
  if (leaves) {
    next_.leaving.insert(id);
  } else {
    next_.leaving.erase(id);
  }
  if (fixed != fixed_.end()) {
    auto endpoint = std::make_shared<Endpoint>(*fixed->second);
    endpoint->spec.paused = records_.isPaused(id);
    next_.endpoints[id] = std::make_shared<EndpointEntry>(EndpointEntry{endpoint->spec, endpoint});
  } else if (stored == nullptr || leaves) {
    next_.endpoints.erase(id);
    announceEndpoint(id, nullptr);
  } else {
    const auto before = next_.endpoints.find(id);
    EndpointSpec spec = *stored;
    spec.paused = records_.isPaused(id);
    const auto of = next_.templates.find(spec.templateId);
    if (of != next_.templates.end()) {
      spec.image = of->second->form.imageName;
      spec.env = of->second->form.env;
      spec.container = containerOf(of->second->form);
    }
    const EndpointPtr endpoint =
        makeEndpoint(spec, deps_.resolver, before == next_.endpoints.end() ? nullptr : before->second->endpoint);
    announceEndpoint(id, endpoint);
    next_.endpoints[id] = std::make_shared<EndpointEntry>(EndpointEntry{std::move(spec), endpoint});
  }
}

}  // namespace jobq
