#include <algorithm>

#include "memory_stores.h"

namespace jobq::memory {
namespace {

constexpr Millis kRememberRemovals{86'400'000};

/// Returns whether the change of `record` is the last change of the stored record.
bool isRepeated(const Record& record, const Record& stored) {
  return record.change != 0 && record.change == stored.change;
}

/// Returns a copy of the stored record for a caller, without the id of its last change.
Record copied(const Record& stored) {
  Record copy = stored;
  copy.change = 0;
  return copy;
}

}  // namespace

std::optional<std::string> Records::holderOf(const Record& record) const {
  if (record.name.empty()) return std::nullopt;
  for (const auto& [key, other] : records_) {
    if (other.kind == record.kind && other.name == record.name && other.id != record.id) return other.id;
  }
  return std::nullopt;
}

CreateResult Records::create(Record record) {
  Lock lock(mutex_);
  const std::pair key(record.kind, record.id);
  if (const auto found = records_.find(key); found != records_.end()) {
    if (isRepeated(record, found->second)) return Stored{found->second.version};
    return NameTaken{record.id};
  }
  if (auto other = holderOf(record)) return NameTaken{std::move(*other)};
  record.version = ++version_;
  record.changedAt = clock_.now();
  records_.emplace(key, std::move(record));
  return Stored{version_};
}

UpdateResult Records::update(Record record, std::uint64_t expectedVersion) {
  Lock lock(mutex_);
  const auto found = records_.find(std::pair(record.kind, record.id));
  if (found == records_.end()) return NoRecord{};
  if (isRepeated(record, found->second)) return Stored{found->second.version};
  if (found->second.version != expectedVersion) return Conflict{};
  if (auto other = holderOf(record)) return NameTaken{std::move(*other)};
  record.version = ++version_;
  record.changedAt = clock_.now();
  found->second = std::move(record);
  return Stored{version_};
}

std::optional<Record> Records::find(std::string_view kind, std::string_view id) {
  Lock lock(mutex_);
  const auto found = records_.find(std::pair(std::string(kind), std::string(id)));
  return found == records_.end() ? std::nullopt : std::optional(copied(found->second));
}

std::vector<Record> Records::list(std::string_view kind) {
  Lock lock(mutex_);
  std::vector<Record> listed;
  for (const auto& [key, record] : records_) {
    if (record.kind == kind) listed.push_back(copied(record));
  }
  return listed;
}

bool Records::remove(std::string_view kind, std::string_view id) {
  Lock lock(mutex_);
  if (records_.erase(std::pair(std::string(kind), std::string(id))) == 0) return false;
  const Instant now = clock_.now();
  forgetRemovals(now);
  // An id is named once, also after several removals.
  std::erase_if(removals_, [kind, id](const auto& entry) {
    const Removal& old = entry.second;
    return old.kind == kind && old.id == id;
  });
  removals_.emplace(++version_, Removal{std::string(kind), std::string(id), now});
  return true;
}

// Called by remove() and changedSince(), because no sweep reaches the removals.
void Records::forgetRemovals(Instant now) {
  while (!removals_.empty() && removals_.begin()->second.at + kRememberRemovals <= now) {
    removals_.erase(removals_.begin());
  }
}

Changes Records::changedSince(std::string_view kind, std::uint64_t version) {
  Lock lock(mutex_);
  forgetRemovals(clock_.now());
  Changes changes;
  changes.version = version_;
  for (const auto& [key, record] : records_) {
    if (record.kind == kind && record.version > version) changes.changed.push_back(copied(record));
  }
  std::sort(changes.changed.begin(), changes.changed.end(),
            [](const Record& a, const Record& b) { return a.version < b.version; });
  for (auto at = removals_.upper_bound(version); at != removals_.end(); ++at) {
    const bool back = records_.contains(std::pair(at->second.kind, at->second.id));
    if (at->second.kind == kind && !back) changes.removed.push_back(at->second.id);
  }
  return changes;
}

}  // namespace jobq::memory
