// The meaning of a JSON text, spelled so that two texts of the same value are equal. RapidJSON, an independent reader,
// parses the text. Members are ordered by name, and of equal names the last wins; integers of 64 bits and other numbers
// are kept apart.
#pragma once

#include <rapidjson/memorystream.h>
#include <rapidjson/reader.h>

#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace jobq::lua::test {

class Meaning : public rapidjson::BaseReaderHandler<rapidjson::UTF8<>, Meaning> {
 public:
  bool Null() { return put("null"); }
  bool Bool(bool value) { return put(value ? "true" : "false"); }
  bool RawNumber(const char* text, rapidjson::SizeType size, bool) { return put(number({text, size})); }
  bool String(const char* text, rapidjson::SizeType size, bool) { return put(quoted({text, size})); }
  bool Key(const char* text, rapidjson::SizeType size, bool) {
    levels_.back().key = std::string(text, size);
    return true;
  }
  bool StartObject() { return open(true); }
  bool StartArray() { return open(false); }
  bool EndObject(rapidjson::SizeType) { return close(); }
  bool EndArray(rapidjson::SizeType) { return close(); }

  std::string text() const { return levels_.front().items; }

 private:
  struct Level {
    bool isObject = false;
    std::string key;
    std::string items;
    std::map<std::string, std::string> members;
  };

  // Puts the length first, so that no text can look like the end of a longer text.
  static std::string quoted(std::string_view text) { return std::to_string(text.size()) + "\"" + std::string(text); }

  static std::string number(std::string_view text) {
    std::int64_t whole = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), whole);
    if (error == std::errc() && end == text.data() + text.size() && text != "-0") return std::to_string(whole);
    char spelt[64];
    std::snprintf(spelt, sizeof spelt, "%a", std::strtod(std::string(text).c_str(), nullptr));
    return spelt;
  }

  bool put(const std::string& value) {
    Level& level = levels_.back();
    if (level.isObject) {
      level.members[level.key] = value;
    } else {
      level.items += value + ",";
    }
    return true;
  }
  bool open(bool isObject) {
    levels_.push_back(Level{isObject, {}, {}, {}});
    return true;
  }
  bool close() {
    const Level done = std::move(levels_.back());
    levels_.pop_back();
    std::string value(1, done.isObject ? '{' : '[');
    for (const auto& [key, member] : done.members) value += quoted(key) + ":" + member + ",";
    return put(value + done.items + (done.isObject ? '}' : ']'));
  }

  std::vector<Level> levels_ = std::vector<Level>(1);
};

/// Returns an empty string for texts refused by RapidJSON: invalid JSON, or a number beyond a double.
inline std::string outlineOf(std::string_view text) {
  Meaning meaning;
  rapidjson::Reader reader;
  rapidjson::MemoryStream stream(text.data(), text.size());
  constexpr unsigned kFlags =
      rapidjson::kParseNumbersAsStringsFlag | rapidjson::kParseIterativeFlag | rapidjson::kParseValidateEncodingFlag;
  return reader.Parse<kFlags>(stream, meaning).IsError() ? std::string() : meaning.text();
}

}  // namespace jobq::lua::test
