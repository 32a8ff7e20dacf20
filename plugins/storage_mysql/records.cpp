#include "records.h"

#include <algorithm>
#include <limits>

#include "jobq/call_id.h"
#include "storage_sql/rows.h"

namespace jobq::mysql {
namespace {

#define JOBQ_MYSQL_RECORD "kind, id, name, body, version, changed_at"

/// Locks the last version of all records, and returns the version behind.
std::uint64_t lockNextVersion(Step& step) {
  Query query = step.db.query("SELECT value FROM counted WHERE name = 'record_version' FOR UPDATE");
  if (!query.next()) throw StorageError("the database has lost its record version; restore a backup");
  return query.count(0) + 1;
}

void useVersion(Step& step, std::uint64_t version) {
  step.db.query("UPDATE counted SET value = ? WHERE name = 'record_version'").bind(version).run();
}

std::optional<std::string> holderOfName(Step& step, const Record& record) {
  if (record.name.empty()) return std::nullopt;
  Query query = step.db.query("SELECT id FROM record WHERE kind = ? AND name = ? AND id <> ?");
  if (!query.bind(record.kind, record.name, record.id).next()) return std::nullopt;
  return query.text(0);
}

/// The stored version of a record, and the id of the call that made it.
struct LastChange {
  std::uint64_t version;
  CallId change;

  /// Returns whether the change of `record` is this one.
  bool isOf(const Record& record) const { return record.change != 0 && record.change == change; }
};

std::optional<LastChange> lastChange(Step& step, std::string_view kind, std::string_view id) {
  Query query = step.db.query("SELECT version, change_id FROM record WHERE kind = ? AND id = ?");
  if (!query.bind(kind, id).next()) return std::nullopt;
  return LastChange{query.count(0), query.count(1)};
}

CreateResult createNow(Step& step, const Record& record) {
  const std::uint64_t version = lockNextVersion(step);
  if (const auto last = lastChange(step, record.kind, record.id)) {
    if (last->isOf(record)) return Stored{last->version};
    return NameTaken{record.id};
  }
  if (const auto holder = holderOfName(step, record)) return NameTaken{*holder};
  useVersion(step, version);
  step.db.query("INSERT INTO record (" JOBQ_MYSQL_RECORD ", change_id) VALUES (?, ?, ?, ?, ?, ?, ?)")
      .bind(record.kind, record.id, OrNull{record.name}, record.body, version, step.now, record.change)
      .run();
  // The record exists again: a reader of changes must see the record and not its removal.
  step.db.query("DELETE FROM record_removed WHERE kind = ? AND id = ?").bind(record.kind, record.id).run();
  return Stored{version};
}

UpdateResult updateNow(Step& step, const Record& record, std::uint64_t expected) {
  const std::uint64_t version = lockNextVersion(step);
  const auto last = lastChange(step, record.kind, record.id);
  if (!last) return NoRecord{};
  if (last->isOf(record)) return Stored{last->version};
  if (last->version != expected) return Conflict{};
  if (const auto holder = holderOfName(step, record)) return NameTaken{*holder};
  useVersion(step, version);
  step.db
      .query(
          "UPDATE record SET name = ?, body = ?, version = ?, changed_at = ?, change_id = ? "
          "WHERE kind = ? AND id = ?")
      .bind(OrNull{record.name}, record.body, version, step.now, record.change, record.kind, record.id)
      .run();
  return Stored{version};
}

bool removeNow(Step& step, std::string_view kind, std::string_view id) {
  const std::uint64_t version = lockNextVersion(step);
  if (step.db.query("DELETE FROM record WHERE kind = ? AND id = ?").bind(kind, id).run() == 0) return false;
  useVersion(step, version);
  step.db.query("REPLACE INTO record_removed (kind, id, version, removed_at) VALUES (?, ?, ?, ?)")
      .bind(kind, id, version, step.now)
      .run();
  return true;
}

}  // namespace

CreateResult Records::create(Record record) {
  return writer_.write([&](Step& step) { return createNow(step, record); });
}

UpdateResult Records::update(Record record, std::uint64_t expectedVersion) {
  return writer_.write([&](Step& step) { return updateNow(step, record, expectedVersion); });
}

bool Records::remove(std::string_view kind, std::string_view id) {
  return writer_.write([&](Step& step) { return removeNow(step, kind, id); });
}

std::optional<Record> Records::find(std::string_view kind, std::string_view id) {
  return readers_.read([&](Connection& connection) -> std::optional<Record> {
    Query query = connection.query("SELECT " JOBQ_MYSQL_RECORD " FROM record WHERE kind = ? AND id = ?");
    if (!query.bind(kind, id).next()) return std::nullopt;
    return sql::recordOf(query);
  });
}

std::vector<Record> Records::list(std::string_view kind) {
  return readers_.read([&](Connection& connection) {
    Query query = connection.query("SELECT " JOBQ_MYSQL_RECORD " FROM record WHERE kind = ? ORDER BY id");
    query.bind(kind);
    std::vector<Record> records;
    while (query.next()) records.push_back(sql::recordOf(query));
    return records;
  });
}

namespace {

std::uint64_t lastVersion(Connection& connection) {
  Query query = connection.query("SELECT value FROM counted WHERE name = 'record_version'");
  return query.next() ? query.count(0) : 0;
}

}  // namespace

// Nodes ask often, and most answers are empty: the last version alone tells.
Changes Records::changedSince(std::string_view kind, std::uint64_t version) {
  // Versions beyond the database's integers lie in the future, like the last integer.
  version = std::min<std::uint64_t>(version, std::numeric_limits<std::int64_t>::max());
  const std::uint64_t last = glances_.read(kFreshGlance).recordVersion;
  if (last == version) return Changes{{}, {}, last};
  return readers_.read([&](Connection& connection) {
    Changes changes;
    const Snapshot snapshot(connection);
    {
      Query query =
          connection.query("SELECT " JOBQ_MYSQL_RECORD " FROM record WHERE kind = ? AND version > ? ORDER BY version");
      query.bind(kind, version);
      while (query.next()) changes.changed.push_back(sql::recordOf(query));
    }
    {
      Query query = connection.query("SELECT id FROM record_removed WHERE kind = ? AND version > ? ORDER BY version");
      query.bind(kind, version);
      while (query.next()) changes.removed.push_back(query.text(0));
    }
    changes.version = lastVersion(connection);
    return changes;
  });
}

}  // namespace jobq::mysql
