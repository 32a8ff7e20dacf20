// The page at /docs, which shows the API's description in a browser.
#pragma once

#include <string>

namespace jobq {

/// Returns HTML that loads openapi.json from its own server, and no resource from elsewhere. The build makes the
/// function of core/http/api/docs/page.html (core/http/api/embed_text.cmake). Any thread.
const std::string& docsPage();

/// Returns the Content-Security-Policy of the page. The policy allows the page's script and style by their SHA-256, and
/// calls to the page's server, but no other source, and no conversion of a text to HTML by a script. Any thread.
const std::string& docsPolicy();

}  // namespace jobq
