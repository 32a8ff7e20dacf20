// Storage, face 6: small named JSON records with a version: API keys, templates, endpoints.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "jobq/abi_version.h"
#include "jobq/error.h"
#include "jobq/time.h"

namespace jobq {

struct Record {
  std::string kind;           ///< "key", "template", "endpoint", ...
  std::string id;             ///< unique within the kind
  std::string name;           ///< unique within the kind unless empty
  std::string body;           ///< JSON text; secrets in it are sealed by the host
  std::uint64_t version = 0;  ///< set by the store: grows over all records with every change, never re-used
  Instant changedAt{};        ///< set by the store
};

struct Stored {
  std::uint64_t version;
};
/// Another record of the kind has the id or the name: nothing changed.
struct NameTaken {
  std::string byId;
};
/// The record has another version by now: nothing changed. Read it again.
struct Conflict {};
struct NoRecord {};
using CreateResult = std::variant<Stored, NameTaken>;
using UpdateResult = std::variant<Stored, NameTaken, Conflict, NoRecord>;

struct Changes {
  std::vector<Record> changed;       ///< created or updated, by version
  std::vector<std::string> removed;  ///< ids
  std::uint64_t version = 0;         ///< ask again from here
};

class JOBQ_VISIBLE RecordStore : public abi::Versioned {
 public:
  virtual ~RecordStore() = default;

  /// version and changedAt of the argument are ignored.
  [[nodiscard]] virtual CreateResult create(Record record) = 0;

  /// Replaces name and body if the stored version is `expectedVersion`.
  [[nodiscard]] virtual UpdateResult update(Record record, std::uint64_t expectedVersion) = 0;

  [[nodiscard]] virtual std::optional<Record> find(std::string_view kind, std::string_view id) = 0;

  /// All of a kind, by id.
  [[nodiscard]] virtual std::vector<Record> list(std::string_view kind) = 0;

  /// False: there was none.
  virtual bool remove(std::string_view kind, std::string_view id) = 0;

  /// What happened to a kind after `version`; from 0 all that exists. A record created and removed since is only in
  /// `removed`. Removals are remembered for a day.
  [[nodiscard]] virtual Changes changedSince(std::string_view kind, std::uint64_t version) = 0;
};

}  // namespace jobq
