#include "fields.h"

#include <algorithm>
#include <charconv>

#include "jobq/error.h"

namespace jobq::image {

Fields::Fields(std::string name, std::string_view text) : name_(std::move(name)) {
  auto scanned = json::read(text);
  auto* document = std::get_if<json::Document>(&scanned);
  if (document == nullptr || document->root.kind != json::Kind::object) {
    throw JobFailed(name_ + " must be a JSON object");
  }
  document_ = std::move(*document);
}

void Fields::allowOnly(std::initializer_list<std::string_view> keys) const {
  for (const json::Member& member : document_.members) {
    const std::string key = json::decode(member.key);
    if (std::find(keys.begin(), keys.end(), key) != keys.end()) continue;
    std::string known;
    for (const std::string_view name : keys) known.append(known.empty() ? "" : ", ").append(name);
    throw JobFailed(name_ + " has the unknown key " + json::quoted(key.substr(0, 64)) + "; the known keys are " +
                    known);
  }
}

std::optional<std::string> Fields::text(std::string_view key) const {
  const auto value = document_.find(key);
  if (!value) return std::nullopt;
  auto text = json::toText(*value);
  if (!text) refuse(key, "a string");
  return text;
}

std::string Fields::requiredText(std::string_view key) const {
  auto value = text(key);
  if (!value || value->empty()) refuse(key, "a string that is not empty");
  return *std::move(value);
}

std::optional<std::int64_t> Fields::integer(std::string_view key, std::int64_t min, std::int64_t max) const {
  const auto value = document_.find(key);
  if (!value) return std::nullopt;
  const auto number = json::toInteger(*value);
  if (!number || *number < min || *number > max) {
    refuse(key, "a whole number from " + std::to_string(min) + " to " + std::to_string(max));
  }
  return number;
}

std::int64_t Fields::requiredInteger(std::string_view key, std::int64_t min, std::int64_t max) const {
  const auto number = integer(key, min, max);
  if (!number) refuse(key, "a whole number from " + std::to_string(min) + " to " + std::to_string(max));
  return *number;
}

double Fields::requiredNumber(std::string_view key, double min, double max) const {
  const auto value = document_.find(key);
  double number = 0;
  if (value && value->kind == json::Kind::number) {
    const char* end = value->raw.data() + value->raw.size();
    const auto [at, error] = std::from_chars(value->raw.data(), end, number);
    if (error == std::errc() && at == end && number >= min && number <= max) return number;
  }
  refuse(key, "a number from " + std::to_string(std::int64_t(min)) + " to " + std::to_string(std::int64_t(max)));
}

std::vector<json::Value> Fields::list(std::string_view key) const {
  const auto value = document_.find(key);
  if (!value) return {};
  if (value->kind != json::Kind::array) refuse(key, "an array");
  return std::get<json::Document>(json::read(value->raw)).elements;
}

Fields Fields::object(std::string_view key) const {
  const auto value = document_.find(key);
  if (!value || value->kind != json::Kind::object) refuse(key, "an object");
  return Fields(name_ + "." + std::string(key), value->raw);
}

void Fields::refuse(std::string_view key, std::string_view remedy) const {
  throw JobFailed(name_ + "." + std::string(key) + " must be " + std::string(remedy));
}

}  // namespace jobq::image
