// Whether a text that others made is what an input or a chunk's metrics have to be.
#pragma once

#include <cstddef>
#include <string_view>

#include "jobq/json.h"

namespace jobq {

/// Allocates nothing, however many members there are.
inline bool isJsonObject(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  return first != std::string_view::npos && text[first] == '{' && json::valid(text);
}

}  // namespace jobq
