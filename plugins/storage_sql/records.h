// The store of small named JSON records with a version. Contract: `sdk/include/jobq/record_store.h`.
//
// Each change locks the row of the last version first, and keeps the lock until the commit. The changes therefore
// become visible in the order of their versions, names cannot be given twice, and a repeated call waits for the call
// before.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "jobq/call_id.h"
#include "jobq/error.h"
#include "jobq/record_store.h"
#include "storage_sql/rows.h"

namespace jobq::sql {

/// The stored version of a record, and the id of the call that made the version.
struct LastChange {
  std::uint64_t version;
  CallId change;

  /// Returns whether the change of `record` is this one.
  bool isOf(const Record& record) const { return record.change != 0 && record.change == change; }
};

/// Returns all records of the result.
template <class Query>
std::vector<Record> collectRecords(Query& query) {
  std::vector<Record> records;
  while (query.next()) records.push_back(recordOf(query));
  return records;
}

/// The store of records, over the statements of a storage: `Rows` is the RecordRows of the storage. Any thread may call
/// the methods.
template <class Rows>
class Records final : public RecordStore {
 public:
  explicit Records(const Rows& rows) : rows_(rows) {}

  CreateResult create(Record record) override {
    return rows_.writer.write([&](auto& step) -> CreateResult {
      const std::uint64_t version = lockNextVersion(step);
      if (const auto last = lastChange(step, record.kind, record.id)) {
        if (last->isOf(record)) return Stored{last->version};
        return NameTaken{record.id};
      }
      if (const auto holder = holderOfName(step, record)) return NameTaken{*holder};
      step.db.query(Rows::kUseVersion).bind(version).run();
      rows_.insert(step, record, version);
      // The record exists again: a reader of changes must see the record and not its removal.
      step.db.query(Rows::kForgetRemoval).bind(record.kind, record.id).run();
      return Stored{version};
    });
  }

  UpdateResult update(Record record, std::uint64_t expectedVersion) override {
    return rows_.writer.write([&](auto& step) -> UpdateResult {
      const std::uint64_t version = lockNextVersion(step);
      const auto last = lastChange(step, record.kind, record.id);
      if (!last) return NoRecord{};
      if (last->isOf(record)) return Stored{last->version};
      if (last->version != expectedVersion) return Conflict{};
      if (const auto holder = holderOfName(step, record)) return NameTaken{*holder};
      step.db.query(Rows::kUseVersion).bind(version).run();
      rows_.update(step, record, version);
      return Stored{version};
    });
  }

  bool remove(std::string_view kind, std::string_view id) override {
    return rows_.writer.write([&](auto& step) {
      const std::uint64_t version = lockNextVersion(step);
      if (step.db.query(Rows::kRemove).bind(kind, id).run() == 0) return false;
      step.db.query(Rows::kUseVersion).bind(version).run();
      step.db.query(Rows::kNoteRemoval).bind(kind, id, version, step.now).run();
      return true;
    });
  }

  std::optional<Record> find(std::string_view kind, std::string_view id) override {
    return rows_.readers.read([&](auto& connection) -> std::optional<Record> {
      auto query = connection.query(Rows::kFind);
      if (!query.bind(kind, id).next()) return std::nullopt;
      return recordOf(query);
    });
  }

  std::vector<Record> list(std::string_view kind) override {
    return rows_.readers.read([&](auto& connection) {
      auto query = connection.query(Rows::kList);
      return collectRecords(query.bind(kind));
    });
  }

  Changes changedSince(std::string_view kind, std::uint64_t version) override {
    // Versions beyond the integers of the database lie in the future, like the last integer.
    version = std::min<std::uint64_t>(version, std::numeric_limits<std::int64_t>::max());
    if (!rows_.hasChangedSince(version)) return {{}, {}, version};
    return rows_.readers.read([&](auto& connection) {
      const typename Rows::Snapshot snapshot(connection);
      Changes changes;
      {
        auto query = connection.query(Rows::kChanged);
        changes.changed = collectRecords(query.bind(kind, version));
      }
      {
        auto query = connection.query(Rows::kRemoved);
        query.bind(kind, version);
        while (query.next()) changes.removed.push_back(query.text(0));
      }
      auto query = connection.query(Rows::kLastVersion);
      changes.version = query.next() ? query.count(0) : version;
      return changes;
    });
  }

 private:
  /// Locks the last version of all records, and returns the version after it. The number grows within the transaction,
  /// so a version that was rolled back was never visible.
  template <class Step>
  std::uint64_t lockNextVersion(Step& step) const {
    auto query = step.db.query(Rows::kLockVersion);
    if (!query.next()) throw StorageError("the database has lost its record version; restore a backup");
    return query.count(0) + 1;
  }

  template <class Step>
  std::optional<LastChange> lastChange(Step& step, std::string_view kind, std::string_view id) const {
    auto query = step.db.query(Rows::kLastChange);
    if (!query.bind(kind, id).next()) return std::nullopt;
    return LastChange{query.count(0), query.count(1)};
  }

  template <class Step>
  std::optional<std::string> holderOfName(Step& step, const Record& record) const {
    if (record.name.empty()) return std::nullopt;
    auto query = step.db.query(Rows::kHolderOfName);
    if (!query.bind(record.kind, record.name, record.id).next()) return std::nullopt;
    return query.text(0);
  }

  const Rows rows_;
};

}  // namespace jobq::sql
