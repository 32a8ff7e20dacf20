// The statements of the store of records (`storage_sql/records.h`).
#pragma once

#include <cstdint>

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
  static constexpr const char* kLockVersion = kLastVersion;  // the writer is alone
  static constexpr char kUseVersion[] = "UPDATE number SET value = ?1 WHERE name = 'record_version'";
  static constexpr char kLastChange[] = "SELECT version, change FROM record WHERE kind = ?1 AND id = ?2";
  static constexpr char kHolderOfName[] =
      "SELECT id FROM record WHERE kind = ?1 AND name = ?2 AND name <> '' AND id <> ?3";
  static constexpr char kRemove[] = "DELETE FROM record WHERE kind = ?1 AND id = ?2";
  static constexpr char kNoteRemoval[] =
      "INSERT OR REPLACE INTO record_removed (kind, id, version, removed_at) VALUES (?1, ?2, ?3, ?4)";
  static constexpr char kForgetRemoval[] = "DELETE FROM record_removed WHERE kind = ?1 AND id = ?2";

  bool hasChangedSince(std::uint64_t) const { return true; }

  void insert(Step& step, const Record& record, std::uint64_t version) const {
    step.db.query("INSERT INTO record (" JOBQ_RECORD_COLUMNS ", change) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)")
        .bind(record.kind, record.id, record.name, Bytes{record.body}, version, step.now, record.change)
        .run();
  }
  void update(Step& step, const Record& record, std::uint64_t version) const {
    step.db
        .query(
            "UPDATE record SET name = ?3, body = ?4, version = ?5, changed_at = ?6, change = ?7 "
            "WHERE kind = ?1 AND id = ?2")
        .bind(record.kind, record.id, record.name, Bytes{record.body}, version, step.now, record.change)
        .run();
  }
};

}  // namespace jobq::sqlite
