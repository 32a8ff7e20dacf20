// The rule for names of handlers and scripts.
#pragma once

#include <string_view>

#include "core/base/words.h"

namespace jobq {

/// Returns true for names that match [A-Za-z0-9_-]{1,64}, the rule for handlers and scripts. The rule keeps the file of
/// a script inside its folder.
inline bool isScriptName(std::string_view name) { return !name.empty() && name.size() <= 64 && isPlain(name, "_-"); }

}  // namespace jobq
