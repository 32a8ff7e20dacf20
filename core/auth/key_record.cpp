#include "core/auth/key_record.h"

#include <Poco/JSON/Array.h>
#include <Poco/JSON/Object.h>
#include <Poco/JSON/Parser.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <sstream>

namespace jobq {
namespace {

Poco::JSON::Array textArray(const std::vector<std::string>& values) {
  Poco::JSON::Array array;
  for (const std::string& value : values) array.add(value);
  return array;
}

std::vector<std::string> textsOf(const Poco::JSON::Object& object, const std::string& key) {
  std::vector<std::string> values;
  const Poco::JSON::Array::Ptr array = object.getArray(key);
  for (std::size_t i = 0; array && i < array->size(); ++i) {
    values.push_back(array->getElement<std::string>(static_cast<unsigned>(i)));
  }
  return values;
}

std::optional<Instant> timeOf(const Poco::JSON::Object& object, const std::string& key) {
  if (!object.has(key)) return std::nullopt;
  return fromEpochMillis(object.getValue<std::int64_t>(key));
}

}  // namespace

bool ApiKey::isAdmin() const {
  return endpoints.empty() && std::find(scopes.begin(), scopes.end(), "admin") != scopes.end();
}

Record toRecord(const ApiKey& key) {
  Poco::JSON::Object body;
  body.set("digest", key.digest);
  body.set("name", key.name);
  body.set("scopes", textArray(key.scopes));
  body.set("endpoints", textArray(key.endpoints));
  body.set("createdAt", toEpochMillis(key.createdAt));
  if (key.expiresAt) body.set("expiresAt", toEpochMillis(*key.expiresAt));
  if (key.lastUsedAt) body.set("lastUsedAt", toEpochMillis(*key.lastUsedAt));
  if (key.endingSince) body.set("endingSince", toEpochMillis(*key.endingSince));
  std::ostringstream text;
  body.stringify(text);
  return Record{kKeyRecords, key.id, "", text.str(), 0, {}};
}

ApiKey keyOf(const Record& record) {
  const auto body = Poco::JSON::Parser().parse(record.body).extract<Poco::JSON::Object::Ptr>();
  ApiKey key;
  key.id = record.id;
  key.name = body->getValue<std::string>("name");
  key.digest = body->getValue<std::string>("digest");
  key.scopes = textsOf(*body, "scopes");
  key.endpoints = textsOf(*body, "endpoints");
  key.createdAt = timeOf(*body, "createdAt").value_or(Instant{});
  key.expiresAt = timeOf(*body, "expiresAt");
  key.lastUsedAt = timeOf(*body, "lastUsedAt");
  key.endingSince = timeOf(*body, "endingSince");
  return key;
}

}  // namespace jobq
