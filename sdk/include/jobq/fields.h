// Typed reading of JSON objects, such as the input of a job:
//
//   const Fields fields(input);
//   fields.allowOnly({"text", "times", "loud"});
//   const std::string text = fields.requiredText("text", 1, 1000);
//   const std::int64_t times = fields.integer("times", 1, 10).value_or(1);
//   const bool loud = fields.flag("loud").value_or(false);
//
// Each fault is a sentence with the name of the field and the remedy, such as "input.times must be a whole number from
// 1 to 10". No fault repeats a value, because the object may hold a secret.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "jobq/error.h"
#include "jobq/json.h"
#include "jobq/json_writer.h"
#include "jobq/nearest.h"

namespace jobq {

/// A field that cannot be used. A handler lets the exception pass: the job is FAILED with the sentence of what(). A
/// filter catches the exception and refuses the job with the sentence.
class FieldError : public JobFailed {
 public:
  /// `object` is the name of the object ("input.crop"), `key` the field, or empty for a fault of the object as a whole.
  /// `problem` begins with a verb: "must be true or false".
  FieldError(const std::string& object, std::string key, std::string problem)
      : JobFailed(object + (key.empty() ? "" : ".") + key + " " + problem),
        key_(std::move(key)),
        problem_(std::move(problem)) {}

  const std::string& key() const noexcept { return key_; }
  const std::string& problem() const noexcept { return problem_; }

 private:
  std::string key_;
  std::string problem_;
};

/// A JSON object with a name. Owns the name, borrows the JSON text, which outlives the object. If a key appears more
/// than once, the last value counts; allowOnly() refuses such a key. Null is a value of the wrong type. A method
/// without "required" in its name returns an empty optional or list if the key is absent. The constructor and
/// every typed reader throw FieldError for a wrong type or an exceeded bound, and std::bad_alloc. has(), value() and
/// members() check nothing: a null is present there. Any thread.
class Fields {
 public:
  static constexpr std::size_t kMostFields = 1'000;
  static constexpr std::size_t kAnySize = SIZE_MAX;

  /// `name` is the name of the object in faults: "input", "operations[2].resize". An object with more than `most`
  /// fields is refused, because the list of the fields takes 40 bytes of memory for each.
  Fields(std::string name, std::string_view text, std::size_t most = kMostFields);

  /// The input of a job.
  explicit Fields(std::string_view input) : Fields("input", input) {}

  /// Refuses any other key, and a key that appears more than once. The fault names the known keys, and the nearest one
  /// if a known key is near.
  void allowOnly(std::initializer_list<std::string_view> keys) const;

  bool has(std::string_view key) const { return value(key).has_value(); }
  /// Returns the value as it is in the text.
  std::optional<json::Value> value(std::string_view key) const { return document_.find(key); }
  /// Returns all fields in their order. Keys have their raw bytes.
  const std::vector<json::Member>& members() const { return document_.members; }

  /// Returns a string of `min` to `max` bytes.
  std::optional<std::string> text(std::string_view key, std::size_t min = 0, std::size_t max = kAnySize) const;
  std::string requiredText(std::string_view key, std::size_t min = 1, std::size_t max = kAnySize) const;
  /// Returns a whole number from `min` to `max`, written without fraction and exponent.
  std::optional<std::int64_t> integer(std::string_view key, std::int64_t min, std::int64_t max) const;
  std::int64_t requiredInteger(std::string_view key, std::int64_t min, std::int64_t max) const;
  /// Returns a number from `min` to `max`.
  std::optional<double> number(std::string_view key, double min, double max) const;
  double requiredNumber(std::string_view key, double min, double max) const;
  /// Returns true or false.
  std::optional<bool> flag(std::string_view key) const;

  /// One word of a choice and its meaning.
  template <class T>
  using Choice = std::pair<std::string_view, T>;
  /// Returns the meaning of a word: choice<Fit>("fit", {{"inside", Fit::inside}, {"cover", Fit::cover}}).
  template <class T>
  std::optional<T> choice(std::string_view key, std::initializer_list<Choice<T>> choices) const;

  /// Returns the elements of an array as views into the text. `elements` names them in faults: "operations". More than
  /// `most` elements are refused, because the list takes 24 bytes of memory for each.
  std::vector<json::Value> list(std::string_view key, std::string_view elements, std::size_t most) const;
  /// Returns the strings of an array with at most `most` elements.
  std::vector<std::string> texts(std::string_view key, std::size_t most) const;
  /// Returns an object inside this one; its name in faults is "<name>.<key>".
  std::optional<Fields> object(std::string_view key) const;
  Fields requiredObject(std::string_view key) const;

  /// Throws FieldError("<name>.<key> must be <remedy>"), for a rule of the caller.
  [[noreturn]] void refuse(std::string_view key, std::string_view remedy) const;

 private:
  [[noreturn]] void fail(std::string_view key, std::string problem) const;

  template <class T>
  T required(std::string_view key, std::optional<T> value, const std::string& remedy) const {
    if (!value) refuse(key, remedy);
    return *std::move(value);
  }

