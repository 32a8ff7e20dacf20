// The scanner behind read() in json.h. Other code includes json.h.
#pragma once

#include <bitset>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>
#include <variant>

#include "jobq/json_value.h"

namespace jobq::json {

namespace detail {

/// Returns the length of the valid UTF-8 sequence at the start of a non-empty text, in bytes. Returns 0 if the sequence
/// is overlong, a surrogate, cut short or otherwise invalid.
inline std::size_t utf8Length(std::string_view text) {
  const auto byte = [text](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const auto tail = [&](std::size_t i) { return i < text.size() && (byte(i) & 0xc0) == 0x80; };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return 1;
  if (lead >= 0xc2 && lead <= 0xdf) return tail(1) ? 2 : 0;
  if (lead >= 0xe0 && lead <= 0xef) {
    if (!tail(1) || !tail(2)) return 0;
    if (lead == 0xe0 && byte(1) < 0xa0) return 0;
    if (lead == 0xed && byte(1) > 0x9f) return 0;
    return 3;
  }
  if (lead >= 0xf0 && lead <= 0xf4) {
    if (!tail(1) || !tail(2) || !tail(3)) return 0;
    if (lead == 0xf0 && byte(1) < 0x90) return 0;
    if (lead == 0xf4 && byte(1) > 0x8f) return 0;
    return 4;
  }
  return 0;
}

/// Returns the value of the first four characters as a hexadecimal number, or an empty optional if one of them is no
/// digit.
inline std::optional<unsigned> hex4(std::string_view text) {
  unsigned code = 0;
  if (text.size() < 4) return std::nullopt;
  const auto [at, error] = std::from_chars(text.data(), text.data() + 4, code, 16);
  if (error != std::errc() || at != text.data() + 4) return std::nullopt;
  return code;
}

/// A scan of one text in one pass. One thread; run() is called once.
class Scanner {
 public:
  /// `most` is the greatest number of members or elements in the document's list; each takes 24 to 40 bytes.
  Scanner(std::string_view text, std::size_t most) : text_(text), left_(most) {}

  std::variant<Document, Fault> run() {
    skipBlanks();
    document_.root.kind = kindHere();
    const std::size_t start = at_;
    if (!scanValue()) return fault_;
    document_.root.raw = text_.substr(start, at_ - start);
    skipBlanks();
    if (at_ != text_.size()) return Fault{at_, "there is text after the value"};
    return std::move(document_);
  }

 private:
  bool fail(const char* reason) {
    fault_ = Fault{at_, reason};
    return false;
  }
  // Each function named scan... moves behind its part of the text. The result is false after a fault, which is in
  // `fault_`; scanDigits() alone sets no fault, and returns false if there is no digit.

  bool done() const { return at_ >= text_.size(); }
  char here() const { return text_[at_]; }
  bool consume(char c) {
    if (done() || here() != c) return false;
    ++at_;
    return true;
  }
  void skipBlanks() {
    while (!done() && (here() == ' ' || here() == '\n' || here() == '\r' || here() == '\t')) ++at_;
  }
  Kind kindHere() const {
    if (done()) return Kind::null;
    switch (here()) {
      case '{': return Kind::object;
      case '[': return Kind::array;
      case '"': return Kind::string;
      case 't':
      case 'f': return Kind::boolean;
      case 'n': return Kind::null;
      default: return Kind::number;
    }
  }

  // Scans one value with all values inside. The loop keeps the open brackets as bits (1 = object), so deep nesting in a
  // hostile text uses no stack.
  bool scanValue() {
    for (;;) {
      if (depth_ == 1 && left_ > 0) noteStart();
      if (done()) return fail("the text ends where a value is expected");
      const char c = here();
      if (c == '{' || c == '[') {
        if (depth_ == kMaxDepth) return fail("the text is nested deeper than 512 levels");
        open_[depth_++] = c == '{';
        ++at_;
        skipBlanks();
        if (!consume(c == '{' ? '}' : ']')) {
          if (c == '{' && !scanKey()) return false;
          continue;
        }
        --depth_;
      } else if (!scanScalar(c)) {
        return false;
      }
      // The scanner is behind a value here and closes brackets until a further value follows.
      for (;;) {
        if (depth_ == 1 && left_ > 0) noteEnd();
        if (depth_ == 0) return true;
        const bool object = open_[depth_ - 1];
        skipBlanks();
        if (consume(',')) {
          skipBlanks();
          if (object && !scanKey()) return false;
          break;
        }
        if (!consume(object ? '}' : ']')) {
          return fail(object ? "an object goes on without ',' or '}'" : "an array goes on without ',' or ']'");
        }
        --depth_;
      }
    }
  }

  bool scanKey() {
    if (done() || here() != '"') return fail("an object's key is not a string");
    const std::size_t start = at_;
    if (!scanString()) return false;
    if (depth_ == 1) key_ = text_.substr(start + 1, at_ - start - 2);
    skipBlanks();
    if (!consume(':')) return fail("an object's key is not followed by ':'");
    skipBlanks();
    return true;
  }

  bool scanScalar(char c) {
    switch (c) {
      case '"': return scanString();
      case 't': return scanWord("true");
      case 'f': return scanWord("false");
      case 'n': return scanWord("null");
      default: return scanNumber();
    }
  }

  bool scanWord(std::string_view word) {
    if (text_.substr(at_, word.size()) != word) return fail("a word is not true, false or null");
    at_ += word.size();
    return true;
  }

  bool scanDigits() {
    const std::size_t start = at_;
    while (!done() && here() >= '0' && here() <= '9') ++at_;
    return at_ != start;
  }

  bool scanNumber() {
    if (here() != '-' && (here() < '0' || here() > '9')) return fail("a value starts with an unexpected character");
    consume('-');
    if (!consume('0') && !scanDigits()) return fail("a number has no digits");
    if (consume('.') && !scanDigits()) return fail("a number has no digits after its point");
    if (!done() && (here() == 'e' || here() == 'E')) {
      ++at_;
      if (!consume('+')) consume('-');
      if (!scanDigits()) return fail("a number has no digits in its exponent");
    }
    return true;
  }

  // Skips plain characters, eight bytes at a time: ASCII except quotes, backslashes and control characters.
  void skipPlain() {
    constexpr std::uint64_t kOnes = 0x0101010101010101U;
    constexpr std::uint64_t kHigh = 0x8080808080808080U;
    while (text_.size() - at_ >= 8) {
      std::uint64_t word = 0;
      std::memcpy(&word, text_.data() + at_, 8);
      const std::uint64_t quote = word ^ (kOnes * '"');
      const std::uint64_t slash = word ^ (kOnes * '\\');
      const std::uint64_t odd = word | (word - kOnes * 0x20) | (quote - kOnes) | (slash - kOnes);
      if ((odd & kHigh) != 0) break;
      at_ += 8;
    }
  }

  bool scanString() {
    ++at_;
    for (;;) {
      skipPlain();
      if (done()) return fail("a string does not end");
      const unsigned char c = static_cast<unsigned char>(here());
      if (c == '"') {
        ++at_;
        return true;
      }
      if (c == '\\') {
        if (!scanEscape()) return false;
      } else if (c < 0x20) {
        return fail("a string holds a raw control character");
      } else {
        const std::size_t length = utf8Length(text_.substr(at_, 4));
        if (length == 0) return fail("a string is not valid UTF-8");
        at_ += length;
      }
    }
  }

  bool scanEscape() {
    const std::string_view rest = text_.substr(at_ + 1);
    if (rest.empty()) return fail("a string does not end");
    if (rest[0] != 'u') {
      if (std::string_view("\"\\/bfnrt").find(rest[0]) == std::string_view::npos) {
        return fail("a string has an unknown escape");
      }
      at_ += 2;
      return true;
    }
    const auto code = hex4(rest.substr(1));
    if (!code) return fail("a \\u escape does not have four hexadecimal digits");
    if (*code >= 0xdc00 && *code <= 0xdfff) return fail("a string has a lone surrogate");
    if (*code >= 0xd800 && *code <= 0xdbff) {
      const auto low = rest.substr(5, 2) == "\\u" ? hex4(rest.substr(7)) : std::nullopt;
      if (!low || *low < 0xdc00 || *low > 0xdfff) return fail("a string has a lone surrogate");
      at_ += 6;
    }
    at_ += 6;
    return true;
  }

  void noteStart() { started_ = Value{kindHere(), text_.substr(at_, 0)}; }
  void noteEnd() {
    --left_;
    const auto start = static_cast<std::size_t>(started_.raw.data() - text_.data());
    started_.raw = text_.substr(start, at_ - start);
    if (open_[0]) {
      document_.members.push_back(Member{key_, started_});
    } else {
      document_.elements.push_back(started_);
    }
  }

  std::string_view text_;
  std::size_t left_;  // entries that may still be listed
  std::size_t at_ = 0;
  std::bitset<kMaxDepth> open_;
  std::size_t depth_ = 0;
  std::string_view key_;
  Value started_;
  Document document_;
  Fault fault_{0, ""};
};

}  // namespace detail

}  // namespace jobq::json
