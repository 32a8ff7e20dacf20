// The reason of a worker's end, in plain words.
#pragma once

#include <string>
#include <string_view>

#include "engine_text.h"

namespace jobq::docker {

/// Returns a clause such as "it ended with exit code 1: no module named torch". `lastLine` is the last line of the
/// output and may be empty; `wasKilled` means a kill after the time to end. Pure.
std::string reasonOfEnd(const EndedState& state, std::string_view lastLine, bool wasKilled);

}  // namespace jobq::docker
