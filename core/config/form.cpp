#include "core/config/form.h"

#include <set>

#include "core/base/words.h"
#include "jobq/json.h"
#include "jobq/nearest.h"

namespace jobq {
namespace {

Result<json::Document> parse(std::string_view text) {
  auto result = json::read(text);
  if (const auto* fault = std::get_if<json::Fault>(&result)) {
    return invalid(std::string("is not valid JSON: ") + fault->reason + " (at byte " + std::to_string(fault->offset) +
                   ")");
  }
  return std::get<json::Document>(std::move(result));
}

}  // namespace

bool isFaulty(const FieldFaults& faults, std::string_view field) {
  return std::any_of(faults.begin(), faults.end(),
                     [field](const FieldFault& fault) { return fault.field.empty() || fault.field == field; });
}

Result<std::string> readText(const json::Value& value, std::size_t min, std::size_t max) {
  auto text = json::toText(value);
  if (!text || text->size() < min || text->size() > max) {
    return invalid("must be a string of " + std::to_string(min) + " to " + std::to_string(max) + " bytes");
  }
  return std::move(*text);
}

Result<std::int64_t> readWhole(const json::Value& value, const Range& range) {
  const auto number = readInteger(value, range, OutOfRange::refuse);
  if (!number) {
    return invalid("must be an integer from " + std::to_string(range.min) + " to " + std::to_string(range.max));
  }
  return *number;
}

Result<bool> readFlag(const json::Value& value) {
  const auto flag = json::toBoolean(value);
  if (!flag) return invalid("must be true or false");
  return *flag;
}

Result<std::vector<std::string>> readTexts(const json::Value& value) {
  if (value.kind != json::Kind::array) return invalid("must be an array of strings");
  std::vector<std::string> texts;
  const auto list = parse(value.raw);
  if (!list) return list.failure();
  for (const json::Value& element : list->elements) {
    const auto text = json::toText(element);
    if (!text) return invalid("must be an array of strings");
    texts.push_back(*text);
  }
  return texts;
}

Result<std::map<std::string, std::string>> readTextMap(const json::Value& value) {
  if (value.kind != json::Kind::object) return invalid("must be an object of strings");
  std::map<std::string, std::string> texts;
  const auto object = parse(value.raw);
  if (!object) return object.failure();
  for (const json::Member& member : object->members) {
    const std::string key = json::decode(member.key);
    const auto text = json::toText(member.value);
    if (!text) return invalid("must hold strings only: write the value of " + clipped(key) + " in quotes");
    if (!texts.emplace(key, *text).second) return invalid("holds " + clipped(key) + " twice: send it once");
  }
  return texts;
}

Result<std::string> readChoice(const json::Value& value, const std::vector<std::string>& choices) {
  const auto text = json::toText(value);
  std::string all;
  for (const std::string& choice : choices) {
    if (text == choice) return choice;
    all += (all.empty() ? "" : ", ") + choice;
  }
  return invalid(choices.size() == 1 ? "must be " + all + ": no other value is available yet"
                                     : "must be one of " + all);
}

FormBody::FormBody(std::string_view text) {
  const auto body = parse(text);
  if (!body) {
    faults.push_back({"", "the body " + body.failure().message()});
    return;
  }
  if (body->root.kind != json::Kind::object) {
    faults.push_back({"", "the body must be a JSON object"});
    return;
  }
  std::set<std::string> seen;
  for (const json::Member& member : body->members) {
    const auto [name, fresh] = seen.insert(json::decode(member.key));
    if (!fresh) faults.push_back({*name, clipped(*name) + " appears twice: send it once"});
    if (fresh) members.emplace_back(*name, member.value);
  }
}

Result<std::vector<std::pair<std::string, json::Value>>> presentMembers(const json::Value& value,
                                                                        const std::string& inside) {
  if (value.kind != json::Kind::object) return invalid("must be an object");
  const auto object = parse(value.raw);
  if (!object) return object.failure();
  std::set<std::string> seen;
  std::vector<std::pair<std::string, json::Value>> members;
  for (const json::Member& member : object->members) {
    const auto [name, fresh] = seen.insert(json::decode(member.key));
    if (!fresh) return invalid("holds " + clipped(inside + *name) + " twice: send it once");
    if (member.value.kind != json::Kind::null) members.emplace_back(*name, member.value);
  }
  return members;
}

Failure unknownMember(const std::string& name, const std::vector<std::string>& known) {
  return invalid("has no " + clipped(name) + nearestHint(clipped(name), known, ": leave it out"));
}

FieldFault unknownField(const std::string& name, const char* thing, const std::vector<std::string>& known) {
  return {clipped(name),
          clipped(name) + " is not a field of " + thing + nearestHint(clipped(name), known, ": leave it out")};
}

FieldFault fixedField(const std::string& name, const char* thing) {
  return {name, name + " of " + thing + " is fixed when it is created: leave it out"};
}

}  // namespace jobq
