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
#include "core/auth/scope.h"
#include "core/base/clock.h"
#include "core/base/shared_map.h"
#include "core/base/shared_snapshot.h"
#include "jobq/log.h"
#include "jobq/record_store.h"
#include "jobq/time.h"

namespace jobq {

using ApiKeyPtr = std::shared_ptr<const ApiKey>;

/// Result of ApiKeys::revoke(). `underWay` means that a different call is revoking the key now.
enum class Revocation { revoked, noSuchKey, lastAdminKey, underWay };

/// Moments of the use of a key in this process; Instant::min() before the first.
struct KeyUse {
  std::atomic<Instant> seen = Instant::min();    ///< the last use
  std::atomic<Instant> stored = Instant::min();  ///< the last use that was written to the storage
};
/// A key with its use.
struct KnownKey {
  ApiKey key;
  std::shared_ptr<KeyUse> use;
};
/// The texts by which the two maps of ApiKeys find a key.
inline const std::string& digestOf(const KnownKey& known) { return known.key.digest; }
inline const std::string& idOf(const KnownKey& known) { return known.key.id; }

/// Any thread, except as noted. Looks keys up in a copy of the records, at most one second old: a revocation takes
/// effect within a second on every node, and at once on this node. Every request needs a lookup, so callers on
/// different threads share no lock. Only changed records are read, so 10,000 unchanged keys cost a single request to
/// the storage.
///
/// An admin key in this file is a key with the scope `admin` for all endpoints (ApiKey::isAdmin()).
class ApiKeys {
 public:
  /// `wall` decides about expiry and gives the times that callers see. `clock` measures the age of the copy.
  /// `processKeys` has the keys of launched workers and may be null. All arguments outlive the object.
  ApiKeys(RecordStore& records, Clock& clock, const WallClock& wall, Log& log,
          const ProcessKeys* processKeys = nullptr);

  /// Gives an empty storage its first admin key: the key in `file` (`<data>/admin.key`), or a new key, which is written
  /// to `file` with mode 0600. Only the path is logged. A key in `file` that was the admin key of this storage before
  /// was revoked, so a new key is made instead. If several nodes start at once on an empty storage, a single node makes
  /// the key. If the storage has keys, the function changes nothing. A warning is logged then if all admin keys
  /// expire, and a second warning if the key in `file` is unknown. Throws ConfigError if the storage is empty and the
  /// key in `file` has fewer than 32 characters, Error if a file operation fails, and StorageError. Called once, at the
  /// start.
  void bootstrap(const std::filesystem::path& file);

  /// Replaces the admin key of `file`: revokes the former key, unless its record is damaged, then makes a new admin key
  /// and writes the new key to `file`. Other keys stay. Throws Error if a file operation fails, and StorageError.
  /// Called while no server uses the storage.
  void resetAdminKey(const std::filesystem::path& file);

  /// Returns the key of an Authorization header (`Bearer <key>` or the bare key) if the key is valid now and its scopes
  /// and endpoints allow the call, else null. `endpoint` is empty for routes without an endpoint. The use is noted in
  /// memory, so no call waits for a write. Throws StorageError if the copy is older than a second and cannot be
  /// renewed.
  ApiKeyPtr authenticate(std::string_view authorization, const RouteAccess& access, std::string_view endpoint);
  /// Returns true if authenticate() would read nothing from the storage now.
  bool isCurrent() const;

  /// Stores a key under a new id and returns the secret, which no later call returns. Sets `id`, `digest` and
  /// `createdAt` of `key`. Throws StorageError.
  std::string create(ApiKey& key);
  /// Returns up to `most` keys whose ids follow `after`, in the order of the ids. Damaged keys are left out and logged.
  /// Throws StorageError.
  std::vector<ApiKeyPtr> list(std::string_view after = {}, std::size_t most = SIZE_MAX);

  /// Writes the times of last use to the storage: at most once a minute for each key, and at most 64 keys in a call.
  /// The next call continues after the last key written, so that every key has its turn. A failure of the storage is
  /// logged. A single thread calls the function every second.
  void storeUses();

  /// Removes the key. A valid admin key is removed only if another admin key without an expiry stays. An admin key with
  /// an expiry does not count as the other key, because its end would lock all admins out. Any other key, also a
  /// damaged or expired key, can always be removed. The rule also holds for revocations on several nodes at once.
  /// Throws StorageError.
  Revocation revoke(const std::string& id);

 private:
  using KnownPtr = std::shared_ptr<const KnownKey>;
  // All keys as of one moment.
  struct KeySet {
    std::uint64_t request = 0;  // number of the request to the storage; a later request has a higher number
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
  /// Returns false if the id of the key is taken.
  bool store(ApiKey& key, const std::string& secret);
  void warnOfLostKeys(const std::vector<ApiKey>& keys, const std::filesystem::path& file,
                      const std::optional<std::string>& secret);
  /// An empty `secret` makes a new secret and writes it to `file`.
  void makeAdminKey(const std::filesystem::path& file, std::string secret, const std::string& id);
  /// Returns true if the storage has an admin key other than `besides` that never expires and is not being revoked.
  bool hasLastingAdminKey(const std::string& besides);
  /// Marks the key as being revoked, so that other nodes do not count the key as a remaining admin key. Returns
  /// `revoked` if this call has set the mark.
  Revocation mark(const std::string& id);
  void unmark(const std::string& id);
  /// Returns true if the use was due.
  bool storeUseIfDue(const KnownKey& known);
  void storeUse(const KnownKey& known, Instant seen);

  RecordStore& records_;
  Clock& clock_;
  const WallClock& wall_;
  Log& log_;
  const ProcessKeys* const processKeys_;
  SharedSnapshot<KeySet> keys_;
  std::atomic<std::uint64_t> lastRequest_ = 0;
  std::atomic<bool> renewing_ = false;
  std::string lastStored_;  // id of the last key that storeUses() has written; only its thread uses the member
};

}  // namespace jobq
