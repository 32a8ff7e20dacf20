// Typed reading of one JSON object whose faults name the key, what it must be, and never its value: the object may be a
// secret.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "jobq/json.h"

namespace jobq::image {

/// Owns its name, borrows the JSON text. Any thread. Every verb throws JobFailed on a value of the wrong type or range.
class Fields {
 public:
  /// `name` is what faults call the object ("input", "operations[2].resize").
  Fields(std::string name, std::string_view text);

  /// Throws JobFailed when the object has another key than these.
  void allowOnly(std::initializer_list<std::string_view> keys) const;

  bool has(std::string_view key) const { return document_.find(key).has_value(); }
  std::optional<std::string> text(std::string_view key) const;
  /// Throws when it is absent or empty.
  std::string requiredText(std::string_view key) const;
  std::optional<std::int64_t> integer(std::string_view key, std::int64_t min, std::int64_t max) const;
  std::int64_t requiredInteger(std::string_view key, std::int64_t min, std::int64_t max) const;
  double requiredNumber(std::string_view key, double min, double max) const;
  /// Empty when absent. Views into the text.
  std::vector<json::Value> list(std::string_view key) const;
  /// The object under `key`; throws when it is absent.
  Fields object(std::string_view key) const;

  const std::vector<json::Member>& members() const { return document_.members; }
  /// "input.quality must be ..."
  [[noreturn]] void refuse(std::string_view key, std::string_view remedy) const;

 private:
  std::string name_;
  json::Document document_;
};

}  // namespace jobq::image
