// An http or https URL taken apart by libcurl, the library that calls webhooks: core has no parser of URLs of its own.
// `plugins/http_client/web_url.h` is the reader of the plugins; `tests/unit/url_readers_test.cpp` proves that both
// agree.
#pragma once

#include <cstdint>
#include <string>

#include "core/base/result.h"

namespace jobq {

/// The parts of a URL that decide where a connection leads.
struct UrlParts {
  std::string scheme;  ///< lower case
  /// An IPv4 address of any spelling as a dotted quad, an IPv6 address in brackets without its zone, or a name as it
  /// was written, with %XX decoded.
  std::string host;
  std::uint16_t port = 0;  ///< without a port in the URL the port of the scheme
};

// Sentences of failures. All sentences of readUrlParts() begin with a verb, because the name of a field is put in
// front.
inline constexpr const char* kNoUrl =
    "must be an absolute http or https URL with a host, such as https://example.com/done";
inline constexpr const char* kWrongPort = "has a wrong port: use 1 to 65535, and put an IPv6 address in brackets";
inline constexpr const char* kNoIpv6 = "has brackets without an IPv6 address in them: write a host like [2001:db8::1]";

/// Returns the parts of an absolute URL. Fails, with one sentence, if libcurl refuses the URL. Neither the path nor a
/// port of 0 is refused. Pure; any thread. Throws std::bad_alloc.
Result<UrlParts> readUrlParts(const std::string& url);

}  // namespace jobq
