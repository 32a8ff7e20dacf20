#include "record_model.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <utility>

namespace jobq::model {
namespace {

constexpr Millis kRemembered{86'400'000};

}  // namespace

std::uint64_t Versions::ofChange(std::uint64_t mine, std::uint64_t said) {
  const auto known = ofChanges_.find(mine);
  if (known != ofChanges_.end()) return known->second;
  if (said == 0) return mine;
  const auto at = moments_.lower_bound(said);
  // Every last change of an earlier moment came before this change, and every later moment includes this change.
  if (at != moments_.begin() && std::prev(at)->second >= mine) return 0;
  if (at != moments_.end() && at->second < mine) return 0;
  if (at != moments_.end() && at->first == said && at->second != mine) return 0;
  ofChanges_[mine] = said;
  moments_[said] = mine;
  return said;
}

std::uint64_t Versions::ofMoment(std::uint64_t mine, std::uint64_t said) {
  if (said == 0) return mine;
  const auto last = ofChanges_.find(mine);
  if (last != ofChanges_.end() && last->second > said) return 0;
  const auto at = moments_.lower_bound(said);
  if (at != moments_.begin() && std::prev(at)->second > mine) return 0;
  if (at != moments_.end() && at->second < mine) return 0;
  if (at != moments_.end() && at->first == said && at->second != mine) return 0;
  moments_[said] = mine;
  return said;
}

std::uint64_t Versions::change(std::uint64_t said) const {
  const std::uint64_t mine = moment(said);
  const auto known = ofChanges_.find(mine);
  return known != ofChanges_.end() && known->second == said ? mine : 0;
}

std::uint64_t Versions::moment(std::uint64_t said) const {
  const auto later = moments_.upper_bound(said);
  return later == moments_.begin() ? 0 : std::prev(later)->second;
}

std::optional<std::string> RecordModel::holderOf(const Record& record) const {
  for (const auto& [key, other] : records_) {
    const bool same = !record.name.empty() && other.name == record.name;
    if (same && other.kind == record.kind && other.id != record.id) return other.id;
  }
  return std::nullopt;
}

bool RecordModel::isRepeated(const Record& record) const {
  return record.change != 0 && lastCalls_.at({record.kind, record.id}) == record.change;
}

Stored RecordModel::store(Record record, Instant now) {
  record.version = ++version_;
  record.changedAt = now;
  const Key key(record.kind, record.id);
  lastCalls_[key] = std::exchange(record.change, 0);
  records_[key] = std::move(record);
  return {version_};
}

CreateResult RecordModel::create(Record record, Instant now) {
  if (const auto found = records_.find({record.kind, record.id}); found != records_.end()) {
    if (isRepeated(record)) return Stored{found->second.version};
    return NameTaken{record.id};
  }
  if (const auto holder = holderOf(record)) return NameTaken{*holder};
  return store(std::move(record), now);
}

UpdateResult RecordModel::update(Record record, std::uint64_t expectedVersion, Instant now) {
  const auto found = records_.find({record.kind, record.id});
  if (found == records_.end()) return NoRecord{};
  if (isRepeated(record)) return Stored{found->second.version};
  if (found->second.version != expectedVersion) return Conflict{};
  if (const auto holder = holderOf(record)) return NameTaken{*holder};
  return store(std::move(record), now);
}

std::optional<Record> RecordModel::find(const std::string& kind, const std::string& id) const {
  const auto found = records_.find({kind, id});
  return found != records_.end() ? std::optional(found->second) : std::nullopt;
}

std::vector<Record> RecordModel::list(const std::string& kind) const {
  std::vector<Record> listed;
  for (const auto& [key, record] : records_) {
    if (record.kind == kind) listed.push_back(record);
  }
  return listed;
}

bool RecordModel::remove(const std::string& kind, const std::string& id, Instant now) {
  if (records_.erase({kind, id}) == 0) return false;
  removals_[{kind, id}] = {++version_, now};
  return true;
}

Changes RecordModel::changedSince(const std::string& kind, std::uint64_t version, Instant now) const {
  Changes changes;
  changes.version = version_;
  for (const Record& record : list(kind)) {
    if (record.version > version) changes.changed.push_back(record);
  }
  std::sort(changes.changed.begin(), changes.changed.end(),
            [](const Record& a, const Record& b) { return a.version < b.version; });
  for (const auto& [key, removal] : removals_) {
    const bool told = removal.version > version && removal.at + kRemembered > now && !records_.contains(key);
    if (key.first == kind && told) changes.removed.push_back(key.second);
  }
  return changes;
}

CreateResult RecordModel::asTold(CreateResult right, const CreateResult& said) {
  auto* mine = std::get_if<Stored>(&right);
  const auto* theirs = std::get_if<Stored>(&said);
  if (mine != nullptr && theirs != nullptr) mine->version = versions_.ofChange(mine->version, theirs->version);
  return right;
}

UpdateResult RecordModel::asTold(UpdateResult right, const UpdateResult& said) {
  auto* mine = std::get_if<Stored>(&right);
  const auto* theirs = std::get_if<Stored>(&said);
  if (mine != nullptr && theirs != nullptr) mine->version = versions_.ofChange(mine->version, theirs->version);
  return right;
}

std::optional<Record> RecordModel::asTold(std::optional<Record> right, const std::optional<Record>& said) {
  if (right && said) right->version = versions_.ofChange(right->version, said->version);
  return right;
}

std::vector<Record> RecordModel::asTold(std::vector<Record> right, const std::vector<Record>& said) {
  for (std::size_t i = 0; i < std::min(right.size(), said.size()); ++i) {
    if (right[i].id == said[i].id) right[i].version = versions_.ofChange(right[i].version, said[i].version);
  }
  return right;
}

Changes RecordModel::asTold(Changes right, const Changes& said, const std::string& kind, Instant now) {
  right.changed = asTold(std::move(right.changed), said.changed);
  right.version = versions_.ofMoment(right.version, said.version);
  for (const std::string& id : said.removed) {
    const auto removal = removals_.find({kind, id});
    if (removal == removals_.end() || records_.contains({kind, id})) continue;
    if (removal->second.at + kRemembered <= now) right.removed.push_back(id);
  }
  return right;
}

}  // namespace jobq::model
