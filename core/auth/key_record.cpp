#include "core/auth/key_record.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "jobq/fields.h"
#include "jobq/json_writer.h"

namespace jobq {
namespace {

std::optional<Instant> timeOf(const Fields& fields, const char* key) {
  const auto millis = fields.integer(key, INT64_MIN, INT64_MAX);
  return millis ? std::optional(fromEpochMillis(*millis)) : std::nullopt;
}

}  // namespace

std::string scopeList() {
  std::string list;
  for (const ScopeName& each : kScopeNames) list += (list.empty() ? "" : ", ") + std::string(each.name);
  return list;
}

bool ApiKey::isAdmin() const { return endpoints.empty() && has(Scope::admin); }

bool ApiKey::has(Scope scope) const {
  return std::ranges::any_of(kScopeNames, [&](const ScopeName& each) {
    return (each.scope == scope || each.scope == Scope::admin) && std::ranges::count(scopes, each.name) > 0;
  });
}

bool ApiKey::isFor(std::string_view endpoint) const {
  return endpoints.empty() || std::ranges::count(endpoints, endpoint) > 0;
}

bool ApiKey::permits(const RouteAccess& access, std::string_view endpoint) const {
  const bool hasScope = std::ranges::any_of(
      kScopeNames, [&](const ScopeName& each) { return access.permits(each.scope) && has(each.scope); });
  if (!hasScope) return false;
  return endpoint.empty() ? endpoints.empty() || access.takesBoundKeys() : isFor(endpoint);
}

Record toRecord(const ApiKey& key) {
  std::string body = json::object([&key](json::ObjectWriter& out) {
    out.member("digest", key.digest);
    out.member("name", key.name);
    out.member("scopes", key.scopes);
    out.member("endpoints", key.endpoints);
    out.member("createdAt", toEpochMillis(key.createdAt));
    if (key.expiresAt) out.member("expiresAt", toEpochMillis(*key.expiresAt));
    if (key.lastUsedAt) out.member("lastUsedAt", toEpochMillis(*key.lastUsedAt));
    if (key.endingSince) out.member("endingSince", toEpochMillis(*key.endingSince));
  });
  return Record{kKeyRecords, key.id, "", std::move(body), 0, {}};
}

Result<ApiKey> keyOf(const Record& record) try {
  const Fields fields("the record of key " + record.id, record.body);
  ApiKey key;
  key.id = record.id;
  key.name = fields.requiredText("name", 0);
  key.digest = fields.requiredText("digest");
  key.scopes = fields.texts("scopes", Fields::kAnySize);
  key.endpoints = fields.texts("endpoints", Fields::kAnySize);
  key.createdAt = timeOf(fields, "createdAt").value_or(Instant{});
  key.expiresAt = timeOf(fields, "expiresAt");
  key.lastUsedAt = timeOf(fields, "lastUsedAt");
  key.endingSince = timeOf(fields, "endingSince");
  return key;
} catch (const FieldError& error) {
  return invalid(error.what());
}

}  // namespace jobq
