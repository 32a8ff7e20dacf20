#include "core/http/api/target.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "core/base/hex_digit.h"

namespace jobq {
namespace {

constexpr const char* kNotEncoded = "the request's target is not a valid path: encode it";

enum class Part { path, query };

// Returns false if `text` is encoded incorrectly. In a path %2F stays as sent, because the decoded character would be a
// separator and change the path (RFC 3986, 2.2). In a query + is a blank.
bool decode(std::string_view text, Part part, std::string& into) {
  into.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (c == '%') {
      const int high = i + 2 < text.size() ? hexDigitValue(text[i + 1]) : -1;
      const int low = i + 2 < text.size() ? hexDigitValue(text[i + 2]) : -1;
      if (high < 0 || low < 0 || (high == 0 && low == 0)) return false;
      c = static_cast<char>(high * 16 + low);
      if (c == '/' && part == Part::path) {
        into.append(text.substr(i, 2));
        c = text[i + 2];
      }
      i += 2;
    } else if (c == '+' && part == Part::query) {
      c = ' ';
    }
    into.push_back(c);
  }
  return true;
}

}  // namespace

Result<Target> readTarget(std::string_view target) {
  target = target.substr(0, target.find('#'));
  const std::size_t mark = target.find('?');
  Target read;
  if (!decode(target.substr(0, mark), Part::path, read.path)) return invalid(kNotEncoded);
  std::string_view rest = mark == std::string_view::npos ? std::string_view() : target.substr(mark + 1);
  while (!rest.empty()) {
    const std::string_view pair = rest.substr(0, rest.find('&'));
    rest.remove_prefix(std::min(pair.size() + 1, rest.size()));
    if (pair.empty()) continue;
    const std::size_t equals = pair.find('=');
    std::string name;
    std::string value;
    const bool fine = decode(pair.substr(0, equals), Part::query, name) &&
                      (equals == std::string_view::npos || decode(pair.substr(equals + 1), Part::query, value));
    if (!fine) return invalid(kNotEncoded);
    read.query.emplace(std::move(name), std::move(value));
  }
  return read;
}

}  // namespace jobq
