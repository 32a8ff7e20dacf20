// The statements of the store of records (`storage_sql/records.h`).
#pragma once

#include <cstdint>

#include "connection/statement.h"
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
  static constexpr char kLockVersion[] = "SELECT value FROM counted WHERE name = 'record_version' FOR UPDATE";
  static constexpr char kUseVersion[] = "UPDATE counted SET value = ? WHERE name = 'record_version'";
  static constexpr char kLastChange[] = "SELECT version, change_id FROM record WHERE kind = ? AND id = ?";
  static constexpr char kHolderOfName[] = "SELECT id FROM record WHERE kind = ? AND name = ? AND id <> ?";
  static constexpr char kRemove[] = "DELETE FROM record WHERE kind = ? AND id = ?";
  static constexpr char kNoteRemoval[] =
      "REPLACE INTO record_removed (kind, id, version, removed_at) VALUES (?, ?, ?, ?)";
  static constexpr char kForgetRemoval[] = "DELETE FROM record_removed WHERE kind = ? AND id = ?";

  /// Nodes ask often, and most answers are empty: the last version alone tells.
  bool hasChangedSince(std::uint64_t version) const { return glances.read(kFreshGlance).recordVersion != version; }

  void insert(Step& step, const Record& record, std::uint64_t version) const {
    step.db.query("INSERT INTO record (" JOBQ_MYSQL_RECORD ", change_id) VALUES (?, ?, ?, ?, ?, ?, ?)")
        .bind(record.kind, record.id, OrNull{record.name}, record.body, version, step.now, record.change)
        .run();
  }
  void update(Step& step, const Record& record, std::uint64_t version) const {
    step.db
        .query(
            "UPDATE record SET name = ?, body = ?, version = ?, changed_at = ?, change_id = ? "
            "WHERE kind = ? AND id = ?")
        .bind(OrNull{record.name}, record.body, version, step.now, record.change, record.kind, record.id)
        .run();
  }
};

}  // namespace jobq::mysql
