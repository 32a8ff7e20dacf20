// Typed reading of a JSON object. Faults name the key and the allowed values, but never the value: the object may hold
// a secret.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "jobq/json.h"

namespace jobq::image {

/// A JSON object with a name. Owns the name, borrows the JSON text. Any thread. Every reading method throws JobFailed
/// if the value has the wrong type or is out of range.
class Fields {
 public:
  /// `name` is the name of the object in faults ("input", "operations[2].resize"). Throws JobFailed if `text` is no
  /// JSON object.
  Fields(std::string name, std::string_view text);

  /// Throws JobFailed if the object has any other key.
  void allowOnly(std::initializer_list<std::string_view> keys) const;

  bool has(std::string_view key) const { return document_.find(key).has_value(); }
  /// Returns the string under `key`, or no value if the key is absent.
  std::optional<std::string> text(std::string_view key) const;
  /// Returns the string under `key`. Throws JobFailed if the key is absent or the string is empty.
  std::string requiredText(std::string_view key) const;
  /// Returns the whole number under `key`, from `min` to `max`, or no value if the key is absent.
  std::optional<std::int64_t> integer(std::string_view key, std::int64_t min, std::int64_t max) const;
  /// Returns the whole number under `key`, from `min` to `max`. Throws JobFailed also if the key is absent.
  std::int64_t requiredInteger(std::string_view key, std::int64_t min, std::int64_t max) const;
  /// Returns the number under `key`, from `min` to `max`. Throws JobFailed also if the key is absent.
  double requiredNumber(std::string_view key, double min, double max) const;
  /// Returns the elements of the array under `key` as views into the text. Empty if the key is absent.
  std::vector<json::Value> list(std::string_view key) const;
  /// Returns the object under `key`. Throws JobFailed if the key is absent.
  Fields object(std::string_view key) const;

  const std::vector<json::Member>& members() const { return document_.members; }
  /// Throws JobFailed("<name>.<key> must be <remedy>").
  [[noreturn]] void refuse(std::string_view key, std::string_view remedy) const;

 private:
  std::string name_;
  json::Document document_;
};

}  // namespace jobq::image
