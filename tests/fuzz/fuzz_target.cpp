// The target of a request, against a decoder built on strtoul, and back again from its own parts.
#include <algorithm>
#include <cctype>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>

#include "check.h"
#include "core/http/api/target.h"

namespace {

using jobq::Target;

std::optional<std::string> decode(const std::string& text, bool query) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%') {
      const std::string code = text.substr(i + 1, 2);
      if (code.size() < 2 || std::isxdigit(static_cast<unsigned char>(code[0])) == 0 ||
          std::isxdigit(static_cast<unsigned char>(code[1])) == 0 || code == "00") {
        return std::nullopt;
      }
      const char byte = static_cast<char>(std::strtoul(code.c_str(), nullptr, 16));
      // An encoded slash of a path is no separator and stays unchanged.
      out += byte == '/' && !query ? "%" + code : std::string(1, byte);
      i += 2;
    } else {
      out.push_back(query && text[i] == '+' ? ' ' : text[i]);
    }
  }
  return out;
}

std::optional<Target> judge(std::string text) {
  text = text.substr(0, text.find('#'));
  const std::size_t mark = std::min(text.find('?'), text.size());
  const auto path = decode(text.substr(0, mark), false);
  if (!path) return std::nullopt;
  Target target{*path, {}};
  std::string pair;
  for (const char c : text.substr(std::min(mark + 1, text.size())) + "&") {
    if (c != '&') {
      pair.push_back(c);
      continue;
    }
    const std::size_t equals = std::min(pair.find('='), pair.size());
    const auto name = decode(pair.substr(0, equals), true);
    const auto value = decode(pair.substr(std::min(equals + 1, pair.size())), true);
    if (!name || !value) return std::nullopt;
    if (!pair.empty()) target.query.emplace(*name, *value);
    pair.clear();
  }
  return target;
}

std::string encode(const std::string& text, bool query) {
  std::string out;
  for (const char c : text) {
    if (c == '/' && !query) {
      out.push_back(c);
      continue;
    }
    char code[4];
    std::snprintf(code, sizeof code, "%%%02x", static_cast<unsigned char>(c));
    out += code;
  }
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // The target of a parsed head holds no NUL, so the input holds no NUL either.
  std::string text(reinterpret_cast<const char*>(data), size);
  std::replace(text.begin(), text.end(), '\0', '/');
  const auto own = jobq::readTarget(text);
  const auto other = judge(text);
  BELIEVE(static_cast<bool>(own) == other.has_value());
  if (!own) return 0;
  BELIEVE(own->path == other->path && own->query == other->query);
  BELIEVE(own->path.find('\0') == std::string::npos);
  std::string again = encode(own->path, false) + "?";
  for (const auto& [name, value] : own->query) again += encode(name, true) + "=" + encode(value, true) + "&";
  const auto same = jobq::readTarget(again);
  BELIEVE(static_cast<bool>(same) && same->path == own->path && same->query == own->query);
  return 0;
}
