// Store of records: small named JSON objects with a version, such as API keys, templates and endpoints. The rules for
// every store are in storage.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "jobq/abi_version.h"
#include "jobq/call_id.h"
#include "jobq/error.h"
#include "jobq/time.h"

namespace jobq {

/// A small named JSON object. Kinds, ids and names differ by any byte.
struct Record {
  std::string kind;           ///< "key", "template", "endpoint", ...
  std::string id;             ///< unique within the kind
  std::string name;           ///< unique within the kind unless empty
  std::string body;           ///< JSON text; the host seals secrets inside
  std::uint64_t version = 0;  ///< set by the store: grows over all records with every change, never used again
  Instant changedAt{};        ///< set by the store
  CallId change = 0;          ///< id of the call that stores the record, or 0 if never repeated; 0 in results
};

/// The record is stored, with this version.
struct Stored {
  std::uint64_t version;
};
/// Another record of the kind, `byId`, has the id or the name. The store is unchanged.
struct NameTaken {
  std::string byId;
};
/// The record has another version by now. The store is unchanged; the caller reads the record again.
struct Conflict {};
/// The kind has no record with the id.
struct NoRecord {};
using CreateResult = std::variant<Stored, NameTaken>;
using UpdateResult = std::variant<Stored, NameTaken, Conflict, NoRecord>;

/// Changes of the records of a kind since a version.
struct Changes {
  std::vector<Record> changed;       ///< created or updated records, by version
  std::vector<std::string> removed;  ///< ids of removed records
  std::uint64_t version = 0;         ///< argument of the next call of changedSince()
};

/// Operations on records. The storage owns the store.
class JOBQ_VISIBLE RecordStore : public abi::Versioned {
 public:
  virtual ~RecordStore() = default;

  /// Stores a new record. The version and changedAt of the argument are ignored. Returns Stored or NameTaken.
  /// Repeatable if record.change is not 0: the store keeps the id of the last change of each record, and answers
  /// Stored with the present version to a call with that id.
  [[nodiscard]] virtual CreateResult create(Record record) = 0;

  /// Replaces name and body of the record if the stored version is `expectedVersion`. Returns Stored, NameTaken,
  /// Conflict or NoRecord. Repeatable like create(). After a further change of the record a repeated update returns
  /// Conflict, and a repeated creation NameTaken with the record's own id.
  [[nodiscard]] virtual UpdateResult update(Record record, std::uint64_t expectedVersion) = 0;

  /// Returns the record, or an empty optional if the kind has no record with the id.
  [[nodiscard]] virtual std::optional<Record> find(std::string_view kind, std::string_view id) = 0;

  /// Returns all records of a kind, by id.
  [[nodiscard]] virtual std::vector<Record> list(std::string_view kind) = 0;

  /// Removes the record. Returns false if the kind has no record with the id. Repeatable, but for the answer, which is
  /// then false, and for a record created in between, which is removed too.
  virtual bool remove(std::string_view kind, std::string_view id) = 0;

  /// Returns the changes of a kind after `version`; from 0 all existing records. A record created and removed since
  /// then is only in `removed`. The store remembers removals for a day.
  [[nodiscard]] virtual Changes changedSince(std::string_view kind, std::uint64_t version) = 0;
};

}  // namespace jobq
