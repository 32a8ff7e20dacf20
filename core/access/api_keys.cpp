#include "core/access/api_keys.h"

#include <Poco/JSON/Array.h>
#include <Poco/JSON/Object.h>
#include <Poco/JSON/Parser.h>
#include <openssl/crypto.h>
#include <strings.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <sstream>

#include "core/base/data_dir.h"
#include "core/base/ids.h"
#include "core/base/sha256.h"
#include "jobq/error.h"

namespace jobq {
namespace {

constexpr Millis kKeyFreshness{1'000};
constexpr Millis kRenewal{500};
constexpr Millis kUseResolution{60'000};
constexpr const char* kKeyRecords = "key";

Poco::JSON::Array toArray(const std::vector<std::string>& values) {
  Poco::JSON::Array array;
  for (const std::string& value : values) array.add(value);
  return array;
}

std::vector<std::string> fromArray(const Poco::JSON::Object& object, const std::string& key) {
  std::vector<std::string> values;
  const Poco::JSON::Array::Ptr array = object.getArray(key);
  for (std::size_t i = 0; array && i < array->size(); ++i) {
    values.push_back(array->getElement<std::string>(static_cast<unsigned>(i)));
  }
  return values;
}

Record toRecord(const ApiKey& key) {
  Poco::JSON::Object body;
  body.set("digest", key.digest);
  body.set("name", key.name);
  body.set("scopes", toArray(key.scopes));
  body.set("endpoints", toArray(key.endpoints));
  body.set("createdAt", toEpochMillis(key.createdAt));
  if (key.expiresAt) body.set("expiresAt", toEpochMillis(*key.expiresAt));
  if (key.lastUsedAt) body.set("lastUsedAt", toEpochMillis(*key.lastUsedAt));
  std::ostringstream text;
  body.stringify(text);
  return Record{kKeyRecords, key.id, "", text.str(), 0, {}};
}

std::optional<Instant> optionalTime(const Poco::JSON::Object& object, const std::string& key) {
  if (!object.has(key)) return std::nullopt;
  return fromEpochMillis(object.getValue<std::int64_t>(key));
}

ApiKey fromRecord(const Record& record) {
  const auto body = Poco::JSON::Parser().parse(record.body).extract<Poco::JSON::Object::Ptr>();
  ApiKey key;
  key.id = record.id;
  key.name = body->getValue<std::string>("name");
  key.digest = body->getValue<std::string>("digest");
  key.scopes = fromArray(*body, "scopes");
  key.endpoints = fromArray(*body, "endpoints");
  key.createdAt = optionalTime(*body, "createdAt").value_or(Instant{});
  key.expiresAt = optionalTime(*body, "expiresAt");
  key.lastUsedAt = optionalTime(*body, "lastUsedAt");
  return key;
}

const char* nameOf(Scope scope) {
  switch (scope) {
    case Scope::none: return "";
    case Scope::client: return "client";
    case Scope::worker: return "worker";
    case Scope::admin: return "admin";
  }
  return "";
}

bool contains(const std::vector<std::string>& values, std::string_view value) {
  return std::find(values.begin(), values.end(), value) != values.end();
}

bool allows(const ApiKey& key, Scope scope, std::string_view endpoint) {
  if (!contains(key.scopes, "admin") && !contains(key.scopes, nameOf(scope))) return false;
  return key.endpoints.empty() || (!endpoint.empty() && contains(key.endpoints, endpoint));
}

std::string_view secretOf(std::string_view authorization) {
  constexpr std::string_view kBearer = "Bearer ";
  if (authorization.size() > kBearer.size() && strncasecmp(authorization.data(), kBearer.data(), kBearer.size()) == 0) {
    authorization.remove_prefix(kBearer.size());
  }
  while (!authorization.empty() && authorization.front() == ' ') authorization.remove_prefix(1);
  while (!authorization.empty() && authorization.back() == ' ') authorization.remove_suffix(1);
  return authorization;
}

}  // namespace

ApiKeys::ApiKeys(RecordStore& records, Clock& clock, Log& log) : records_(records), clock_(clock), log_(log) {}

void ApiKeys::bootstrap(const std::filesystem::path& file) {
  if (!records_.list(kKeyRecords).empty()) return;
  std::optional<std::string> secret = readFile(file);
  if (secret) {
    while (!secret->empty() && std::isspace(static_cast<unsigned char>(secret->back()))) secret->pop_back();
    if (secret->size() < 32) throw ConfigError(file.string() + " is too short for a key: at least 32 characters");
  } else {
    secret = "jobq_" + randomHex(32);
    writePrivateFile(file, *secret + "\n");
  }
  ApiKey key;
  key.name = "first admin key";
  key.scopes = {"admin"};
  store(key, *secret);
  log_.write(LogLevel::information, "keys.bootstrap", "the admin key is in " + file.string());
}

void ApiKeys::store(ApiKey& key, const std::string& secret) {
  key.id = randomHex(6);
  key.digest = sha256(secret);
  key.createdAt = clock_.now();
  if (!std::holds_alternative<Stored>(records_.create(toRecord(key)))) {
    throw StorageError("the new key's id is taken: try again");
  }
  showChange();
}

std::string ApiKeys::create(ApiKey& key) {
  const std::string secret = "jobq_" + randomHex(32);
  store(key, secret);
  return secret;
}

std::vector<ApiKey> ApiKeys::list() {
  std::vector<ApiKey> keys;
  for (const Record& record : records_.list(kKeyRecords)) keys.push_back(fromRecord(record));
  return keys;
}

bool ApiKeys::revoke(const std::string& id) {
  const bool was = records_.remove(kKeyRecords, id);
  showChange();
  return was;
}

// The records have changed already, and the caller is told so: a storage that fails now makes the next ones ask again.
void ApiKeys::showChange() {
  try {
    reload();
  } catch (const StorageError& error) {
    log_.write(LogLevel::warning, "keys.reload", error.what());
    auto outdated = std::make_shared<KeySet>();
    outdated->number = ++questions_;
    handOut(outdated);
  }
}

std::shared_ptr<ApiKeys::LastUse> ApiKeys::lastUseOf(const std::string& id) {
  Lock lock(mutex_);
  std::shared_ptr<LastUse>& use = lastUses_[id];
  if (!use) use = std::make_shared<LastUse>(Instant::min());
  return use;
}

ApiKeys::KeySetPtr ApiKeys::reload() {
  auto keys = std::make_shared<KeySet>();
  keys->number = ++questions_;
  keys->loadedAt = clock_.now();
  for (const Record& record : records_.list(kKeyRecords)) {
    ApiKey key = fromRecord(record);
    std::string digest = key.digest;
    auto used = lastUseOf(key.id);
    keys->byDigest.emplace(std::move(digest), Known{std::move(key), std::move(used)});
  }
  handOut(keys);
  return keys;
}

void ApiKeys::handOut(const KeySetPtr& keys) {
  // The answer to an older question may come later: it must not bring a revoked key back.
  keys_.setIf(keys, [&keys](const KeySet& present) { return present.number < keys->number; });
}

// One caller renews the set while it is still good for the others; only when it is too old everybody has to ask.
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

ApiKeyPtr ApiKeys::authenticate(std::string_view authorization, Scope scope, std::string_view endpoint) {
  const std::string digest = sha256(secretOf(authorization));
  const KeySetPtr keys = fresh();
  const auto found = keys->byDigest.find(digest);
  if (found == keys->byDigest.end()) return nullptr;
  const ApiKey& key = found->second.key;
  // The map's comparison has told by timing how far a digest matched, which says nothing about a key; the decision
  // itself takes the same time whatever the digest.
  if (CRYPTO_memcmp(key.digest.data(), digest.data(), digest.size()) != 0) return nullptr;
  const Instant now = clock_.now();
  if (key.expiresAt && *key.expiresAt <= now) return nullptr;
  if (!allows(key, scope, endpoint)) return nullptr;
  noteUse(found->second, now);
  return {keys, &key};
}

void ApiKeys::noteUse(const Known& known, Instant now) {
  const ApiKey& key = known.key;
  Instant last = known.used->load();
  const bool due = last == Instant::min() || last + kUseResolution <= now;
  if (!due || !known.used->compare_exchange_strong(last, now)) return;
  try {
    const auto record = records_.find(kKeyRecords, key.id);
    if (!record) return;
    ApiKey used = fromRecord(*record);
    used.lastUsedAt = now;
    // A conflict means that another node has just written its own use: as good.
    (void)records_.update(toRecord(used), record->version);
  } catch (const StorageError& error) {
    log_.write(LogLevel::warning, "keys.lastUse", error.what());
  }
}

}  // namespace jobq
