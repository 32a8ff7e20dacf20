// Reader of settings files. A line is `key = value` with blanks around both parts, and `:` may take the place of `=`.
// An empty line and a line that begins with # say nothing, and a # after a blank begins a comment. A value in " or in '
// is the text between the quotes. No character escapes another one. `${other.key}` inserts the value of another
// setting. Lines end with LF or CRLF, and a byte order mark is not a part of the text.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/config/mistakes.h"

namespace jobq {

/// One setting as it was read.
struct Property {
  std::string value;     ///< without quotes, and with references replaced
  std::size_t line = 0;  ///< in the file, from 1; 0 means the command line
};

/// All settings by their keys.
using Properties = std::map<std::string, Property, std::less<>>;

/// Reads the file, applies `overrides` (key and value, taken literally except for references) in their order, and
/// replaces references. A reference to no setting stays as it is. Each wrong line is added to `mistakes` and left out.
/// Throws ConfigError if the file cannot be read or is larger than 16 MB.
Properties readProperties(const std::filesystem::path& file,
                          const std::vector<std::pair<std::string, std::string>>& overrides, Mistakes& mistakes);

}  // namespace jobq
