// The page at /docs, which shows the API's description in a browser.
#pragma once

#include <string_view>

namespace jobq {

/// HTML that loads openapi.json from beside it, and nothing from anywhere else. Any thread.
std::string_view docsPage() noexcept;

}  // namespace jobq
