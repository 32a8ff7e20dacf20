#include "core/http/api/field_schemas.h"

#include <functional>
#include <map>
#include <utility>
#include <variant>
#include <vector>

#include "core/auth/key_fields.h"
#include "core/config/endpoint_spec.h"
#include "core/config/policy_fields.h"
#include "core/config/template.h"
#include "jobq/json.h"
#include "jobq/json_writer.h"

namespace jobq {
namespace {

enum class Place {
  answer,   ///< a response with all fields
  sparse,   ///< an object of a response without the fields that are null
  create,   ///< a request of creation
  change,   ///< a request without defaults
  lenient,  ///< a request of creation whose numbers may be out of range
};

struct TableSchema {
  std::function<std::vector<FieldFacts>()> fields;
  Place place;
};

constexpr auto kTemplateFields = [] { return described(templateFields()); };
constexpr auto kEndpointFields = [] { return described(endpointFields()); };
constexpr auto kKeyFields = [] { return described(keyFields()); };
constexpr auto kOwnKeyFields = [] { return described(ownKeyFields()); };
constexpr auto kLimitFields = [] { return described(limitFields()); };
constexpr auto kPolicyFields = [] { return described(policyFields()); };

const std::map<std::string_view, TableSchema>& tableSchemas() {
  static const std::map<std::string_view, TableSchema> kSchemas{
      {"Template", {kTemplateFields, Place::answer}},
      {"TemplateInput", {kTemplateFields, Place::create}},
      {"TemplateChange", {kTemplateFields, Place::change}},
      {"Endpoint", {kEndpointFields, Place::answer}},
      {"EndpointInput", {kEndpointFields, Place::create}},
      {"EndpointChange", {kEndpointFields, Place::change}},
      {"Key", {kKeyFields, Place::answer}},
      {"NewKey", {kKeyFields, Place::answer}},
      {"KeyInput", {kKeyFields, Place::create}},
      {"OwnKey", {kOwnKeyFields, Place::answer}},
      {"RateLimit", {kLimitFields, Place::sparse}},
      {"RateLimitInput", {kLimitFields, Place::create}},
      {"Policy", {kPolicyFields, Place::create}},
      {"LenientPolicy", {kPolicyFields, Place::lenient}},
  };
  return kSchemas;
}

bool isAnswer(Place place) { return place == Place::answer || place == Place::sparse; }

bool hasField(Place place, FieldUse use) {
  if (isAnswer(place)) return isAnswered(use);
  return isAccepted(use) && (place != Place::change || !isFixed(use));
}

bool isRequired(Place place, const FieldFacts& field) {
  return place == Place::answer || (place == Place::create && !field.absence.empty());
}

bool mayBeNull(Place place, const FieldFacts& field) {
  return isAnswer(place) ? place == Place::answer && field.isNullable : !isRequired(place, field);
}

void writeType(json::ObjectWriter& out, const std::string& type, bool mayBeNull) {
  if (!mayBeNull) return out.member("type", type);
  out.array("type", [&type](json::ArrayWriter& types) {
    types.element(type);
    types.element("null");
  });
}

// Values with a few names have no type beside null.
void writeChoices(json::ObjectWriter& out, const FieldFacts& field, bool mayBeNull) {
  if (!mayBeNull) out.member("type", field.type);
  out.array("enum", [&](json::ArrayWriter& values) {
    for (const std::string& choice : field.choices) values.element(choice);
    if (mayBeNull) values.element(nullptr);
  });
}

void writeBounds(json::ObjectWriter& out, const FieldFacts& field, Place place) {
  const auto& range = isAnswer(place) && field.answerRange ? field.answerRange : field.range;
  if (!range) return;
  if (field.type == "integer") {
    out.member("minimum", range->min);
    out.member("maximum", range->max);
  } else {
    if (range->min > 0) out.member("minLength", range->min);
    out.member("maxLength", range->max);
  }
}

void writeKeywords(json::ObjectWriter& out, const std::string& keywords) {
  const auto document = std::get<json::Document>(json::read(keywords));
  for (const json::Member& keyword : document.members) out.namedRaw(json::decode(keyword.key), keyword.value.raw);
}

// Documents of generators have no default that is an object: such clients cannot be imported.
void writeDefault(json::ObjectWriter& out, const FieldFacts& field) {
  const bool hasNone = field.use == FieldUse::secret || field.use == FieldUse::making || !field.defaultText.empty() ||
                       field.defaultValue == "null";
  if (!hasNone && field.defaultValue.front() != '{') out.raw("default", field.defaultValue);
}

std::string descriptionOf(const FieldFacts& field, Place place) {
  std::string text = field.meaning;
  if (field.unit == "ms") text += " In milliseconds.";
  if (field.unit == "s") text += " In seconds.";
  if (place == Place::lenient && field.range) {
    text += " The range is " + std::to_string(field.range->min) + " to " + std::to_string(field.range->max) + ".";
  }
  return text;
}

void writeProperties(json::ObjectWriter& out, const std::vector<FieldFacts>& fields, Place place);

void writeField(json::ObjectWriter& out, const FieldFacts& field, Place place) {
  const bool isMoved = place == Place::lenient && field.type == "integer";
  if (!field.choices.empty()) {
    writeChoices(out, field, mayBeNull(place, field));
  } else if (!field.type.empty()) {
    writeType(out, isMoved ? "number" : field.type, mayBeNull(place, field));
  }
  if (!isMoved) writeBounds(out, field, place);
  writeKeywords(out, isAnswer(place) ? field.answerKeywords : field.requestKeywords);
  if (!field.members.empty()) {
    const Place inside = place == Place::answer ? Place::sparse : place;
    out.object("properties", [&](json::ObjectWriter& members) { writeProperties(members, field.members, inside); });
    out.member("additionalProperties", false);
  }
  if ((place == Place::create || place == Place::lenient) && !isRequired(place, field)) writeDefault(out, field);
  out.member("description", descriptionOf(field, place));
}

void writeProperties(json::ObjectWriter& out, const std::vector<FieldFacts>& fields, Place place) {
  for (const FieldFacts& field : fields) {
    if (!hasField(place, field.use)) continue;
    out.namedMember(field.name, [&](std::string& text) {
      json::appendObject(text, [&](json::ObjectWriter& schema) { writeField(schema, field, place); });
    });
  }
}

void writeRequired(json::ArrayWriter& out, const std::vector<FieldFacts>& fields, Place place) {
  for (const FieldFacts& field : fields) {
    if (hasField(place, field.use) && isRequired(place, field)) out.element(field.name);
  }
}

json::Document partOf(const json::Document& schema, std::string_view name) {
  const auto part = schema.find(name);
  return part ? std::get<json::Document>(json::read(part->raw)) : json::Document{};
}

}  // namespace

std::string withFields(std::string_view name, std::string_view schema) {
  const auto found = tableSchemas().find(name);
  if (found == tableSchemas().end()) return std::string(schema);
  const std::vector<FieldFacts> fields = found->second.fields();
  const Place place = found->second.place;
  const auto frame = std::get<json::Document>(json::read(schema));
  return json::object([&](json::ObjectWriter& out) {
    for (const json::Member& member : frame.members) {
      if (member.key != "required" && member.key != "properties") out.namedRaw(member.key, member.value.raw);
    }
    const std::string required = json::array([&](json::ArrayWriter& names) {
      writeRequired(names, fields, place);
      for (const json::Value& other : partOf(frame, "required").elements) names.raw(other.raw);
    });
    if (required != "[]") out.raw("required", required);
    out.object("properties", [&](json::ObjectWriter& properties) {
      writeProperties(properties, fields, place);
      for (const json::Member& other : partOf(frame, "properties").members) {
        properties.namedRaw(other.key, other.value.raw);
      }
    });
  });
}

}  // namespace jobq
