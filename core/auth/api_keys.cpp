#include "core/auth/api_keys.h"

#include <openssl/crypto.h>

#include <algorithm>
#include <cctype>

#include "core/auth/authorization.h"
#include "core/auth/key_record.h"
#include "core/base/data_dir.h"
#include "core/base/ids.h"
#include "core/base/sha256.h"
#include "jobq/error.h"
#include "jobq/json_writer.h"

namespace jobq {
namespace {

// Greatest age of the copy that decides about a call.
constexpr Millis kKeyFreshness{1'000};
// Age from which a caller renews the copy.
constexpr Millis kRenewal{500};
constexpr Millis kLongestGap{12 * 3'600'000};  // storages remember removals for a day
constexpr Millis kSeenResolution{1'000};       // a key in constant use changes shared memory no more often
constexpr Millis kUseResolution{60'000};
constexpr std::size_t kUsesAtOnce = 64;  // writes between two sweeps
constexpr int kMostConflicts = 100;
constexpr Millis kEndingLife{60'000};  // life of a revocation's mark, unless the mark is removed

bool isEnding(const ApiKey& key, Instant now) {
  return key.endingSince && *key.endingSince <= now && now < *key.endingSince + kEndingLife;
}

// Record with the digest of the key in `admin.key`, written when the file's key was last made or taken in.
constexpr const char* kFileRecords = "adminKeyFile";
constexpr const char* kFileRecord = "last";
// The id of the first key: a second node that makes one at the same time finds the id taken.
constexpr const char* kFirstKey = "first-admin-key";

std::string digestBody(const std::string& secret) {
  return json::object([&secret](json::ObjectWriter& out) { out.member("digest", sha256(secret)); });
}

// Returns the key in the file without trailing blanks and line ends, or nullopt if the file does not exist.
std::optional<std::string> readSecretFile(const std::filesystem::path& file) {
  std::optional<std::string> secret = readFile(file);
  while (secret && !secret->empty() && std::isspace(static_cast<unsigned char>(secret->back()))) secret->pop_back();
  return secret;
}

// Returns true if at least `time` lies between the two moments, in either direction, because the time of day may be set
// back. `former` may be Instant::min(), which means never.
bool areApart(Instant former, Instant latter, Millis time) {
  return former == Instant::min() || latter - former >= time || former - latter >= time;
}

// Returns an empty optional for a damaged record, and logs the damage: the other keys stay in use.
std::optional<ApiKey> readable(const Record& record, Log& log) {
  auto key = keyOf(record);
  if (key) return *std::move(key);
  log.write(LogLevel::error, "keys.damaged", key.failure().message());
  return std::nullopt;
}

std::vector<ApiKey> readAll(RecordStore& records, Log& log) {
  std::vector<ApiKey> keys;
  for (const Record& record : records.list(kKeyRecords)) {
    if (auto key = readable(record, log)) keys.push_back(*std::move(key));
  }
  return keys;
}

}  // namespace

ApiKeys::ApiKeys(RecordStore& records, Clock& clock, const WallClock& wall, Log& log, const ProcessKeys* processKeys)
    : records_(records), clock_(clock), wall_(wall), log_(log), processKeys_(processKeys) {}

void ApiKeys::bootstrap(const std::filesystem::path& file) {
  std::optional<std::string> secret = readSecretFile(file);
  // A store of damaged keys is not empty: a key made here would open the management API to the reader of the file.
  if (!records_.list(kKeyRecords).empty()) {
    warnOfLostKeys(readAll(records_, log_), file, secret);
    return;
  }
  if (secret && secret->size() < 32) {
    throw ConfigError(file.string() + " is too short for a key: at least 32 characters");
  }
  const auto former = records_.find(kFileRecords, kFileRecord);
  if (secret && former && former->body == digestBody(*secret)) {
    log_.write(LogLevel::warning, "keys.bootstrap",
               "the key in " + file.string() + " was revoked: the server makes a new key");
    secret.reset();
  }
  makeAdminKey(file, secret.value_or(""), kFirstKey);
}

void ApiKeys::warnOfLostKeys(const std::vector<ApiKey>& keys, const std::filesystem::path& file,
                             const std::optional<std::string>& secret) {
  if (!hasLastingAdminKey("")) {
    log_.write(LogLevel::warning, "keys.bootstrap",
               "no admin key is valid for ever: make one, or stop the server and run jobqd --reset-admin-key");
  }
  if (!secret) return;
  const std::string digest = sha256(*secret);
  if (std::ranges::any_of(keys, [&digest](const ApiKey& key) { return key.digest == digest; })) return;
  log_.write(LogLevel::warning, "keys.bootstrap",
             "the key in " + file.string() +
                 " is not a key of this server: the key was revoked, or the file belongs to another server");
}

void ApiKeys::resetAdminKey(const std::filesystem::path& file) {
  const std::optional<std::string> former = readSecretFile(file);
  // The former key is removed first. After a failure between the steps the next reset makes the new key, and the former
  // key is gone.
  for (const ApiKey& key : readAll(records_, log_)) {
    if (former && key.digest == sha256(*former)) records_.remove(kKeyRecords, key.id);
  }
  makeAdminKey(file, "", randomHex(6));
  reloadAfterChange();
}

// Writes the file first. After a failure between the steps a reset makes file and key again, while a stored admin key
// with a lost secret would count as a further admin key for ever.
void ApiKeys::makeAdminKey(const std::filesystem::path& file, std::string secret, const std::string& id) {
  const bool isNew = secret.empty();
  if (isNew) {
    secret = "jobq_" + randomHex(32);
    writePrivateFile(file, secret + "\n");
  }
  ApiKey key;
  key.name = "first admin key";
  key.scopes = {"admin"};
  key.id = id;
  if (!store(key, secret)) {
    if (isNew) std::filesystem::remove(file);
    log_.write(LogLevel::information, "keys.bootstrap", "another node has made the admin key at the same time");
    return;
  }
  Record digest{kFileRecords, kFileRecord, "", digestBody(secret), 0, {}};
  if (const auto former = records_.find(kFileRecords, kFileRecord)) {
    (void)records_.update(std::move(digest), former->version);
  } else {
    (void)records_.create(std::move(digest));
  }
  log_.write(LogLevel::information, "keys.bootstrap", "the admin key is in " + file.string());
}

bool ApiKeys::store(ApiKey& key, const std::string& secret) {
  key.digest = sha256(secret);
  key.createdAt = wall_.now();
  if (!std::holds_alternative<Stored>(records_.create(toRecord(key)))) return false;
  reloadAfterChange();
  return true;
}

std::string ApiKeys::create(ApiKey& key) {
  const std::string secret = "jobq_" + randomHex(32);
  key.id = randomHex(6);
  if (!store(key, secret)) throw StorageError("the new key's id is taken: try again");
  return secret;
}

std::vector<ApiKeyPtr> ApiKeys::list(std::string_view after, std::size_t most) {
  std::vector<ApiKeyPtr> keys;
  for (const KnownPtr& known : reload()->byId.page(after, most)) keys.emplace_back(known, &known->key);
  return keys;
}

// Two nodes that revoke the last two admin keys at once must not both succeed, and two records cannot change in a
// single step. Each node marks its own key first and counts the other keys afterwards, so the later node sees the mark
// of the earlier node. A mark has one owner: a second revocation of the same key is refused, so that the mark stays.
// The mark of an unfinished revocation counts for kEndingLife.
Revocation ApiKeys::revoke(const std::string& id) {
  const auto record = records_.find(kKeyRecords, id);
  if (!record) return Revocation::noSuchKey;
  const std::optional<ApiKey> key = readable(*record, log_);  // a damaged key opens nothing and can always be removed
  const bool hasExpired = key && key->expiresAt && *key->expiresAt <= wall_.now();
  if (key && key->isAdmin() && !hasExpired) {
    const Revocation marked = mark(id);
    if (marked != Revocation::revoked) return marked;
    if (!hasLastingAdminKey(id)) {
      unmark(id);
      return Revocation::lastAdminKey;
    }
  }
  const bool wasThere = records_.remove(kKeyRecords, id);
  reloadAfterChange();
  return wasThere ? Revocation::revoked : Revocation::noSuchKey;
}

Revocation ApiKeys::mark(const std::string& id) {
  for (int i = 0; i < kMostConflicts; ++i) {
    const auto record = records_.find(kKeyRecords, id);
    if (!record) return Revocation::noSuchKey;
    auto key = readable(*record, log_);
    if (!key) return Revocation::underWay;  // damaged since the call began: a later call removes it
    const Instant now = wall_.now();
    if (isEnding(*key, now)) return Revocation::underWay;
    key->endingSince = now;
    const UpdateResult result = records_.update(toRecord(*key), record->version);
    if (std::holds_alternative<Stored>(result)) return Revocation::revoked;
    if (std::holds_alternative<NoRecord>(result)) return Revocation::noSuchKey;
  }
  throw StorageError("the key " + id + " is being changed by other calls: try again");
}

bool ApiKeys::hasLastingAdminKey(const std::string& besides) {
  const std::vector<ApiKey> keys = readAll(records_, log_);
  const Instant now = wall_.now();
  return std::ranges::any_of(keys, [&](const ApiKey& key) {
    return key.isAdmin() && !key.expiresAt && !isEnding(key, now) && key.id != besides;
  });
}

void ApiKeys::unmark(const std::string& id) {
  for (int i = 0; i < kMostConflicts; ++i) {
    const auto record = records_.find(kKeyRecords, id);
    auto key = record ? readable(*record, log_) : std::nullopt;
    if (!key) return;
    key->endingSince.reset();
    if (!std::holds_alternative<Conflict>(records_.update(toRecord(*key), record->version))) return;
  }
}

// The records have changed already, and the caller is told so. After a failure of the storage here the copy counts as
// outdated, and the next calls read the records again.
void ApiKeys::reloadAfterChange() {
  try {
    reload();
  } catch (const StorageError& error) {
    log_.write(LogLevel::warning, "keys.reload", error.what());
    const KeySetPtr present = keys_.get();
    auto outdated = present ? std::make_shared<KeySet>(*present) : std::make_shared<KeySet>();
    outdated->request = ++lastRequest_;
    outdated->loadedAt = Instant{};
    publish(outdated);
  }
}

ApiKeys::KeySetPtr ApiKeys::reload() {
  const KeySetPtr former = keys_.get();
  const Instant now = clock_.now();
  const bool follows = former && now - former->loadedAt < kLongestGap;
  const std::uint64_t request = ++lastRequest_;
  const Changes changes = records_.changedSince(kKeyRecords, follows ? former->version : 0);
  auto keys = follows ? std::make_shared<KeySet>(*former) : std::make_shared<KeySet>();
  keys->request = request;
  keys->version = changes.version;
  keys->loadedAt = now;
  SharedMap<KnownKey, digestOf>::Changes byDigest;
  SharedMap<KnownKey, idOf>::Changes byId;
  const auto forget = [&](const std::string& id) {
    const KnownPtr known = keys->byId.find(id);
    if (!known) return;
    byDigest[known->key.digest] = nullptr;
    byId[id] = nullptr;
  };
  for (const std::string& id : changes.removed) forget(id);
  for (const Record& record : changes.changed) {
    auto key = readable(record, log_);
    if (!key) {
      forget(record.id);
      continue;
    }
    const KnownPtr same = former ? former->byId.find(record.id) : nullptr;
    const auto known =
        std::make_shared<KnownKey>(KnownKey{*std::move(key), same ? same->use : std::make_shared<KeyUse>()});
    byDigest[known->key.digest] = known;
    byId[record.id] = known;
  }
  keys->byDigest.apply(byDigest);
  keys->byId.apply(byId);
  publish(keys);
  return keys;
}

void ApiKeys::publish(const KeySetPtr& keys) {
  // The answer to an older request may arrive later and must not bring a revoked key back.
  keys_.setIf(keys, [&keys](const KeySet& present) { return present.request < keys->request; });
}

// A single caller renews the copy while the copy is still good for the other callers. Only a copy that is too old makes
// every caller ask the storage.
ApiKeys::KeySetPtr ApiKeys::fresh() {
  KeySetPtr keys = keys_.get();
  const Millis age = keys ? clock_.now() - keys->loadedAt : kKeyFreshness;
  if (age < kRenewal || (age < kKeyFreshness && renewing_.exchange(true))) return keys;
  try {
    keys = reload();
  } catch (const StorageError& error) {
    renewing_ = false;
    if (age >= kKeyFreshness) throw;
    log_.write(LogLevel::warning, "keys.reload", error.what());
  } catch (...) {
    renewing_ = false;
    throw;
  }
  renewing_ = false;
  return keys;
}

bool ApiKeys::isCurrent() const {
  const KeySetPtr keys = keys_.get();
  const Millis age = keys ? clock_.now() - keys->loadedAt : kKeyFreshness;
  return age < kRenewal || (age < kKeyFreshness && renewing_);
}

ApiKeyPtr ApiKeys::authenticate(std::string_view authorization, const RouteAccess& access, std::string_view endpoint) {
  const std::string digest = sha256(secretOf(authorization));
  if (const ApiKeyPtr key = processKeys_ == nullptr ? nullptr : processKeys_->find(digest)) {
    return key->permits(access, endpoint) ? key : nullptr;
  }
  const KeySetPtr keys = fresh();
  const KnownPtr found = keys->byDigest.find(digest);
  if (!found) return nullptr;
  const KnownKey& known = *found;
  const ApiKey& key = known.key;
  // The timing of the map's comparison shows how far a digest matched, and reveals no key. The decision itself takes
  // the same time for every digest.
  if (CRYPTO_memcmp(key.digest.data(), digest.data(), digest.size()) != 0) return nullptr;
  const Instant now = wall_.now();
  if (key.expiresAt && *key.expiresAt <= now) return nullptr;
  if (!key.permits(access, endpoint)) return nullptr;
  if (areApart(known.use->seen, now, kSeenResolution)) known.use->seen = now;
  return {found, &key};
}

void ApiKeys::storeUses() {
  const KeySetPtr keys = keys_.get();
  if (!keys) return;
  const auto storeDue = [&](const std::vector<KnownPtr>& some, std::size_t& left) {
    for (auto next = some.begin(); next != some.end() && left > 0; ++next) {
      if (!storeUseIfDue(**next)) continue;
      lastStored_ = (*next)->key.id;
      --left;
    }
  };
  std::size_t left = kUsesAtOnce;
  const std::size_t all = keys->byId.size();
  const std::vector<KnownPtr> later = keys->byId.page(lastStored_, all);
  storeDue(later, left);
  storeDue(keys->byId.page({}, all - later.size()), left);
}

// A key without a use since the last write is skipped, so that a later use stored by a
// different node stays.
bool ApiKeys::storeUseIfDue(const KnownKey& known) {
  const Instant seen = known.use->seen.load();
  const Instant last = std::max(known.use->stored.load(), known.key.lastUsedAt.value_or(Instant::min()));
  if (seen == known.use->stored.load() || !areApart(last, seen, kUseResolution)) return false;
  known.use->stored = seen;
  storeUse(known, seen);
  return true;
}

void ApiKeys::storeUse(const KnownKey& known, Instant seen) {
  try {
    const auto record = records_.find(kKeyRecords, known.key.id);
    auto used = record ? readable(*record, log_) : std::nullopt;
    if (!used) return;
    used->lastUsedAt = seen;
    // A conflict means a use just stored by a different node, which is as good.
    (void)records_.update(toRecord(*used), record->version);
  } catch (const StorageError& error) {
    log_.write(LogLevel::warning, "keys.lastUse", error.what());
  }
}

}  // namespace jobq
