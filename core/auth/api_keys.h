// Authentication: finds the key of a call and checks the rights of the key. Keys are 256 random bits; only the SHA-256
// of a key is stored.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/auth/key_record.h"
#include "core/auth/process_keys.h"
#include "core/base/clock.h"
#include "core/base/shared_map.h"
#include "core/base/shared_snapshot.h"
#include "jobq/log.h"
#include "jobq/record_store.h"
#include "jobq/time.h"

namespace jobq {

/// The scope demanded by a route (core/http/API.md, "Scopes"). An admin key has every scope.
/// The calls of remote workers (core/http/api/worker/worker_routes.cpp) demand `worker`.
enum class Scope { none, client, worker, admin };

using ApiKeyPtr = std::shared_ptr<const ApiKey>;

/// Result of ApiKeys::revoke(). `underWay` means that a different call is revoking the key now.
enum class Revocation { revoked, noSuchKey, lastAdminKey, underWay };

/// A key with the times of the last use in this process; Instant::min() before the first.
struct KeyUse {
  std::atomic<Instant> seen = Instant::min();
  std::atomic<Instant> stored = Instant::min();
};
struct KnownKey {
  ApiKey key;
  std::shared_ptr<KeyUse> use;
};
inline const std::string& digestOf(const KnownKey& known) { return known.key.digest; }
inline const std::string& idOf(const KnownKey& known) { return known.key.id; }

/// Any thread, except as noted. Looks keys up in a copy of the records, at most one second old: a revocation takes
/// effect within a second on every node, and at once on this node. Every request needs a lookup, so callers on
/// different threads share no lock. Only changed records are read, so 10,000 unchanged keys cost a single request to
/// the storage.
class ApiKeys {
 public:
  /// Expiry and the shown times follow `wall`, the age of the copy follows `clock`. `processKeys` may be null. All
  /// arguments outlive the object.
  ApiKeys(RecordStore& records, Clock& clock, const WallClock& wall, Log& log,
          const ProcessKeys* processKeys = nullptr);

  /// Prepares an empty key store: takes in the key of `file` (`<data>/admin.key`), or makes an admin key and writes it
  /// to `file` with mode 0600. Only the path is logged. A key known to this storage before is not taken in again,
  /// because it was revoked. Of several nodes that start at once on an empty storage one makes the key. With keys in
  /// the store, logs a warning if no admin key is valid for ever, and a warning if the file's key is unknown. Throws
  /// ConfigError if the file's key has fewer than 32 characters, Error if a file operation fails, and StorageError.
  /// Called once, at the start.
  void bootstrap(const std::filesystem::path& file);

  /// Revokes the former key of `file`, unless its record is damaged, makes an admin key and writes the new key to
  /// `file`. Other keys stay. Throws Error if a file operation fails, and StorageError. Called while no server uses the
  /// storage.
  void resetAdminKey(const std::filesystem::path& file);

  /// Returns the key of an Authorization header (`Bearer <key>` or the bare key) if the key is valid now and its scopes
  /// and endpoints allow the call, else null. `endpoint` is empty for routes without an endpoint. The use is noted in
  /// memory, so no call waits for a write. Throws StorageError if the copy is older than a second and cannot be
  /// renewed.
  ApiKeyPtr authenticate(std::string_view authorization, Scope scope, std::string_view endpoint);
  /// Returns true if authenticate() would read nothing from the storage now. Any thread.
  bool isCurrent() const;

  /// Stores a key under a new id and returns the secret, which no later call returns. Sets `id`, `digest` and
  /// `createdAt` of `key`. Throws StorageError.
  std::string create(ApiKey& key);
  /// Returns up to `most` keys of the storage behind the id `after`, by id, without damaged ones, which are logged.
  /// Throws StorageError.
  std::vector<ApiKeyPtr> list(std::string_view after = {}, std::size_t most = SIZE_MAX);

  /// Stores due last uses, at most once a minute for each key and at most 64 in a call. A call begins behind the last
  /// key of the previous call, so that every key has its turn. A failing storage is logged. Called by a single thread
  /// every second.
  void storeUses();

  /// Removes the key, unless no other admin key without an expiry would be left. An admin key with an expiry does not
  /// count as another key, because its end would lock all admins out. The rule also holds for revocations on several
  /// nodes at once. Throws StorageError.
  Revocation revoke(const std::string& id);

 private:
  using KnownPtr = std::shared_ptr<const KnownKey>;
  // All keys as of one moment.
  struct KeySet {
    std::uint64_t number = 0;   // later requests to the storage have higher numbers
    std::uint64_t version = 0;  // version of the records in this set
    Instant loadedAt{};
    SharedMap<KnownKey, digestOf> byDigest;
    SharedMap<KnownKey, idOf> byId;
  };
  using KeySetPtr = std::shared_ptr<const KeySet>;

  KeySetPtr fresh();
  KeySetPtr reload();
  void publish(const KeySetPtr& keys);
  void reloadAfterChange();
  bool store(ApiKey& key, const std::string& secret);
  void warnOfLostKeys(const std::vector<ApiKey>& keys, const std::filesystem::path& file,
                      const std::optional<std::string>& secret);
  void makeAdminKey(const std::filesystem::path& file, std::string secret, const std::string& id);
  bool hasLastingAdminKey(const std::string& besides);
  Revocation mark(const std::string& id);
  void unmark(const std::string& id);
  bool storeUseIfDue(const KnownKey& known);
  void storeUse(const KnownKey& known, Instant seen);

  RecordStore& records_;
  Clock& clock_;
  const WallClock& wall_;
  Log& log_;
  const ProcessKeys* const processKeys_;
  SharedSnapshot<KeySet> keys_;
  std::atomic<std::uint64_t> questions_ = 0;
  std::atomic<bool> renewing_ = false;
  std::string lastStored_;  // the id where storeUses() ended; used by its thread only
};

}  // namespace jobq
