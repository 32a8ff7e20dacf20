// The statements of the store of records (`storage_sql/records.h`).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "connection/connection.h"
#include "connection/statement.h"
#include "jobq/error.h"
#include "jobq/record_store.h"
#include "reads/glance.h"
#include "reads/readers.h"
#include "storage_sql/records.h"
#include "writes/writer.h"

namespace jobq::mysql {

#define JOBQ_MYSQL_RECORD "kind, id, name, body, version, changed_at"

/// Everything here outlives the store.
struct RecordRows {
  using Snapshot = mysql::Snapshot;

  Writer& writer;
  Readers& readers;
  Glances& glances;

  static constexpr char kFind[] = "SELECT " JOBQ_MYSQL_RECORD " FROM record WHERE kind = ? AND id = ?";
  static constexpr char kList[] = "SELECT " JOBQ_MYSQL_RECORD " FROM record WHERE kind = ? ORDER BY id";
  static constexpr char kChanged[] =
      "SELECT " JOBQ_MYSQL_RECORD " FROM record WHERE kind = ? AND version > ? ORDER BY version";
  static constexpr char kRemoved[] = "SELECT id FROM record_removed WHERE kind = ? AND version > ? ORDER BY version";
  static constexpr char kLastVersion[] = "SELECT value FROM counted WHERE name = 'record_version'";

  /// Nodes ask often, and most answers are empty: the last version alone tells.
  bool hasChangedSince(std::uint64_t version) const { return glances.read(kFreshGlance).recordVersion != version; }

  std::uint64_t lockNextVersion(Step& step) const {
    Query query = step.db.query("SELECT value FROM counted WHERE name = 'record_version' FOR UPDATE");
    if (!query.next()) throw StorageError("the database has lost its record version; restore a backup");
    return query.count(0) + 1;
  }
  void useVersion(Step& step, std::uint64_t version) const {
    step.db.query("UPDATE counted SET value = ? WHERE name = 'record_version'").bind(version).run();
  }
  std::optional<sql::LastChange> lastChange(Step& step, std::string_view kind, std::string_view id) const {
    Query query = step.db.query("SELECT version, change_id FROM record WHERE kind = ? AND id = ?");
    if (!query.bind(kind, id).next()) return std::nullopt;
    return sql::LastChange{query.count(0), query.count(1)};
  }
  std::optional<std::string> holderOfName(Step& step, const Record& record) const {
    if (record.name.empty()) return std::nullopt;
    Query query = step.db.query("SELECT id FROM record WHERE kind = ? AND name = ? AND id <> ?");
    if (!query.bind(record.kind, record.name, record.id).next()) return std::nullopt;
    return query.text(0);
  }
  /// Inserts the record, and deletes the note of an earlier removal.
  void insert(Step& step, const Record& record, std::uint64_t version) const {
    step.db.query("INSERT INTO record (" JOBQ_MYSQL_RECORD ", change_id) VALUES (?, ?, ?, ?, ?, ?, ?)")
        .bind(record.kind, record.id, OrNull{record.name}, record.body, version, step.now, record.change)
        .run();
    step.db.query("DELETE FROM record_removed WHERE kind = ? AND id = ?").bind(record.kind, record.id).run();
  }
  void update(Step& step, const Record& record, std::uint64_t version) const {
    step.db
        .query(
            "UPDATE record SET name = ?, body = ?, version = ?, changed_at = ?, change_id = ? "
            "WHERE kind = ? AND id = ?")
        .bind(OrNull{record.name}, record.body, version, step.now, record.change, record.kind, record.id)
        .run();
  }
  bool remove(Step& step, std::string_view kind, std::string_view id) const {
    return step.db.query("DELETE FROM record WHERE kind = ? AND id = ?").bind(kind, id).run() > 0;
  }
  void noteRemoval(Step& step, std::string_view kind, std::string_view id, std::uint64_t version) const {
    step.db.query("REPLACE INTO record_removed (kind, id, version, removed_at) VALUES (?, ?, ?, ?)")
        .bind(kind, id, version, step.now)
        .run();
  }
};

}  // namespace jobq::mysql
