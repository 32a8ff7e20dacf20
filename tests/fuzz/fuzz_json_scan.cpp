// The JSON scanner against RapidJSON. Both agree except for known differences: RapidJSON takes a NUL for the end,
// refuses numbers beyond a double, accepts a lone low surrogate, and has no limit of nesting.
#include <rapidjson/memorystream.h>
#include <rapidjson/reader.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "check.h"
#include "jobq/json.h"

namespace {

// Records the keys of the outermost object, or counts the outermost array's elements.
struct Outline : rapidjson::BaseReaderHandler<rapidjson::UTF8<>, Outline> {
  int depth = 0;
  std::vector<std::string> keys;
  std::size_t elements = 0;
  bool array = false;

  bool value() {
    if (depth == 1 && array) ++elements;
    return true;
  }
  bool Default() { return value(); }
  bool RawNumber(const char*, rapidjson::SizeType, bool) { return value(); }
  bool String(const char*, rapidjson::SizeType, bool) { return value(); }
  bool Key(const char* text, rapidjson::SizeType size, bool) {
    if (depth == 1) keys.emplace_back(text, size);
    return true;
  }
  bool StartObject() {
    value();
    ++depth;
    return true;
  }
  bool EndObject(rapidjson::SizeType) { return --depth >= 0; }
  bool StartArray() {
    value();
    if (depth == 0) array = true;
    ++depth;
    return true;
  }
  bool EndArray(rapidjson::SizeType) { return --depth >= 0; }
};

void compare(const jobq::json::Document& own, const Outline& other) {
  BELIEVE(own.members.size() == other.keys.size());
  for (std::size_t i = 0; i < own.members.size(); ++i) {
    BELIEVE(jobq::json::decode(own.members[i].key) == other.keys[i]);
    BELIEVE(jobq::json::valid(own.members[i].value.raw));
  }
  BELIEVE(own.elements.size() == other.elements);
  for (const auto& element : own.elements) BELIEVE(jobq::json::valid(element.raw));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto own = jobq::json::read(text);
  const auto* fault = std::get_if<jobq::json::Fault>(&own);
  if (std::memchr(data, 0, size) != nullptr) {
    BELIEVE(fault != nullptr);
    return 0;
  }
  Outline outline;
  rapidjson::Reader reader;
  rapidjson::MemoryStream stream(text.data(), text.size());
  constexpr unsigned kFlags =
      rapidjson::kParseNumbersAsStringsFlag | rapidjson::kParseIterativeFlag | rapidjson::kParseValidateEncodingFlag;
  const rapidjson::ParseResult other = reader.Parse<kFlags>(stream, outline);
  if (other.Code() == rapidjson::kParseErrorNumberTooBig) return 0;
  if (fault != nullptr) {
    const std::string_view reason(fault->reason);
    const bool stricter =
        reason.find("lone surrogate") != std::string_view::npos || reason.find("512") != std::string_view::npos;
    BELIEVE(other.IsError() || stricter);
    BELIEVE(fault->offset <= size);
    return 0;
  }
  BELIEVE(!other.IsError());
  compare(std::get<jobq::json::Document>(own), outline);
  return 0;
}
