// A URL taken apart by libcurl, the library that calls webhooks: core has no parser of URLs of its own.
// `plugins/http_client/web_url.h` is the reader of the plugins; `tests/unit/url_readers_test.cpp` proves that both
// agree.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/base/result.h"

namespace jobq {

/// The parts of a URL that decide where a connection leads.
struct UrlParts {
  std::string scheme;  ///< lower case
  /// An IPv4 address of any spelling as a dotted quad, an IPv6 address in brackets without its zone, or a name as it
  /// was written, with %XX decoded.
  std::string host;
  std::uint16_t port = 0;    ///< without a port in the URL the port of the scheme, 0 for a scheme unknown to libcurl
  bool isUsualPort = false;  ///< the URL names no port, or the port of the scheme
};

// Sentences of failures. All sentences of readUrlParts() begin with a verb, because the name of a field is put in
// front.
inline constexpr const char* kNoUrl =
    "must be an absolute http or https URL with a host, such as https://example.com/done";
inline constexpr const char* kWrongPort = "has a wrong port: use 1 to 65535, and put an IPv6 address in brackets";
inline constexpr const char* kNoIpv6 = "has brackets without an IPv6 address in them: write a host like [2001:db8::1]";

/// Returns the parts of an absolute URL of any scheme. Fails, with one sentence, if libcurl refuses the URL. Neither
/// the path nor a port of 0 is refused. Pure; any thread. Throws std::bad_alloc.
Result<UrlParts> readUrlParts(const std::string& url);

/// Returns a host of readUrlParts() as the resolver understands the host: without a final dot, and an IPv4 address as a
/// dotted quad. libcurl takes numbers for a name if the numbers are percent-encoded or end with a dot ("127.1."). Pure;
/// any thread. Throws std::bad_alloc.
std::string resolverHost(std::string host);

/// Returns the text with ASCII letters in lower case. Schemes and hosts are equal in upper and lower case. Pure; any
/// thread. Throws std::bad_alloc.
std::string lowered(std::string_view text);

}  // namespace jobq
