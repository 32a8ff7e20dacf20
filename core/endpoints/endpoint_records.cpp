#include "core/endpoints/endpoint_records.h"

#include <algorithm>
#include <atomic>
#include <future>
#include <system_error>

#include "core/base/secret_box.h"
#include "core/endpoints/endpoint_record.h"
#include "jobq/error.h"

namespace jobq {
namespace {

constexpr std::size_t kWriters = 16;
// Each round reads what the former one, or another node, wrote. The next follow() continues after the last round.
constexpr int kMostRounds = 100;

}  // namespace

void EndpointRecords::follow(std::set<EndpointId>& touched) {
  for (int round = 0; round < kMostRounds; ++round) {
    followTemplates(touched);
    followEndpoints(touched);
    followPauses(touched);
    const bool decided = decideRemovals();
    const bool released = releaseTemplates();
    if (!decided && !released) return;
  }
}

const EndpointSpec* EndpointRecords::find(const EndpointId& id) const {
  const auto found = endpoints_.find(id);
  return found == endpoints_.end() ? nullptr : &found->second.spec;
}

void EndpointRecords::set(const EndpointId& id, StoredEndpoint stored) {
  users_[stored.spec.templateId].insert(id);
  unreleased_.insert(id);
  StoredEndpoint& place = endpoints_[id];
  if (place.spec.templateId != stored.spec.templateId) forgetUser(place.spec.templateId, id);
  place = std::move(stored);
}

void EndpointRecords::erase(const EndpointId& id) {
  const auto found = endpoints_.find(id);
  if (found == endpoints_.end()) return;
  forgetUser(found->second.spec.templateId, id);
  endpoints_.erase(found);
}

void EndpointRecords::forgetUser(const std::string& templateId, const EndpointId& user) {
  const auto users = users_.find(templateId);
  if (users != users_.end() && users->second.erase(user) > 0 && users->second.empty()) users_.erase(users);
}

// An endpoint counts as touched before its change: an exception between the two loses no change. The changes of a kind
// are read again after an exception.
void EndpointRecords::followTemplates(std::set<EndpointId>& touched) {
  const Changes changes = records_.changedSince(kTemplateKind, templatesSeen_);
  TemplateEntries::Changes templates;
  const auto forget = [&](const std::string& id) {
    templates[id] = nullptr;
    unwanted_.erase(id);
    gone_.erase(id);
  };
  for (const std::string& id : changes.removed) forget(id);
  for (const Record& record : changes.changed) {
    try {
      auto entry = std::make_shared<TemplateEntry>(TemplateEntry{templateOf(record, box_), record.version});
      forget(record.id);
      if (isGone(entry->form)) {
        gone_.insert(record.id);
        continue;
      }
      if (entry->form.removal == kRemovalAsked) unwanted_.insert(record.id);
      templates[record.id] = std::move(entry);
    } catch (const Error& error) {
      unwanted_.erase(record.id);  // no removal can be decided from a record that cannot be read
      logDamage(error);
    }
  }
  for (const auto& [id, entry] : templates) {
    const auto users = users_.find(id);
    if (users == users_.end()) continue;
    touched.insert(users->second.begin(), users->second.end());
    unreleased_.insert(users->second.begin(), users->second.end());
  }
  templates_.apply(templates);
  templatesSeen_ = changes.version;
}

void EndpointRecords::followEndpoints(std::set<EndpointId>& touched) {
  const Changes changes = records_.changedSince(kEndpointKind, endpointsSeen_);
  for (const EndpointId& id : changes.removed) {
    if (find(id) != nullptr) touched.insert(id);
    erase(id);
  }
  for (const Record& record : changes.changed) {
    touched.insert(record.id);
    try {
      set(record.id, {endpointSpecOf(record, box_), record.version});
    } catch (const Error& error) {
      erase(record.id);
      logDamage(error);
    }
  }
  endpointsSeen_ = changes.version;
}

void EndpointRecords::followPauses(std::set<EndpointId>& touched) {
  const Changes changes = records_.changedSince(kPauseKind, pausesSeen_);
  for (const EndpointId& id : changes.removed) {
    if (isPaused(id)) touched.insert(id);
    paused_.erase(id);
  }
  for (const Record& record : changes.changed) {
    if (!isPaused(record.id)) touched.insert(record.id);
    paused_.insert(record.id);
  }
  pausesSeen_ = changes.version;
}

// Decides the removals of templates (see kRemovalAsked). Endpoints are followed after templates, so every endpoint is
// known whose creation did not see the request for removal. Returns true if a record was written, here or by another
// node.
bool EndpointRecords::decideRemovals() {
  const bool any = !unwanted_.empty() || !gone_.empty();
  for (const std::string& id : unwanted_) {
    const TemplateEntryPtr entry = templates_.find(id);
    Template form = entry->form;
    const auto users = users_.find(id);
    const bool used = users != users_.end() && std::ranges::any_of(users->second, [this](const EndpointId& user) {
                        const EndpointSpec* const spec = find(user);
                        return spec != nullptr && !spec->deleting;
                      });
    form.removal = used ? "" : kRemovalDecided;
    (void)records_.update(toRecord(form, box_), entry->record);
  }
  for (const std::string& id : gone_) records_.remove(kTemplateKind, id);
  return any;
}

// Raises the version of each endpoint with a changed template. The first node to see a newer template stores the new
// version, so a node that dies in between leaves no endpoint at the old version; only one of several nodes succeeds.
// Returns true if a record was written, here or by another node.
bool EndpointRecords::releaseTemplates() {
  std::vector<StoredEndpoint> raised;
  for (auto at = unreleased_.begin(); at != unreleased_.end();) {
    const auto entry = endpoints_.find(*at);
    const TemplateEntryPtr of = entry == endpoints_.end() ? nullptr : templates_.find(entry->second.spec.templateId);
    if (!of || entry->second.spec.deleting || entry->second.spec.templateRecord >= of->record) {
      at = unreleased_.erase(at);
      continue;
    }
    StoredEndpoint& next = raised.emplace_back(entry->second);
    ++next.spec.version;
    next.spec.templateRecord = of->record;
    ++at;  // until the raised record is read: the write may fail
  }
  if (raised.empty()) return false;
  store(raised);
  return true;
}

// Writes all records in parallel: a storage puts concurrent writes into one commit, and 500 commits in a row would take
// seconds. Throws the exception of the first failure; the stored part is read back later.
void EndpointRecords::store(const std::vector<StoredEndpoint>& raised) {
  std::atomic<std::size_t> next = 0;
  const auto write = [&] {
    for (std::size_t i = next++; i < raised.size(); i = next++) {
      (void)records_.update(toRecord(raised[i].spec, box_), raised[i].record);
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

void EndpointRecords::logDamage(const std::exception& error) const {
  log_.write(LogLevel::error, "endpoints.damaged", error.what());
}

}  // namespace jobq
