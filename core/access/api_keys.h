// Room 2 (porter): who is it, may they? Keys are 256 random bits; only their SHA-256 is stored.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "jobq/log.h"
#include "jobq/record_store.h"
#include "jobq/time.h"

namespace jobq {

/// What a route demands (decisions.md, "Keys"). An admin key may do everything.
enum class Scope { none, client, worker, admin };

struct ApiKey {
  std::string id;
  std::string name;
  std::string digest;  ///< SHA-256 of the key, hexadecimal
  std::vector<std::string> scopes;
  std::vector<std::string> endpoints;  ///< empty: all
  Instant createdAt{};
  std::optional<Instant> expiresAt;
  std::optional<Instant> lastUsedAt;  ///< written at most once a minute
};

/// Any thread. Looks keys up in its own copy of the records, which is never older than a second: a revocation takes
/// effect within that time on every node, on this node at once.
class ApiKeys {
 public:
  ApiKeys(RecordStore& records, Clock& clock, Log& log);

  /// With an empty key store: takes in the key of `file` (`<data>/admin.key`), or makes an admin key and writes it
  /// there with mode 0600, logging only the path.
  void bootstrap(const std::filesystem::path& file);

  /// The key behind an Authorization header (`Bearer <key>` or the bare key), if it is valid now and its scopes and
  /// endpoints allow the call. `endpoint` is empty for routes that belong to none.
  std::optional<ApiKey> authenticate(std::string_view authorization, Scope scope, std::string_view endpoint);

  /// Stores a key under a new id and returns its secret, which is shown once. id, digest and times are set here.
  std::string create(ApiKey& key);
  std::vector<ApiKey> list();
  bool revoke(const std::string& id);

 private:
  using ByDigest = std::map<std::string, ApiKey, std::less<>>;

  std::shared_ptr<const ByDigest> fresh();
  std::shared_ptr<const ByDigest> reload();
  void store(ApiKey& key, const std::string& secret);
  void noteUse(const ApiKey& key, Instant now);

  RecordStore& records_;
  Clock& clock_;
  Log& log_;

  Mutex mutex_;
  std::shared_ptr<const ByDigest> keys_ JOBQ_GUARDED_BY(mutex_);
  Instant loadedAt_ JOBQ_GUARDED_BY(mutex_){};
  std::map<std::string, Instant> usedAt_ JOBQ_GUARDED_BY(mutex_);  // by key id, of this process
};

}  // namespace jobq
