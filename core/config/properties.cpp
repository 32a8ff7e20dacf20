#include "core/config/properties.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <optional>
#include <set>
#include <system_error>

#include "jobq/byte_order_mark.h"
#include "jobq/error.h"

namespace jobq {
namespace {

constexpr std::size_t kMostBytes = 16U << 20;  // bytes of a file, and of all values after their references are replaced
constexpr std::size_t kMostNested = 100;       // references in the value of a reference
constexpr std::string_view kBlanks = " \t\f\v";

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = std::min(text.find_first_not_of(kBlanks), text.size());
  return text.substr(begin, text.find_last_not_of(kBlanks) + 1 - begin);
}

bool isBlank(char character) { return kBlanks.find(character) != std::string_view::npos; }

// Returns the text of a value in quotes. `text` begins with the quote. Throws ConfigError.
std::string_view unquoted(const std::string& key, std::string_view text) {
  const char quote = text.front();
  const std::string other = quote == '"' ? "'" : "\"";
  const std::size_t end = text.find(quote, 1);
  if (end == std::string_view::npos) {
    throw ConfigError(key + " begins with " + quote + " and has no closing quote: close it, or write the value in " +
                      other + " if the quote is a part of it");
  }
  const std::string_view rest = text.substr(end + 1);
  const std::string_view more = trimmed(rest);
  if (!more.empty() && (more.front() != '#' || more.size() == rest.size())) {
    throw ConfigError(key + " has text after its closing quote: write a value with " + quote + " in " + other);
  }
  return text.substr(1, end - 1);
}

// Returns the value in the part of a line after the `=`. Throws ConfigError.
std::string_view valueIn(const std::string& key, std::string_view part) {
  const std::string_view text = trimmed(part);
  if (!text.empty() && (text.front() == '"' || text.front() == '\'')) return unquoted(key, text);
  std::size_t comment = part.find('#');
  while (comment != std::string_view::npos && (comment == 0 || !isBlank(part[comment - 1]))) {
    comment = part.find('#', comment + 1);
  }
  const std::string_view value = trimmed(part.substr(0, comment));
  if (value.empty() && comment != std::string_view::npos) {
    throw ConfigError(key + R"( has a comment and no value: quote a value that begins with #, or write "")");
  }
  return value;
}

// Reads one line that is not a comment. Throws ConfigError.
void readLine(std::string_view text, std::size_t line, Properties& into) {
  const std::size_t separator = text.find_first_of("=:");
  const std::string key(trimmed(text.substr(0, separator)));
  if (separator == std::string_view::npos || key.empty()) throw ConfigError("the line is not of the form key = value");
  if (const auto former = into.find(key); former != into.end()) {
    throw ConfigError(key + " appears twice in the file, first in line " + std::to_string(former->second.line) +
                      ": remove one line");
  }
  into[key] = {std::string(valueIn(key, text.substr(separator + 1))), line};
}

std::string textOf(const std::filesystem::path& file) {
  std::error_code ignored;
  if (std::filesystem::is_directory(file, ignored)) {
    throw ConfigError(file.string() + " is a folder: name the configuration file");
  }
  std::ifstream in(file, std::ios::binary);
  std::string text;
  std::array<char, 16'384> part{};  // a buffer of the largest size would stay resident after the start
  while (in && text.size() <= kMostBytes) {
    in.read(part.data(), static_cast<std::streamsize>(part.size()));
    text.append(part.data(), static_cast<std::size_t>(in.gcount()));
  }
  if (!in.is_open() || in.bad()) {
    throw ConfigError(file.string() + " cannot be read: check its name, and that this user may read it");
  }
  if (text.size() > kMostBytes) throw ConfigError(file.string() + " is larger than 16 MB: name the configuration file");
  if (text.find('\0') != std::string::npos) {
    throw ConfigError(file.string() + " is not text in UTF-8, because it has zero bytes: save the file as UTF-8");
  }
  return text;
}

// Replaces the references in values, each value once, with a bound on the size of all.
class References {
 public:
  explicit References(Properties& properties) : properties_(properties) {}

  // Returns the value of `key`, which exists, with its references replaced. Throws ConfigError.
  const std::string& resolved(const std::string& key) {
    std::string& value = properties_.find(key)->second.value;
    if (done_.contains(key)) return value;
    if (!open_.insert(key).second) throw ConfigError(key + " refers to itself: remove one of the references");
    if (open_.size() > kMostNested) throw ConfigError(key + " has too long a chain of references: shorten it");
    std::string whole;
    for (std::size_t at = 0; at < value.size();) {
      const std::size_t begin = std::min(value.find("${", at), value.size());
      whole.append(value, at, begin - at);
      const std::size_t end = value.find('}', begin);
      const bool isClosed = end != std::string::npos;
      at = isClosed ? end + 1 : value.size();
      const std::string name = isClosed ? value.substr(begin + 2, end - begin - 2) : std::string();
      whole += isClosed && properties_.contains(name) ? resolved(name) : value.substr(begin, at - begin);
      if (used_ + whole.size() > kMostBytes) throw ConfigError(key + " is larger than 16 MB with its references");
    }
    used_ += whole.size();
    value = std::move(whole);
    open_.erase(key);
    done_.insert(key);
    return value;
  }

 private:
  Properties& properties_;
  std::set<std::string> open_;  // keys with references that are being replaced
  std::set<std::string> done_;
  std::size_t used_ = 0;
};

}  // namespace

Properties readProperties(const std::filesystem::path& file,
                          const std::vector<std::pair<std::string, std::string>>& overrides, Mistakes& mistakes) {
  const std::string bytes = textOf(file);
  std::string_view text = withoutByteOrderMark(bytes);
  Properties all;
  for (std::size_t line = 1; !text.empty() && !mistakes.isFull(); ++line) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view one = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (one.ends_with('\r')) one.remove_suffix(1);
    one = trimmed(one);
    if (one.empty() || one.front() == '#') continue;
    try {
      readLine(one, line, all);
    } catch (const ConfigError& error) {
      mistakes.addAt(line, error.what());
    }
  }
  for (const auto& [key, value] : overrides) all[key] = {value, 0};
  References references(all);
  for (const auto& [key, property] : all) {
    if (property.value.find("${") == std::string::npos) continue;
    try {
      references.resolved(key);
    } catch (const ConfigError& error) {
      mistakes.addAt(property.line, error.what());
      break;
    }
  }
  return all;
}

}  // namespace jobq
