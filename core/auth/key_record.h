// An API key, and the record in which a storage keeps it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "jobq/record_store.h"
#include "jobq/time.h"

namespace jobq {

/// The kind of the records that hold keys.
inline constexpr const char* kKeyRecords = "key";

struct ApiKey {
  std::string id;
  std::string name;
  std::string digest;  ///< SHA-256 of the key, hexadecimal
  std::vector<std::string> scopes;
  std::vector<std::string> endpoints;  ///< empty: all
  Instant createdAt{};
  std::optional<Instant> expiresAt;
  std::optional<Instant> lastUsedAt;   ///< written at most once a minute
  std::optional<Instant> endingSince;  ///< when a revocation of this key began; the key works until it is removed

  /// Returns true if the key opens the management API while it is valid.
  bool isAdmin() const;
};

Record toRecord(const ApiKey& key);

/// Throws a Poco exception if the record's body is not what toRecord() writes.
ApiKey keyOf(const Record& record);

}  // namespace jobq
