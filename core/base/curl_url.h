// An http or https URL taken apart by libcurl, the library that calls webhooks: core has no parser of URLs of its own.
// `plugins/http_client/web_url.h` is the reader of the plugins; `tests/unit/url_readers_test.cpp` proves that both
// agree.
#pragma once

#include <cstdint>
#include <string>
#include <variant>

namespace jobq {

/// The parts of a URL that decide where a connection leads.
struct UrlParts {
  std::string scheme;  ///< lower case
  /// An IPv4 address of any spelling as a dotted quad, an IPv6 address in brackets without its zone, or a name as it
  /// was written, with %XX decoded.
  std::string host;
  std::uint16_t port = 0;  ///< without a port in the URL the port of the scheme
};

/// The part for which libcurl refuses a URL.
enum class UrlFault { port, bracketedHost, other };

/// Returns the parts of an absolute URL, or the fault. The path is not checked. Pure; any thread. Throws
/// std::bad_alloc.
std::variant<UrlParts, UrlFault> readUrlParts(const std::string& url);

}  // namespace jobq
