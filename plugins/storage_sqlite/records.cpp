#include "records.h"

#include <algorithm>
#include <limits>

#include "jobq/call_id.h"
#include "storage_sql/rows.h"

namespace jobq::sqlite {
namespace {

#define JOBQ_RECORD_COLUMNS "kind, id, name, body, version, changed_at"

/// Returns the next version. The number grows within the transaction, so a version that was rolled back was never
/// visible.
std::uint64_t nextVersion(Step& step) {
  Query query = step.db.query("UPDATE number SET value = value + 1 WHERE name = 'record_version' RETURNING value");
  if (!query.next()) throw StorageError("the database has lost its record version");
  const auto version = static_cast<std::uint64_t>(query.integer(0));
  query.run();
  return version;
}

std::optional<std::string> holderOfName(Step& step, const Record& record) {
  if (record.name.empty()) return std::nullopt;
  Query query = step.db.query("SELECT id FROM record WHERE kind = ?1 AND name = ?2 AND name <> '' AND id <> ?3");
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
  Query query = step.db.query("SELECT version, change FROM record WHERE kind = ?1 AND id = ?2");
  if (!query.bind(kind, id).next()) return std::nullopt;
  return LastChange{static_cast<std::uint64_t>(query.integer(0)), static_cast<CallId>(query.integer(1))};
}

CreateResult createNow(Step& step, const Record& record) {
  if (const auto last = lastChange(step, record.kind, record.id)) {
    if (last->isOf(record)) return Stored{last->version};
    return NameTaken{record.id};
  }
  if (const auto holder = holderOfName(step, record)) return NameTaken{*holder};
  const std::uint64_t version = nextVersion(step);
  step.db.query("INSERT INTO record (" JOBQ_RECORD_COLUMNS ", change) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)")
      .bind(record.kind, record.id, record.name, Bytes{record.body}, version, step.now, record.change)
      .run();
  // The record exists again: a reader of changes must see the record and not its removal.
  step.db.query("DELETE FROM record_removed WHERE kind = ?1 AND id = ?2").bind(record.kind, record.id).run();
  return Stored{version};
}

UpdateResult updateNow(Step& step, const Record& record, std::uint64_t expected) {
  const auto last = lastChange(step, record.kind, record.id);
  if (!last) return NoRecord{};
  if (last->isOf(record)) return Stored{last->version};
  if (last->version != expected) return Conflict{};
  if (const auto holder = holderOfName(step, record)) return NameTaken{*holder};
  const std::uint64_t version = nextVersion(step);
  step.db
      .query(
          "UPDATE record SET name = ?3, body = ?4, version = ?5, changed_at = ?6, change = ?7 WHERE kind = ?1 AND id = "
          "?2")
      .bind(record.kind, record.id, record.name, Bytes{record.body}, version, step.now, record.change)
      .run();
  return Stored{version};
}

bool removeNow(Step& step, std::string_view kind, std::string_view id) {
  if (!lastChange(step, kind, id)) return false;
  step.db.query("DELETE FROM record WHERE kind = ?1 AND id = ?2").bind(kind, id).run();
  step.db.query("INSERT OR REPLACE INTO record_removed (kind, id, version, removed_at) VALUES (?1, ?2, ?3, ?4)")
      .bind(kind, id, nextVersion(step), step.now)
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
    Query query = connection.query("SELECT " JOBQ_RECORD_COLUMNS " FROM record WHERE kind = ?1 AND id = ?2");
    if (!query.bind(kind, id).next()) return std::nullopt;
    return sql::recordOf(query);
  });
}

std::vector<Record> Records::list(std::string_view kind) {
  return readers_.read([&](Connection& connection) {
    Query query = connection.query("SELECT " JOBQ_RECORD_COLUMNS " FROM record WHERE kind = ?1 ORDER BY id");
    query.bind(kind);
    std::vector<Record> records;
    while (query.next()) records.push_back(sql::recordOf(query));
    return records;
  });
}

Changes Records::changedSince(std::string_view kind, std::uint64_t version) {
  // Versions beyond SQLite's integers lie in the future, like the last integer.
  version = std::min<std::uint64_t>(version, std::numeric_limits<std::int64_t>::max());
  return readers_.read([&](Connection& connection) {
    const Snapshot snapshot(connection);
    Changes changes;
    {
      Query query = connection.query("SELECT " JOBQ_RECORD_COLUMNS
                                     " FROM record WHERE kind = ?1 AND version > ?2 ORDER BY version");
      query.bind(kind, version);
      while (query.next()) changes.changed.push_back(sql::recordOf(query));
    }
    {
      Query query = connection.query("SELECT id FROM record_removed WHERE kind = ?1 AND version > ?2 ORDER BY version");
      query.bind(kind, version);
      while (query.next()) changes.removed.push_back(query.text(0));
    }
    Query query = connection.query("SELECT value FROM number WHERE name = 'record_version'");
    changes.version = query.next() ? static_cast<std::uint64_t>(query.integer(0)) : version;
    return changes;
  });
}

}  // namespace jobq::sqlite
