// An API key and its record in the storage.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/auth/scope.h"
#include "core/base/result.h"
#include "jobq/record_store.h"
#include "jobq/time.h"

namespace jobq {

/// Kind of the records with keys.
inline constexpr const char* kKeyRecords = "key";

/// A key with its rights, without the secret.
struct ApiKey {
  std::string id;
  std::string name;
  std::string digest;  ///< SHA-256 of the key, hexadecimal
  std::vector<std::string> scopes;
  std::vector<std::string> endpoints;  ///< empty means all endpoints
  Instant createdAt{};
  std::optional<Instant> expiresAt;
  std::optional<Instant> lastUsedAt;   ///< written at most once a minute
  std::optional<Instant> endingSince;  ///< start of a revocation of the key; the key works until removed

  /// Returns true if the key opens the management API while valid.
  bool isAdmin() const;
  /// Returns true if the key has the scope, or the scope `admin`.
  bool has(Scope scope) const;
  /// Returns true if the key is for all endpoints, or for this one among others.
  bool isFor(std::string_view endpoint) const;
  /// Returns true if the key permits a call while valid. `endpoint` is empty for calls without an endpoint in the path.
  bool permits(const RouteAccess& access, std::string_view endpoint) const;
};

/// Returns the record of `key`, with version 0.
Record toRecord(const ApiKey& key);

/// Returns the key of a record. Fails, with one sentence, if the body is not in the form of toRecord(). Pure; any
/// thread.
Result<ApiKey> keyOf(const Record& record);

}  // namespace jobq
