// The rule for names of handlers and scripts.
#pragma once

#include <algorithm>
#include <cctype>
#include <string_view>

namespace jobq {

/// Returns true for names that match [A-Za-z0-9_-]{1,64}, the rule for handlers and scripts. The rule keeps the file of
/// a script inside its folder.
inline bool isScriptName(std::string_view name) {
  return !name.empty() && name.size() <= 64 && std::all_of(name.begin(), name.end(), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '-';
  });
}

}  // namespace jobq
