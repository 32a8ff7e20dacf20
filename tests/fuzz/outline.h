// The outermost object of a text as RapidJSON, an independent reader, sees it.
#pragma once

#include <rapidjson/memorystream.h>
#include <rapidjson/reader.h>

#include <algorithm>
#include <cstddef>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace jobq {

/// The fields of the outermost object, with the facts about the whole text.
class Outline {
 public:
  enum class Kind { null, boolean, number, string, array, object };
  struct Field {
    std::string key;  ///< decoded
    Kind kind = Kind::null;
    std::string_view raw;  ///< bytes of an object or array
    std::string text;      ///< a number as written, "true" or "false", or a decoded string
  };

  explicit Outline(std::string_view text);

  bool valid() const { return valid_; }
  /// Returns true where RapidJSON is no judge: it refuses numbers beyond a double and accepts a lone low surrogate.
  bool unsure() const { return unsure_; }
  Kind kind() const { return root_; }
  std::size_t deepest() const { return deepest_; }
  const std::vector<Field>& fields() const { return fields_; }
  const Field* last(std::string_view key) const {
    const auto at = std::find_if(fields_.rbegin(), fields_.rend(), [key](const Field& f) { return f.key == key; });
    return at == fields_.rend() ? nullptr : &*at;
  }
  bool repeatsAKey() const {
    std::set<std::string> seen;
    return !std::all_of(fields_.begin(), fields_.end(), [&](const Field& f) { return seen.insert(f.key).second; });
  }

 private:
  class Handler;

  std::vector<Field> fields_;
  Kind root_ = Kind::null;
  std::size_t deepest_ = 0;
  bool valid_ = false;
  bool unsure_ = false;
};

/// Receives the events of the RapidJSON reader and fills the outline.
class Outline::Handler : public rapidjson::BaseReaderHandler<rapidjson::UTF8<>, Handler> {
 public:
  Handler(Outline& outline, std::string_view text, const rapidjson::MemoryStream& stream)
      : outline_(outline), text_(text), stream_(stream) {}

  bool Null() { return note(Kind::null, "null"); }
  bool Bool(bool value) { return note(Kind::boolean, value ? "true" : "false"); }
  bool RawNumber(const char* text, rapidjson::SizeType size, bool) { return note(Kind::number, {text, size}); }
  bool String(const char* text, rapidjson::SizeType size, bool) { return note(Kind::string, {text, size}); }
  bool Key(const char* text, rapidjson::SizeType size, bool) {
    if (depth_ == 1) outline_.fields_.push_back(Field{std::string(text, size), {}, {}, {}});
    return true;
  }
  bool StartObject() { return open(Kind::object); }
  bool StartArray() { return open(Kind::array); }
  bool EndObject(rapidjson::SizeType) { return close(); }
  bool EndArray(rapidjson::SizeType) { return close(); }

 private:
  bool inField() const { return depth_ == 1 && outline_.root_ == Kind::object; }
  bool note(Kind kind, std::string_view text) {
    if (depth_ == 0) outline_.root_ = kind;
    if (!inField()) return true;
    outline_.fields_.back().kind = kind;
    outline_.fields_.back().text = text;
    return true;
  }
  bool open(Kind kind) {
    note(kind, {});
    if (inField()) start_ = stream_.Tell();
    outline_.deepest_ = std::max(outline_.deepest_, ++depth_);
    return true;
  }
  bool close() {
    --depth_;
    if (inField()) outline_.fields_.back().raw = text_.substr(start_, stream_.Tell() + 1 - start_);
    return true;
  }

  Outline& outline_;
  const std::string_view text_;
  const rapidjson::MemoryStream& stream_;
  std::size_t depth_ = 0;
  std::size_t start_ = 0;
};

inline Outline::Outline(std::string_view text) {
  rapidjson::MemoryStream stream(text.data(), text.size());
  Handler handler(*this, text, stream);
  rapidjson::Reader reader;
  constexpr unsigned kFlags =
      rapidjson::kParseNumbersAsStringsFlag | rapidjson::kParseIterativeFlag | rapidjson::kParseValidateEncodingFlag;
  const rapidjson::ParseResult result = reader.Parse<kFlags>(stream, handler);
  valid_ = !result.IsError();
  const bool hasSurrogates = text.find("\\ud") != std::string_view::npos || text.find("\\uD") != std::string_view::npos;
  unsure_ = result.Code() == rapidjson::kParseErrorNumberTooBig || hasSurrogates;
}

}  // namespace jobq
