// Room 2 (porter): who is it, may they? Keys are 256 random bits; only their SHA-256 is stored.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/auth/key_record.h"
#include "core/base/clock.h"
#include "core/base/shared_snapshot.h"
#include "jobq/log.h"
#include "jobq/record_store.h"
#include "jobq/time.h"

namespace jobq {

/// What a route demands (core/decisions/auth.md). An admin key may do everything.
enum class Scope { none, client, worker, admin };

using ApiKeyPtr = std::shared_ptr<const ApiKey>;

enum class Revocation { revoked, noSuchKey, lastAdminKey, underWay };

/// Any thread. Looks keys up in its own copy of the records, which is never older than a second: a revocation takes
/// effect within that time on every node, on this node at once. Every request asks, so callers on different threads
/// share no lock. Only what has changed is read: 10,000 keys that stay as they are cost a question.
class ApiKeys {
 public:
  /// Expiry and the times that are shown go by `wall`, the age of the copy by `clock`. All outlive it.
  ApiKeys(RecordStore& records, Clock& clock, const WallClock& wall, Log& log);

  /// With an empty key store: takes in the key of `file` (`<data>/admin.key`), or makes an admin key and writes it
  /// there with mode 0600, logging only the path. A key that this storage held before is not taken in again: it was
  /// revoked. With keys, logs a warning when none of them is an admin key that is valid for ever, and when the file's
  /// key is none of them.
  void bootstrap(const std::filesystem::path& file);

  /// Makes an admin key, writes it to `file`, and revokes the key that the file held before. Other keys stay.
  void resetAdminKey(const std::filesystem::path& file);

  /// The key behind an Authorization header (`Bearer <key>` or the bare key), if it is valid now and its scopes and
  /// endpoints allow the call; else null. `endpoint` is empty for routes that belong to none. The use is noted in
  /// memory: no call waits for a write.
  ApiKeyPtr authenticate(std::string_view authorization, Scope scope, std::string_view endpoint);

  /// Stores a key under a new id and returns its secret, which is shown once. id, digest and times are set here.
  std::string create(ApiKey& key);
  std::vector<ApiKey> list();

  /// Stores the last uses that are due, at most one a minute and key, and a bounded number a call. A call begins behind
  /// the key at which the previous call ended, so that every key has its turn. Called every second by one thread.
  void storeUses();

  /// Removes the key, unless no other admin key would be left that never expires: an admin key that expires does not
  /// count as another one, because its end would lock everybody out. Of revocations on several nodes at once too, one
  /// admin key is left.
  Revocation revoke(const std::string& id);

 private:
  // When this process saw the key last, and which moment was stored last; Instant::min() before the first.
  struct LastUse {
    std::atomic<Instant> seen = Instant::min();
    std::atomic<Instant> stored = Instant::min();
  };
  struct Known {
    ApiKey key;
    std::shared_ptr<LastUse> use;
  };
  using KnownPtr = std::shared_ptr<const Known>;
  // All keys as they were at one moment.
  struct KeySet {
    std::uint64_t number = 0;   // a later question to the storage has a higher one
    std::uint64_t version = 0;  // of the records that it knows
    Instant loadedAt{};
    std::map<std::string, KnownPtr, std::less<>> byDigest;
    std::map<std::string, KnownPtr, std::less<>> byId;
  };
  using KeySetPtr = std::shared_ptr<const KeySet>;

  KeySetPtr fresh();
  KeySetPtr reload();
  void handOut(const KeySetPtr& keys);
  void showChange();
  void store(ApiKey& key, const std::string& secret);
  void warnOfLostKeys(const std::vector<ApiKey>& keys, const std::filesystem::path& file,
                      const std::optional<std::string>& secret);
  void makeAdminKey(const std::filesystem::path& file, std::string secret);
  bool hasLastingAdminKey(const std::string& besides);
  Revocation mark(const std::string& id);
  void unmark(const std::string& id);
  bool storeUseIfDue(const Known& known);
  void storeUse(const Known& known, Instant seen);

  RecordStore& records_;
  Clock& clock_;
  const WallClock& wall_;
  Log& log_;
  SharedSnapshot<KeySet> keys_;
  std::atomic<std::uint64_t> questions_ = 0;
  std::atomic<bool> renewing_ = false;
  std::string lastStored_;  // the id at which storeUses() ended; of the thread that calls it
};

}  // namespace jobq
