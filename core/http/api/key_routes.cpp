// Routes under /v1/keys: the API keys of callers (core/decisions/auth.md).
#include <Poco/Exception.h>
#include <Poco/JSON/Array.h>
#include <Poco/JSON/Object.h>
#include <Poco/JSON/Parser.h>

#include <set>
#include <sstream>

#include "core/base/clock.h"
#include "core/base/ids.h"
#include "core/base/words.h"
#include "core/config/units.h"
#include "core/http/api/error_response.h"
#include "core/http/api/list_response.h"
#include "core/http/api/routes.h"
#include "jobq/json.h"

namespace jobq {
namespace {

constexpr std::size_t kKeyNameLimit = 191;

struct BadKey {
  std::string message;
};

Poco::Dynamic::Var optionalTime(const std::optional<Instant>& time) {
  return time ? Poco::Dynamic::Var(toIso8601(*time)) : Poco::Dynamic::Var();
}

Poco::JSON::Array toJsonArray(const std::vector<std::string>& values) {
  Poco::JSON::Array array;
  for (const std::string& value : values) array.add(value);
  return array;
}

Poco::JSON::Object toJson(const ApiKey& key) {
  Poco::JSON::Object object(Poco::JSON_PRESERVE_KEY_ORDER);
  object.set("id", key.id);
  object.set("name", key.name);
  object.set("scopes", toJsonArray(key.scopes));
  object.set("endpoints", toJsonArray(key.endpoints));
  object.set("createdAt", toIso8601(key.createdAt));
  object.set("expiresAt", optionalTime(key.expiresAt));
  object.set("lastUsedAt", optionalTime(key.lastUsedAt));
  return object;
}

template <class Json>
std::string print(const Json& json) {
  std::ostringstream text;
  json.stringify(text);
  return text.str();
}

std::vector<std::string> readTexts(const Poco::JSON::Object& body, const std::string& field) {
  std::vector<std::string> texts;
  if (!body.has(field) || body.isNull(field)) return texts;
  const Poco::JSON::Array::Ptr array = body.getArray(field);
  if (!array) throw BadKey{field + " must be an array of strings"};
  for (const Poco::Dynamic::Var& value : *array) {
    if (!value.isString()) throw BadKey{field + " must be an array of strings"};
    texts.push_back(value.toString());
  }
  return texts;
}

void checkFields(const Poco::JSON::Object& body) {
  const std::vector<std::string> known{"name", "scopes", "endpoints", "expiresAt"};
  for (const auto& [field, value] : body) {
    if (std::find(known.begin(), known.end(), field) == known.end()) {
      throw BadKey{clipped(field) + " is not a field of a key; the nearest one is " + units::nearest(field, known)};
    }
  }
}

std::optional<Instant> readExpiry(const Poco::JSON::Object& body, Instant now) {
  if (!body.has("expiresAt") || body.isNull("expiresAt")) return std::nullopt;
  const auto expiry = body.get("expiresAt").isString() ? fromIso8601(body.getValue<std::string>("expiresAt"))
                                                       : std::optional<Instant>();
  if (!expiry) throw BadKey{"expiresAt must be a time like 2027-01-01T00:00:00Z"};
  if (*expiry <= now) throw BadKey{"expiresAt has passed already: name a time in the future"};
  return expiry;
}

ApiKey readKey(const std::string& text, Instant now) {
  if (!json::valid(text)) throw BadKey{"the body is not valid JSON"};
  const Poco::Dynamic::Var parsed = Poco::JSON::Parser().parse(text);
  if (parsed.type() != typeid(Poco::JSON::Object::Ptr)) throw BadKey{"the body must be a JSON object"};
  const auto body = parsed.extract<Poco::JSON::Object::Ptr>();
  checkFields(*body);
  ApiKey key;
  if (body->has("name") && body->get("name").isString()) key.name = body->getValue<std::string>("name");
  if (key.name.empty() || key.name.size() > kKeyNameLimit) throw BadKey{"name must be a string of 1 to 191 bytes"};
  const std::vector<std::string> scopes = readTexts(*body, "scopes");
  for (const std::string& scope : scopes) {
    if (scope != "client" && scope != "worker" && scope != "admin") {
      throw BadKey{"scopes may hold client, worker and admin, not " + clipped(scope)};
    }
  }
  if (scopes.empty()) throw BadKey{"scopes must hold at least one of client, worker, admin"};
  const std::set<std::string> once(scopes.begin(), scopes.end());
  key.scopes.assign(once.begin(), once.end());
  key.endpoints = readTexts(*body, "endpoints");
  for (const std::string& endpoint : key.endpoints) {
    if (!isIdentifier(endpoint)) throw BadKey{"endpoints holds " + clipped(endpoint) + ", which is not an endpoint id"};
  }
  key.expiresAt = readExpiry(*body, now);
  return key;
}

ApiResponse create(ApiKeys& keys, const WallClock& wall, const ApiRequest& call) {
  try {
    ApiKey key = readKey(call.body, wall.now());
    const std::string secret = keys.create(key);
    Poco::JSON::Object reply = toJson(key);
    reply.set("key", secret);
    return {200, print(reply)};
  } catch (const BadKey& bad) {
    return errorResponse(call.path, 400, bad.message);
  } catch (const Poco::Exception&) {
    return errorResponse(call.path, 400, "the body is not a key: send {\"name\":...,\"scopes\":[...]}");
  }
}

ApiResponse list(ApiKeys& keys, ApiRequest& call) {
  ListResponse reply(call);
  for (const ApiKey& key : keys.list()) {
    if (!reply.add(print(toJson(key)))) break;
  }
  return reply.finish();
}

ApiResponse revoke(ApiKeys& keys, const ApiRequest& call) {
  const std::string& id = call.params.at("id");
  switch (keys.revoke(id)) {
    case Revocation::revoked: return {204, ""};
    case Revocation::noSuchKey: break;
    case Revocation::underWay:
      return errorResponse(call.path, 409,
                           "this key is being revoked by another call: list the keys again in a moment");
    case Revocation::lastAdminKey:
      return errorResponse(call.path, 409,
                           "this is the last admin key: make another one that never expires, and then revoke this one");
  }
  return errorResponse(call.path, 404, "there is no key with the id " + clipped(id));
}

}  // namespace

void addKeyRoutes(Router& router, ApiKeys& keys, const WallClock& wall) {
  constexpr std::size_t kLimit = 64UL << 10;
  router.add({{"POST"}, "/v1/keys", Scope::admin, kLimit, true, [&keys, &wall](const ApiRequest& call) {
                return create(keys, wall, call);
              }});
  router.add(
      {{"GET"}, "/v1/keys", Scope::admin, kLimit, false, [&keys](ApiRequest& call) { return list(keys, call); }});
  router.add({{"DELETE"}, "/v1/keys/{id}", Scope::admin, kLimit, false, [&keys](const ApiRequest& call) {
                return revoke(keys, call);
              }});
}

}  // namespace jobq
