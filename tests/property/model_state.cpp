#include "model_state.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "testkit/plain_receiver_names.h"

namespace jobq::model {

const Entry* ModelState::find(std::string_view id) const {
  for (const Entry& entry : entries) {
    if (entry.job.id == id && entry.job.expiresAt > now) return &entry;
  }
  return nullptr;
}

Entry* ModelState::find(std::string_view id) { return const_cast<Entry*>(std::as_const(*this).find(id)); }

const Entry* ModelState::find(const JobKey& key) const {
  const Entry* entry = find(key.id);
  return entry != nullptr && entry->job.endpoint == key.endpoint ? entry : nullptr;
}

Entry* ModelState::find(const JobKey& key) { return const_cast<Entry*>(std::as_const(*this).find(key)); }

Entry* ModelState::held(const LeaseRef& lease) {
  Entry* entry = find(lease.job);
  const bool held = entry != nullptr && entry->job.state == JobState::inProgress && entry->job.attempt == lease.attempt;
  return held ? entry : nullptr;
}

std::vector<const Entry*> ModelState::queue(std::string_view endpoint) const {
  std::vector<const Entry*> queue;
  for (const Entry& entry : entries) {
    const Job& job = entry.job;
    if (job.endpoint == endpoint && job.state == JobState::inQueue && job.expiresAt > now) queue.push_back(&entry);
  }
  std::sort(queue.begin(), queue.end(), [](const Entry* a, const Entry* b) { return placeOf(*a) < placeOf(*b); });
  return queue;
}

void ModelState::end(Entry& entry, Trigger trigger, std::string error, std::string output) {
  Job& job = entry.job;
  job.state = next(job.state, trigger).value();
  job.finishedAt = now;
  job.progress.clear();
  job.error = std::move(error);
  job.output = std::move(output);
  const bool hasFailed = job.state == JobState::failed || job.state == JobState::timedOut;
  if (!entry.expiryFixed && hasFailed && entry.spec.retentionFailed) {
    job.expiresAt = now + *entry.spec.retentionFailed;
  } else if (!entry.expiryFixed) {
    job.expiresAt = std::min(job.expiresAt, now + entry.spec.retention);
  }
  Counters& counted = counters[job.endpoint];
  if (job.state == JobState::completed) ++counted.completed;
  if (job.state == JobState::failed || job.state == JobState::timedOut) ++counted.failed;
  if (entry.spec.webhook.empty()) return;
  Owed owed;
  owed.delivery.id = job.id + "." + std::to_string(job.attempt);
  owed.delivery.url = entry.spec.webhook;
  owed.delivery.host = testkit::PlainReceiverNames().nameOf(entry.spec.webhook);
  owed.delivery.job = job;
  owed.delivery.job.apiKeyId.clear();  // a delivery does not name the key
  owed.delivery.input = entry.spec.input;
  owed.delivery.dueAt = now;
  owed.owedAt = now;
  outbox.push_back(std::move(owed));
}

void ModelState::removeIf(const std::function<bool(const Entry&)>& goes) {
  entries.erase(std::remove_if(entries.begin(), entries.end(), goes), entries.end());
}

bool ModelState::hasQueue(std::string_view endpoint) const {
  return std::any_of(entries.begin(), entries.end(), [&](const Entry& entry) {
    return entry.job.endpoint == endpoint && entry.job.state == JobState::inQueue;
  });
}

bool ModelState::hasUnswept(std::string_view endpoint) const {
  return std::any_of(entries.begin(), entries.end(),
                     [&](const Entry& entry) { return entry.job.endpoint == endpoint && entry.job.expiresAt <= now; });
}

}  // namespace jobq::model
