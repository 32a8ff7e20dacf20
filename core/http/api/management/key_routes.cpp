// Routes under /v1/keys, and /v1/me: the API keys of callers (core/decisions/auth.md).
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/auth/key_fields.h"
#include "core/base/clock.h"
#include "core/base/result.h"
#include "core/base/words.h"
#include "core/http/api/error_response.h"
#include "core/http/api/management/form_response.h"
#include "core/http/api/management/list_response.h"
#include "core/http/api/query_parameters.h"
#include "core/http/api/routes.h"
#include "jobq/json_writer.h"

namespace jobq {
namespace {

constexpr const char* kKeyNoun = "an API key";

Result<ApiKey> readKey(std::string_view text, Instant now) {
  ApiKey key;
  FieldFaults faults = readForm(key, text, keyFields(), kKeyNoun, true);
  addAbsent(faults, key, keyFields());
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

// Answers what the key of the call is, so that its holder need not guess.
ApiResponse showOwn(const ApiRequest& request) { return {200, writeForm(*request.key, ownKeyFields(), false)}; }

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
  router.add({{"GET"}, "/v1/me", RouteAccess::anyKey(), kLimit, false, showOwn});
  router.add({{"DELETE"}, "/v1/keys/{id}", Scope::admin, kLimit, false, [&keys](const ApiRequest& request) {
                return revoke(keys, request);
              }});
}

}  // namespace jobq
