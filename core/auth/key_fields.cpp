#include "core/auth/key_fields.h"

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/clock.h"
#include "core/base/ids.h"
#include "core/base/words.h"
#include "core/config/form_rows.h"
#include "jobq/json.h"

namespace jobq {
namespace {

using K = ApiKey;

constexpr std::size_t kKeyNameLimit = 191;
constexpr const char* kEndpointIds = R"({"items":{"type":"string","pattern":"^[A-Za-z0-9_-]{1,128}$"}})";
constexpr const char* kTimeOrNull = R"({"oneOf":[{"$ref":"#/components/schemas/Time"},{"type":"null"}]})";
constexpr const char* kExpiry =
    R"({"type":["string","null"],"format":"date-time","pattern":"^[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])T)"
    R"(([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\\.[0-9]{3})?Z$"})";

std::string timeText(const std::optional<Instant>& time) {
  return jsonText(time ? std::optional(toIso8601(*time)) : std::nullopt);
}

Result<std::vector<std::string>> readScopes(const json::Value& value) {
  const auto scopes = readTexts(value);
  if (!scopes) return scopes;
  for (const std::string& scope : *scopes) {
    if (std::ranges::find(kScopeNames, scope, &ScopeName::name) == kScopeNames.end()) {
      return invalid("may hold " + scopeList() + ", not " + clipped(scope));
    }
  }
  const std::set<std::string> once(scopes->begin(), scopes->end());
  return std::vector<std::string>(once.begin(), once.end());
}

Result<void> checkEndpoints(const K& key) {
  for (const std::string& endpoint : key.endpoints) {
    if (!isIdentifier(endpoint)) return invalid("holds " + clipped(endpoint) + ", which is not an endpoint id");
  }
  return {};
}

Result<std::optional<Instant>> readExpiry(const json::Value& value) {
  const auto text = json::toText(value);
  const auto expiry = text ? fromIso8601(*text) : std::nullopt;
  if (!expiry) return invalid("must be a time like 2027-01-01T00:00:00Z");
  return expiry;
}

std::string scopeKeywords(bool isUnique) {
  return json::object([isUnique](json::ObjectWriter& out) {
    out.member("minItems", 1);
    if (isUnique) out.member("uniqueItems", true);
    out.object("items", [](json::ObjectWriter& items) {
      items.member("type", "string");
      items.array("enum", [](json::ArrayWriter& names) {
        for (const ScopeName& each : kScopeNames) names.element(each.name);
      });
    });
  });
}

FormField<K> scopesField() {
  FormField<K> row = textsField<K>("scopes", &K::scopes);
  row.read = [](K& key, const json::Value& value) { return assign(key.scopes, readScopes(value)); };
  return row
      .means(
          "The rights of the key: `client` permits the queue API, `submit` the jobs of the key itself, `read` calls "
          "that change nothing, `monitor` health, `worker` the calls of remote workers, and `admin` everything.")
      .needed("scopes must hold at least one of " + scopeList())
      .schema(scopeKeywords(false), scopeKeywords(true));
}

// Row of a time in responses. A key without the time has null.
FormField<K> timeField(const char* name, std::optional<Instant> K::*member) {
  return FormField<K>{.name = name,
                      .use = FieldUse::answer,
                      .read = {},
                      .write = [member](const K& key) { return timeText(key.*member); }}
      .schema(kExpiry, kTimeOrNull);
}

FormField<K> expiryField() {
  FormField<K> row = timeField("expiresAt", &K::expiresAt);
  row.use = FieldUse::free;
  row.read = [](K& key, const json::Value& value) { return assign(key.expiresAt, readExpiry(value)); };
  return row.means("The time of expiry in UTC, in the future. Null means never.");
}

constexpr std::array<std::string_view, 5> kOwnFields{"id", "name", "scopes", "endpoints", "expiresAt"};

}  // namespace

const FormFields<ApiKey>& keyFields() {
  static const FormFields<K> kFields{
      textField<K>("id", &K::id, 1, 64, FieldUse::answer).means("The id, assigned by the server."),
      textField<K>("name", &K::name, 1, kKeyNameLimit)
          .means("The name for people. Two keys may have the same name.")
          .needed("name is missing: give the key a name"),
      scopesField(),
      textsField<K>("endpoints", &K::endpoints)
          .means("The only endpoints of the key, which need not exist yet. An empty list means all endpoints.")
          .checked(checkEndpoints)
          .schema(kEndpointIds, R"({"items":{"type":"string"}})"),
      FormField<K>{.name = "createdAt",
                   .use = FieldUse::answer,
                   .read = {},
                   .write = [](const K& key) { return jsonText(toIso8601(key.createdAt)); }}
          .means("The time of creation.")
          .schema("{}", R"({"allOf":[{"$ref":"#/components/schemas/Time"}]})")
          .unread(),
      expiryField(),
      timeField("lastUsedAt", &K::lastUsedAt)
          .means("The time of the last use, to the minute. Null means never.")
          .unread(),
  };
  return kFields;
}

const FormFields<ApiKey>& ownKeyFields() {
  static const FormFields<K> kFields = [] {
    FormFields<K> fields;
    for (const std::string_view name : kOwnFields) {
      fields.push_back(*std::ranges::find(keyFields(), name, &FormField<K>::name));
    }
    return fields;
  }();
  return kFields;
}

}  // namespace jobq
