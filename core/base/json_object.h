// Check of texts from outside: an input and the metrics of a chunk have to be JSON objects.
#pragma once

#include <cstddef>
#include <string_view>

#include "jobq/json.h"

namespace jobq {

/// Allocates no memory, however many members the object has.
inline bool isJsonObject(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  return first != std::string_view::npos && text[first] == '{' && json::valid(text);
}

}  // namespace jobq
