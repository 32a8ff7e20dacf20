// Routes under /v1/keys: the API keys of callers (core/decisions/auth.md).
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/clock.h"
#include "core/base/ids.h"
#include "core/base/result.h"
#include "core/base/words.h"
#include "core/config/form.h"
#include "core/http/api/error_response.h"
#include "core/http/api/management/form_response.h"
#include "core/http/api/management/list_response.h"
#include "core/http/api/query_parameters.h"
#include "core/http/api/routes.h"
#include "jobq/json_writer.h"

namespace jobq {
namespace {

constexpr std::size_t kKeyNameLimit = 191;
constexpr const char* kKeyNoun = "an API key";

std::string timeText(const std::optional<Instant>& time) {
  return jsonText(time ? std::optional(toIso8601(*time)) : std::nullopt);
}

Result<std::vector<std::string>> readScopes(const json::Value& value) {
  const auto scopes = readTexts(value);
  if (!scopes) return scopes;
  for (const std::string& scope : *scopes) {
    if (scope != "client" && scope != "worker" && scope != "admin") {
      return invalid("may hold client, worker and admin, not " + clipped(scope));
    }
  }
  const std::set<std::string> once(scopes->begin(), scopes->end());
  return std::vector<std::string>(once.begin(), once.end());
}

Result<std::vector<std::string>> readEndpoints(const json::Value& value) {
  auto endpoints = readTexts(value);
  if (!endpoints) return endpoints;
  for (const std::string& endpoint : *endpoints) {
    if (!isIdentifier(endpoint)) return invalid("holds " + clipped(endpoint) + ", which is not an endpoint id");
  }
  return endpoints;
}

Result<std::optional<Instant>> readExpiry(const json::Value& value) {
  const auto text = json::toText(value);
  const auto expiry = text ? fromIso8601(*text) : std::nullopt;
  if (!expiry) return invalid("must be a time like 2027-01-01T00:00:00Z");
  return expiry;
}

// The fields of a key in requests and responses. The record of a key is in core/auth/key_record.h.
const FormFields<ApiKey>& keyFields() {
  using K = ApiKey;
  const auto nothing = [](K&, const json::Value&) { return Result<void>(); };
  static const FormFields<K> kFields{
      textField<K>("id", &K::id, 1, 64, FieldUse::answer),
      textField<K>("name", &K::name, 1, kKeyNameLimit),
      {"scopes", FieldUse::free, [](K& key, const json::Value& value) { return assign(key.scopes, readScopes(value)); },
       [](const K& key) { return jsonText(key.scopes); }},
      {"endpoints", FieldUse::free,
       [](K& key, const json::Value& value) { return assign(key.endpoints, readEndpoints(value)); },
       [](const K& key) { return jsonText(key.endpoints); }},
      {"createdAt", FieldUse::answer, nothing, [](const K& key) { return jsonText(toIso8601(key.createdAt)); }},
      {"expiresAt", FieldUse::free,
       [](K& key, const json::Value& value) { return assign(key.expiresAt, readExpiry(value)); },
       [](const K& key) { return timeText(key.expiresAt); }},
      {"lastUsedAt", FieldUse::answer, nothing, [](const K& key) { return timeText(key.lastUsedAt); }},
  };
  return kFields;
}

Result<ApiKey> readKey(std::string_view text, Instant now) {
  ApiKey key;
  FieldFaults faults = readForm(key, text, keyFields(), kKeyNoun, true);
  if (key.name.empty() && !isFaulty(faults, "name")) {
    faults.push_back({"name", "name is missing: give the key a name"});
  }
  if (key.scopes.empty() && !isFaulty(faults, "scopes")) {
    faults.push_back({"scopes", "scopes must hold at least one of client, worker, admin"});
  }
  if (key.expiresAt && *key.expiresAt <= now) {
    faults.push_back({"expiresAt", "expiresAt has passed already: name a time in the future"});
  }
  if (!faults.empty()) return Failure{Failure::Kind::invalid, std::move(faults)};
  return key;
}

ApiResponse create(ApiKeys& keys, const WallClock& wall, const ApiRequest& request) {
  auto key = readKey(request.body, wall.now());
  if (!key) return failureResponse(request, key.failure());
  const std::string secret = keys.create(*key);
  return {200, json::object([&](json::ObjectWriter& out) {
            writeMembers(out, *key, keyFields(), false);
            out.member("key", secret);
          })};
}

ApiResponse list(ApiKeys& keys, ApiRequest& request) {
  const auto part = readListPart(request);
  if (!part) return failureResponse(request, part.failure());
  ListResponse response(request);
  for (const ApiKeyPtr& key : keys.list(part->cursor, part->limit)) {
    if (!response.add(writeForm(*key, keyFields(), false))) break;
  }
  return response.finish();
}

ApiResponse revoke(ApiKeys& keys, const ApiRequest& request) {
  const std::string& id = request.params.at("id");
  switch (keys.revoke(id)) {
    case Revocation::revoked: return {204, ""};
    case Revocation::noSuchKey: break;
    case Revocation::underWay:
      return errorResponse(request.path, 409,
                           "the key is being revoked by another call: list the keys again in a moment");
    case Revocation::lastAdminKey:
      return errorResponse(
          request.path, 409,
          "the key is the last admin key: make another one that never expires, and then revoke this one");
  }
  return errorResponse(request.path, 404, "there is no key with the id " + clipped(id) + ": list the keys");
}

}  // namespace

void addKeyRoutes(Router& router, ApiKeys& keys, const WallClock& wall) {
  constexpr std::size_t kLimit = 64UL << 10;
  router.add({{"POST"}, "/v1/keys", Scope::admin, kLimit, true, [&keys, &wall](const ApiRequest& request) {
                return create(keys, wall, request);
              }});
  router.add(
      {{"GET"}, "/v1/keys", Scope::admin, kLimit, false, [&keys](ApiRequest& request) { return list(keys, request); }});
  router.add({{"DELETE"}, "/v1/keys/{id}", Scope::admin, kLimit, false, [&keys](const ApiRequest& request) {
                return revoke(keys, request);
              }});
}

}  // namespace jobq