  std::string name_;
  json::Document document_;
};

namespace detail {

inline std::string textRemedy(std::size_t min, std::size_t max) {
  if (max != Fields::kAnySize) return "a string of " + std::to_string(min) + " to " + std::to_string(max) + " bytes";
  if (min == 0) return "a string";
  return min == 1 ? "a string that is not empty" : "a string of at least " + std::to_string(min) + " bytes";
}

inline std::string integerRemedy(std::int64_t min, std::int64_t max) {
  return "a whole number from " + std::to_string(min) + " to " + std::to_string(max);
}

inline std::string numberRemedy(double min, double max) {
  std::string remedy = "a number from ";
  json::appendValue(remedy, min);
  remedy += " to ";
  json::appendValue(remedy, max);
  return remedy;
}

}  // namespace detail

inline Fields::Fields(std::string name, std::string_view text, std::size_t most) : name_(std::move(name)) {
  auto scanned = json::read(text, most < kAnySize ? most + 1 : most);
  auto* document = std::get_if<json::Document>(&scanned);
  if (document == nullptr || document->root.kind != json::Kind::object) fail({}, "must be a JSON object");
  if (document->members.size() > most) fail({}, "must have at most " + std::to_string(most) + " fields");
  document_ = std::move(*document);
}

inline void Fields::allowOnly(std::initializer_list<std::string_view> keys) const {
  constexpr std::size_t kShown = 64;
  std::vector<std::string_view> seen;
  for (const json::Member& member : document_.members) {
    const std::string key = json::decode(member.key);
    if (const auto at = std::find(keys.begin(), keys.end(), key); at != keys.end()) {
      if (std::find(seen.begin(), seen.end(), *at) != seen.end()) fail(*at, "appears more than once: send it once");
      seen.push_back(*at);
      continue;
    }
    const std::string_view shown = std::string_view(key).substr(0, kShown);
    std::string known;
    for (const std::string_view name : keys) known.append(known.empty() ? "" : ", ").append(name);
    fail({}, "has the unknown key " + json::quoted(shown) + "; the known keys are " + known + nearestHint(shown, keys));
  }
}

inline std::optional<std::string> Fields::text(std::string_view key, std::size_t min, std::size_t max) const {
  const auto found = value(key);
  if (!found) return std::nullopt;
  auto text = json::toText(*found, min, max);
  if (!text) refuse(key, detail::textRemedy(min, max));
  return text;
}

inline std::string Fields::requiredText(std::string_view key, std::size_t min, std::size_t max) const {
  return required(key, text(key, min, max), detail::textRemedy(min, max));
}

inline std::optional<std::int64_t> Fields::integer(std::string_view key, std::int64_t min, std::int64_t max) const {
  const auto found = value(key);
  if (!found) return std::nullopt;
  const auto number = json::toInteger(*found, min, max);
  if (!number) refuse(key, detail::integerRemedy(min, max));
  return number;
}

inline std::int64_t Fields::requiredInteger(std::string_view key, std::int64_t min, std::int64_t max) const {
  return required(key, integer(key, min, max), detail::integerRemedy(min, max));
}

inline std::optional<double> Fields::number(std::string_view key, double min, double max) const {
  const auto found = value(key);
  if (!found) return std::nullopt;
  const auto number = json::toNumber(*found, min, max);
  if (!number) refuse(key, detail::numberRemedy(min, max));
  return number;
}

inline double Fields::requiredNumber(std::string_view key, double min, double max) const {
  return required(key, number(key, min, max), detail::numberRemedy(min, max));
}

inline std::optional<bool> Fields::flag(std::string_view key) const {
  const auto found = value(key);
  if (!found) return std::nullopt;
  const auto flag = json::toBoolean(*found);
  if (!flag) refuse(key, "true or false");
  return flag;
}

template <class T>
std::optional<T> Fields::choice(std::string_view key, std::initializer_list<Choice<T>> choices) const {
  const auto found = value(key);
  if (!found) return std::nullopt;
  const auto word = json::toText(*found);
  std::string remedy = "one of ";
  for (const auto& [name, meaning] : choices) {
    if (word == name) return meaning;
    remedy.append(name == choices.begin()->first ? "" : ", ").append(json::quoted(name));
  }
  refuse(key, remedy);
}

inline std::vector<json::Value> Fields::list(std::string_view key, std::string_view elements, std::size_t most) const {
  const auto found = value(key);
  if (!found) return {};
  if (found->kind != json::Kind::array) refuse(key, "an array of " + std::string(elements));
  auto document = std::get<json::Document>(json::read(found->raw, most < kAnySize ? most + 1 : most));
  if (document.elements.size() > most) {
    fail(key, "must have at most " + std::to_string(most) + " " + std::string(elements));
  }
  return std::move(document.elements);
}

inline std::vector<std::string> Fields::texts(std::string_view key, std::size_t most) const {
  std::vector<std::string> texts;
  for (const json::Value& element : list(key, "strings", most)) {
    auto text = json::toText(element);
    if (!text) refuse(key, "an array of strings");
    texts.push_back(*std::move(text));
  }
  return texts;
}

inline std::optional<Fields> Fields::object(std::string_view key) const {
  const auto found = value(key);
  if (!found) return std::nullopt;
  if (found->kind != json::Kind::object) refuse(key, "an object");
  return Fields(name_ + "." + std::string(key), found->raw);
}

inline Fields Fields::requiredObject(std::string_view key) const { return required(key, object(key), "an object"); }

inline void Fields::refuse(std::string_view key, std::string_view remedy) const {
  fail(key, "must be " + std::string(remedy));
}

inline void Fields::fail(std::string_view key, std::string problem) const {
  throw FieldError(name_, std::string(key), std::move(problem));
}

}  // namespace jobq
