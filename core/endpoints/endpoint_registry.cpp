#include "core/endpoints/endpoint_registry.h"

#include <algorithm>
#include <atomic>
#include <future>
#include <system_error>

#include "core/base/secret_box.h"
#include "core/endpoints/image.h"
#include "jobq/error.h"

namespace jobq {
namespace {

constexpr std::size_t kWriters = 16;

}  // namespace

EndpointRegistry::EndpointRegistry(Deps deps, const std::vector<EndpointConfig>& fixed, Listener listener)
    : deps_(std::move(deps)), listener_(std::move(listener)) {
  // The default filters are checked here on their own, because every endpoint of the file may have other filters while
  // endpoints of the API may not.
  if (const auto fault = filterFault(deps_.resolver.filters, deps_.resolver)) throw ConfigError("filters: " + *fault);
  for (const EndpointConfig& config : fixed) {
    fixed_.emplace(config.id, makeStatic(config, deps_.resolver));
    rebuild(config.id);
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
  for (const auto& [id, entry] : fixed_) {
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
    takeIn();
  } catch (...) {
    done();
    throw;
  }
  done();
}

bool EndpointRegistry::showChange() {
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

void EndpointRegistry::takeIn() {
  std::set<EndpointId> touched;
  const auto publish = [&] {
    if (touched.empty() && state_.get()->templates == next_.templates) return;
    for (const EndpointId& id : touched) rebuild(id);
    state_.set(std::make_shared<State>(next_));
    for (const EndpointId& id : touched) {
      const EndpointPtr now = find(id);
      // Workers get a copy of their own, because isInUse counts references: a worker that keeps its
      // endpoint would look like a request.
      listener_(id, now ? std::make_shared<Endpoint>(*now) : nullptr);
    }
  };
  try {
    do {
      follow(touched);
    } while (decideRemovals() || releaseTemplates());
  } catch (...) {
    publish();  // changes that were read are not read again
    throw;
  }
  publish();
}

void EndpointRegistry::follow(std::set<EndpointId>& touched) {
  followTemplates(touched);
  followEndpoints(touched);
  followPauses(touched);
  followScripts(touched);
}

void EndpointRegistry::followTemplates(std::set<EndpointId>& touched) {
  const Changes changes = deps_.records.changedSince(kTemplateKind, templatesSeen_);
  std::set<std::string> changed(changes.removed.begin(), changes.removed.end());
  const auto forget = [this](const std::string& id) {
    next_.templates.erase(id);
    unwanted_.erase(id);
    gone_.erase(id);
  };
  for (const std::string& id : changes.removed) forget(id);
  for (const Record& record : changes.changed) {
    try {
      auto entry = std::make_shared<TemplateEntry>(TemplateEntry{templateOf(record, deps_.box), record.version});
      changed.insert(record.id);
      forget(record.id);
      if (isGone(entry->form)) {
        gone_.insert(record.id);
        continue;
      }
      if (entry->form.removal == kRemovalAsked) unwanted_.insert(record.id);
      next_.templates[record.id] = std::move(entry);
    } catch (const Error& error) {
      logDamage(error);
    }
  }
  templatesSeen_ = changes.version;
  if (changed.empty()) return;
  for (const auto& [id, entry] : stored_) {
    if (changed.contains(entry.form.templateId)) touched.insert(id);
  }
}

void EndpointRegistry::followEndpoints(std::set<EndpointId>& touched) {
  const Changes changes = deps_.records.changedSince(kEndpointKind, endpointsSeen_);
  for (const EndpointId& id : changes.removed) {
    if (stored_.erase(id) > 0) touched.insert(id);
  }
  for (const Record& record : changes.changed) {
    try {
      EndpointSpec form = endpointSpecOf(record, deps_.box);
      EndpointEntry& entry = stored_[record.id];
      entry.form = std::move(form);
      entry.record = record.version;
      touched.insert(record.id);
    } catch (const Error& error) {
      if (stored_.erase(record.id) > 0) touched.insert(record.id);
      logDamage(error);
    }
  }
  endpointsSeen_ = changes.version;
}

void EndpointRegistry::followPauses(std::set<EndpointId>& touched) {
  const Changes changes = deps_.records.changedSince(kPauseKind, pausesSeen_);
  for (const EndpointId& id : changes.removed) {
    if (paused_.erase(id) > 0) touched.insert(id);
  }
  for (const Record& record : changes.changed) {
    if (paused_.insert(record.id).second) touched.insert(record.id);
  }
  pausesSeen_ = changes.version;
}

// Rebuilds the endpoints whose script was missing or faulty and is good now, so that a halted release continues.
void EndpointRegistry::followScripts(std::set<EndpointId>& touched) const {
  for (const auto& [id, entry] : next_.endpoints) {
    const Endpoint& endpoint = *entry->endpoint;
    const bool isReleased = endpoint.release && endpoint.release->version == endpoint.version;
    if (isReleased || endpoint.fault.empty() || parseImage(endpoint.image).kind != Image::Kind::lua) continue;
    if (!imageFault(endpoint.image, deps_.resolver)) touched.insert(id);
  }
}

// Decides the removals of templates (see kRemovalAsked). Endpoints are followed after templates, so every endpoint is
// known whose creation did not see the request for removal. Returns true if a record was written, here or by another
// node.
bool EndpointRegistry::decideRemovals() {
  const bool any = !unwanted_.empty() || !gone_.empty();
  for (const std::string& id : unwanted_) {
    const TemplateEntryPtr& entry = next_.templates.at(id);
    Template form = entry->form;
    const bool used = std::any_of(stored_.begin(), stored_.end(), [&id](const auto& stored) {
      return stored.second.form.templateId == id && !stored.second.form.deleting;
    });
    form.removal = used ? "" : kRemovalDecided;
    (void)deps_.records.update(toRecord(form, deps_.box), entry->record);
  }
  for (const std::string& id : gone_) deps_.records.remove(kTemplateKind, id);
  return any;
}

// Raises the version of each endpoint with a changed template. The first node to see a newer template stores the new
// version, so a node that dies in between leaves no endpoint at the old version; only one of several nodes succeeds.
// Returns true if a record was written, here or by another node.
bool EndpointRegistry::releaseTemplates() {
  std::vector<EndpointEntry> raised;
  for (const auto& [id, entry] : stored_) {
    const auto of = next_.templates.find(entry.form.templateId);
    if (entry.form.deleting || of == next_.templates.end()) continue;
    const auto record = static_cast<std::int64_t>(of->second->record);
    if (entry.form.templateRecord >= record) continue;
    EndpointEntry& next = raised.emplace_back(entry);
    ++next.form.version;
    next.form.templateRecord = record;
  }
  if (raised.empty()) return false;
  store(raised);
  return true;
}

// Writes all records in parallel: a storage puts concurrent writes into one commit, and 500 commits in a row would take
// seconds. Throws the exception of the first failure; the stored part is read back later.
void EndpointRegistry::store(const std::vector<EndpointEntry>& raised) {
  std::atomic<std::size_t> next = 0;
  const auto write = [&] {
    for (std::size_t i = next++; i < raised.size(); i = next++) {
      (void)deps_.records.update(toRecord(raised[i].form, deps_.box), raised[i].record);
    }
  };
  std::vector<std::future<void>> writers;
  try {
    while (writers.size() < std::min(kWriters, raised.size())) {
      writers.push_back(std::async(raised.size() == 1 ? std::launch::deferred : std::launch::async, write));
    }
  } catch (const std::system_error&) {
    // No further thread can start: the existing threads, or this thread, do all writes.
    if (writers.empty()) write();
  }
  std::exception_ptr failure;
  for (std::future<void>& writer : writers) {
    try {
      writer.get();
    } catch (...) {
      if (!failure) failure = std::current_exception();
    }
  }
  if (failure) std::rethrow_exception(failure);
}

// Makes the published entry of an endpoint anew, from the file or from the records.
void EndpointRegistry::rebuild(const EndpointId& id) {
  const auto fixed = fixed_.find(id);
  const auto stored = stored_.find(id);
  const bool leaves = stored != stored_.end() && stored->second.form.deleting;
  if (leaves) {
    next_.leaving.insert(id);
  } else {
    next_.leaving.erase(id);
  }
  const auto before = next_.endpoints.find(id);
  const EndpointPtr was = before == next_.endpoints.end() ? nullptr : before->second->endpoint;
  if (fixed != fixed_.end()) {
    EndpointEntry entry = fixed->second;
    entry.form.paused = paused_.contains(id);
    auto endpoint = std::make_shared<Endpoint>(*entry.endpoint);
    endpoint->paused = entry.form.paused;
    entry.endpoint = std::move(endpoint);
    next_.endpoints[id] = std::make_shared<EndpointEntry>(std::move(entry));
  } else if (stored == stored_.end() || leaves) {
    next_.endpoints.erase(id);
    announceEndpoint(id, nullptr);
  } else {
    EndpointEntry entry = stored->second;
    entry.form.paused = paused_.contains(id);
    const auto of = next_.templates.find(entry.form.templateId);
    WorkerSpec workerSpec{entry.form.templateId, "", {}};
    if (of != next_.templates.end()) {
      workerSpec.image = of->second->form.imageName;
      workerSpec.env = entry.form.env = of->second->form.env;
    }
    entry.endpoint = makeEndpoint(entry.form, workerSpec, deps_.resolver, was);
    entry.form.fault = entry.endpoint->fault;
    announceEndpoint(id, entry.endpoint);
    next_.endpoints[id] = std::make_shared<EndpointEntry>(std::move(entry));
  }
}

void EndpointRegistry::logDamage(const std::exception& error) const {
  deps_.log.write(LogLevel::error, "endpoints.damaged", error.what());
}

}  // namespace jobq
