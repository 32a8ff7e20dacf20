// The statements of the store of records (`storage_sql/records.h`).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "connection.h"
#include "jobq/error.h"
#include "jobq/record_store.h"
#include "reads/readers.h"
#include "statement.h"
#include "storage_sql/records.h"
#include "writes/step.h"
#include "writes/writer.h"

namespace jobq::sqlite {

#define JOBQ_RECORD_COLUMNS "kind, id, name, body, version, changed_at"

/// Writer and readers outlive the store.
struct RecordRows {
  using Snapshot = sqlite::Snapshot;

  Writer& writer;
  Readers& readers;

  static constexpr char kFind[] = "SELECT " JOBQ_RECORD_COLUMNS " FROM record WHERE kind = ?1 AND id = ?2";
  static constexpr char kList[] = "SELECT " JOBQ_RECORD_COLUMNS " FROM record WHERE kind = ?1 ORDER BY id";
  static constexpr char kChanged[] =
      "SELECT " JOBQ_RECORD_COLUMNS " FROM record WHERE kind = ?1 AND version > ?2 ORDER BY version";
  static constexpr char kRemoved[] = "SELECT id FROM record_removed WHERE kind = ?1 AND version > ?2 ORDER BY version";
  static constexpr char kLastVersion[] = "SELECT value FROM number WHERE name = 'record_version'";

  bool hasChangedSince(std::uint64_t) const { return true; }

  std::uint64_t lockNextVersion(Step& step) const {
    Query query = step.db.query(kLastVersion);
    if (!query.next()) throw StorageError("the database has lost its record version");
    return query.count(0) + 1;
  }
  /// The number grows within the transaction, so a version that was rolled back was never visible.
  void useVersion(Step& step, std::uint64_t version) const {
    step.db.query("UPDATE number SET value = ?1 WHERE name = 'record_version'").bind(version).run();
  }
  std::optional<sql::LastChange> lastChange(Step& step, std::string_view kind, std::string_view id) const {
    Query query = step.db.query("SELECT version, change FROM record WHERE kind = ?1 AND id = ?2");
    if (!query.bind(kind, id).next()) return std::nullopt;
    return sql::LastChange{query.count(0), query.count(1)};
  }
  std::optional<std::string> holderOfName(Step& step, const Record& record) const {
    if (record.name.empty()) return std::nullopt;
    Query query = step.db.query("SELECT id FROM record WHERE kind = ?1 AND name = ?2 AND name <> '' AND id <> ?3");
    if (!query.bind(record.kind, record.name, record.id).next()) return std::nullopt;
    return query.text(0);
  }
  /// Inserts the record, and deletes the note of an earlier removal.
  void insert(Step& step, const Record& record, std::uint64_t version) const {
    step.db.query("INSERT INTO record (" JOBQ_RECORD_COLUMNS ", change) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)")
        .bind(record.kind, record.id, record.name, Bytes{record.body}, version, step.now, record.change)
        .run();
    step.db.query("DELETE FROM record_removed WHERE kind = ?1 AND id = ?2").bind(record.kind, record.id).run();
  }
  void update(Step& step, const Record& record, std::uint64_t version) const {
    step.db
        .query(
            "UPDATE record SET name = ?3, body = ?4, version = ?5, changed_at = ?6, change = ?7 "
            "WHERE kind = ?1 AND id = ?2")
        .bind(record.kind, record.id, record.name, Bytes{record.body}, version, step.now, record.change)
        .run();
  }
  bool remove(Step& step, std::string_view kind, std::string_view id) const {
    return step.db.query("DELETE FROM record WHERE kind = ?1 AND id = ?2").bind(kind, id).run() > 0;
  }
  void noteRemoval(Step& step, std::string_view kind, std::string_view id, std::uint64_t version) const {
    step.db.query("INSERT OR REPLACE INTO record_removed (kind, id, version, removed_at) VALUES (?1, ?2, ?3, ?4)")
        .bind(kind, id, version, step.now)
        .run();
  }
};

}  // namespace jobq::sqlite
