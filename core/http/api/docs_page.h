// The page at /docs, which shows the API's description in a browser.
#pragma once

#include <string_view>

namespace jobq {

/// Returns HTML that loads openapi.json from its own server, and no resource from elsewhere. Any thread.
std::string_view docsPage() noexcept;

}  // namespace jobq
