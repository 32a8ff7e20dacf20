// Routes under /v1/keys: the API keys of callers (core/decisions/auth.md).
#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "core/base/clock.h"
#include "core/base/ids.h"
#include "core/base/words.h"
#include "core/http/api/error_response.h"
#include "core/http/api/list_response.h"
#include "core/http/api/routes.h"
#include "jobq/fields.h"
#include "jobq/json_writer.h"

namespace jobq {
namespace {

constexpr std::size_t kKeyNameLimit = 191;

std::optional<std::string> timeText(const std::optional<Instant>& time) {
  return time ? std::optional(toIso8601(*time)) : std::nullopt;
}

void writeKey(json::ObjectWriter& out, const ApiKey& key) {
  out.member("id", key.id);
  out.member("name", key.name);
  out.member("scopes", key.scopes);
  out.member("endpoints", key.endpoints);
  out.member("createdAt", toIso8601(key.createdAt));
  out.member("expiresAt", timeText(key.expiresAt));
  out.member("lastUsedAt", timeText(key.lastUsedAt));
}

bool isGiven(const Fields& body, const char* field) {
  const auto value = body.value(field);
  return value && value->kind != json::Kind::null;
}

std::vector<std::string> readTexts(const Fields& body, const char* field) {
  return isGiven(body, field) ? body.texts(field, Fields::kAnySize) : std::vector<std::string>();
}

/// The fault of one field of the body.
FieldError fault(const char* field, std::string problem) { return {"the body", field, std::move(problem)}; }

std::optional<Instant> readExpiry(const Fields& body, Instant now) {
  if (!isGiven(body, "expiresAt")) return std::nullopt;
  const auto text = json::toText(*body.value("expiresAt"));
  const auto expiry = text ? fromIso8601(*text) : std::optional<Instant>();
  if (!expiry) throw fault("expiresAt", "must be a time like 2027-01-01T00:00:00Z");
  if (*expiry <= now) throw fault("expiresAt", "has passed already: name a time in the future");
  return expiry;
}

std::vector<std::string> readScopes(const Fields& body) {
  const std::vector<std::string> scopes = readTexts(body, "scopes");
  for (const std::string& scope : scopes) {
    if (scope != "client" && scope != "worker" && scope != "admin") {
      throw fault("scopes", "may hold client, worker and admin, not " + clipped(scope));
    }
  }
  if (scopes.empty()) throw fault("scopes", "must hold at least one of client, worker, admin");
  const std::set<std::string> once(scopes.begin(), scopes.end());
  return {once.begin(), once.end()};
}

ApiKey readKey(const std::string& text, Instant now) {
  if (!json::valid(text)) throw fault("", "is not valid JSON");
  const Fields body("the body", text);
  body.allowOnly({"name", "scopes", "endpoints", "expiresAt"});
  ApiKey key;
  key.name = body.requiredText("name", 1, kKeyNameLimit);
  key.scopes = readScopes(body);
  key.endpoints = readTexts(body, "endpoints");
  for (const std::string& endpoint : key.endpoints) {
    if (!isIdentifier(endpoint))
      throw fault("endpoints", "holds " + clipped(endpoint) + ", which is not an endpoint id");
  }
  key.expiresAt = readExpiry(body, now);
  return key;
}

ApiResponse create(ApiKeys& keys, const WallClock& wall, const ApiRequest& call) {
  ApiKey key;
  try {
    key = readKey(call.body, wall.now());
  } catch (const FieldError& error) {
    return errorResponse(call.path, 400, error.key().empty() ? error.what() : error.key() + " " + error.problem());
  }
  const std::string secret = keys.create(key);
  return {200, json::object([&](json::ObjectWriter& out) {
            writeKey(out, key);
            out.member("key", secret);
          })};
}

ApiResponse list(ApiKeys& keys, ApiRequest& call) {
  ListResponse reply(call);
  for (const ApiKey& key : keys.list()) {
    if (!reply.add(json::object([&key](json::ObjectWriter& out) { writeKey(out, key); }))) break;
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
