#include "core/jobs/webhook_url.h"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <utility>

#include "core/base/curl_url.h"

namespace jobq {
namespace {

using Ipv4 = std::array<std::uint8_t, 4>;
using Ipv6 = std::array<std::uint8_t, 16>;

constexpr std::string_view kDecimalDigits = "0123456789";
constexpr std::string_view kHexDigits = "0123456789abcdefABCDEF";
constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

bool isAmong(char c, std::string_view set) { return set.find(c) != std::string_view::npos; }

bool consistsOf(std::string_view text, std::string_view set) {
  return text.find_first_not_of(set) == std::string_view::npos;
}

Result<void> checkBytes(std::string_view url) {
  if (url.size() > kMaxWebhookUrl) return invalid("is longer than 8192 bytes: send a shorter URL");
  for (const char c : url) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte <= 0x20 || byte == 0x7f) return invalid("holds a blank or a control character: percent-encode it");
    if (byte > 0x7e) {
      return invalid(
          "holds a character beyond ASCII: write a host in punycode (xn--...) and percent-encode everything else");
    }
  }
  return {};
}

Result<void> checkSpelling(std::string_view url) {
  if (isAmong('\\', url)) return invalid("holds a backslash: write / or %5C");
  for (std::size_t at = url.find('%'); at != std::string_view::npos; at = url.find('%', at + 1)) {
    const std::string_view code = url.substr(at + 1, 2);
    if (code.size() < 2 || !consistsOf(code, kHexDigits)) {
      return invalid("holds a % without two hexadecimal digits behind it: write a plain % as %25");
    }
  }
  return {};
}

/// Returns the scheme in lower case, or an empty text if the URL does not begin with a scheme.
std::string schemeOf(std::string_view url) {
  const std::size_t end = url.find(':');
  if (end == std::string_view::npos || end == 0 || !isAmong(url.front(), kLetters)) return {};
  std::string scheme = lowered(url.substr(0, end));
  return consistsOf(scheme, "abcdefghijklmnopqrstuvwxyz0123456789+-.") ? scheme : std::string();
}

bool isWeb(std::string_view scheme) { return scheme == "http" || scheme == "https"; }

std::string explainSchemes(const std::set<std::string>& served) {
  if (served.empty()) return "cannot be called, because no webhook transport is installed: leave it out";
  if (served == std::set<std::string>{"http", "https"}) return kNoUrl;
  std::string list;
  for (const std::string& scheme : served) list += (list.empty() ? "" : ", ") + scheme;
  return "must be an absolute URL with a supported scheme: " + list;
}

// No top-level domain is a number, so a host ending in a number is meant as an address; the URL standard of browsers
// has the same rule.
bool endsInNumber(std::string_view host) {
  const std::string_view last = host.substr(host.rfind('.') + 1);
  if (last.starts_with("0x") || last.starts_with("0X")) return consistsOf(last.substr(2), kHexDigits);
  return !last.empty() && consistsOf(last, kDecimalDigits);
}

Result<void> checkName(std::string_view name) {
  if (name.size() > 253) return invalid("has a host of more than 253 characters: send one that can be looked up");
  for (;;) {
    const std::size_t dot = name.find('.');
    const std::string_view label = name.substr(0, dot);
    if (label.empty() || label.size() > 63) {
      return invalid("has a host that cannot be looked up: each part between dots has 1 to 63 characters");
    }
    if (dot == std::string_view::npos) return {};
    name.remove_prefix(dot + 1);
  }
}

std::string textOf(int family, const void* address) {
  char text[INET6_ADDRSTRLEN] = "";
  inet_ntop(family, address, text, sizeof text);
  return text;
}

Result<void> readName(std::string host, WebUrl& into) {
  if (host.ends_with('.')) host = resolverHost(std::move(host));
  if (host.empty()) return invalid(kNoUrl);
  if (!endsInNumber(host)) {
    into.host = lowered(host);
    return checkName(host);
  }
  Ipv4 address{};
  if (inet_pton(AF_INET, host.c_str(), address.data()) != 1)
    return invalid("has a host that ends in a number and is not an IPv4 address: write four numbers from 0 to 255");
  into.addressClass = net::classifyAddress(address);
  into.host = textOf(AF_INET, address.data());
  return {};
}

Result<void> readIpv6(std::string_view host, WebUrl& into) {
  Ipv6 address{};
  const std::string inside(host.substr(1, host.size() - 2));
  if (inet_pton(AF_INET6, inside.c_str(), address.data()) != 1) return invalid(kNoIpv6);
  into.addressClass = net::classifyAddress(address);
  into.host = textOf(AF_INET6, address.data());
  return {};
}

Result<void> checkUser(std::string_view user) {
  for (const char c : user) {
    if (!isAmong(c, kLetters) && !isAmong(c, kDecimalDigits) && !isAmong(c, "-._~!$&'()*+,;=:%")) {
      return invalid("has a user or password with a special character: percent-encode it");
    }
  }
  return {};
}

/// Checks the spelling of a host, with its port: readers differ about special characters.
Result<void> checkHost(std::string_view host) {
  if (host.starts_with('[')) {
    const std::size_t end = host.find(']');
    if (end == std::string_view::npos)
      return invalid("has a bracket that is not closed: write a host like [2001:db8::1]");
    if (isAmong('%', host.substr(0, end))) return invalid("has an IPv6 address with a zone: send one that needs none");
    if (end + 1 < host.size() && host[end + 1] != ':')
      return invalid("has something between ] and the port: remove it");
    return {};
  }
  const std::string_view name = host.substr(0, host.find(':'));
  if (name.empty()) return invalid(kNoUrl);
  if (!std::all_of(name.begin(), name.end(),
                   [](char c) { return isAmong(c, kLetters) || isAmong(c, kDecimalDigits) || isAmong(c, "-._"); })) {
    return invalid("has a host with a character that hosts cannot have: use letters, digits, '-', '.' and '_'");
  }
  return {};
}

/// Checks the spelling of all before the path, so that every reader finds the same host in the URL.
Result<void> checkAuthority(std::string_view url) {
  const std::size_t start = url.find(':') + 1;
  if (!url.substr(start).starts_with("//")) return invalid(kNoUrl);
  std::string_view authority = url.substr(start + 2);
  authority = authority.substr(0, authority.find_first_of("/?#"));
  if (const std::size_t at = authority.rfind('@'); at != std::string_view::npos) {
    if (const auto good = checkUser(authority.substr(0, at)); !good) return good;
    authority.remove_prefix(at + 1);
  }
  return checkHost(authority);
}

/// Refuses a URL to which the transport of the scheme `file` (plugins/webhook_file) cannot write: no call to such a URL
/// could ever be delivered.
Result<void> checkFile(std::string_view url) {
  constexpr std::string_view kHead = "file:///";
  constexpr std::size_t kLongest = 128;
  const std::string_view name = url.starts_with(kHead) ? url.substr(kHead.size()) : std::string_view();
  const bool good = std::all_of(name.begin(), name.end(), [](char c) {
    return isAmong(c, kLetters) || isAmong(c, kDecimalDigits) || isAmong(c, "_-.");
  });
  if (name.empty() || name.size() > kLongest || name.front() == '.' || !good) {
    return invalid("must be file:///NAME: up to 128 letters, digits, '_', '-' and '.', without a '.' in front");
  }
  return {};
}

Result<void> checkServed(std::string_view url, const WebhookRules& rules) {
  if (const auto good = checkBytes(url); !good) return good;
  const std::string scheme = schemeOf(url);
  if (!rules.schemes.contains(scheme)) return invalid(explainSchemes(rules.schemes));
  if (scheme == "file") return checkFile(url);
  if (!isWeb(scheme)) return {};
  const auto read = readWebUrl(url);
  if (!read) return read.failure();
  if (read->addressClass == net::AddressClass::forbidden) {
    return invalid("names an address that is never called: send a public one");
  }
  if (!net::isAllowed(read->addressClass, rules.allowPrivate)) {
    return invalid(
        "names a private address: send a public one, unless the operator allows it (net.allowPrivate = true)");
  }
  return {};
}

}  // namespace

Result<WebUrl> readWebUrl(std::string_view url) {
  auto good = checkBytes(url);
  if (good && !isWeb(schemeOf(url))) return invalid(kNoUrl);
  if (good) good = checkSpelling(url);
  if (good) good = checkAuthority(url);
  if (!good) return good.failure();
  const auto parts = readUrlParts(std::string(url));
  if (!parts) return parts.failure();
  if (parts->port == 0) return invalid(kWrongPort);
  WebUrl read;
  read.scheme = parts->scheme;
  read.port = parts->port;
  good = parts->host.starts_with('[') ? readIpv6(parts->host, read) : readName(parts->host, read);
  if (!good) return good.failure();
  return read;
}

Result<void> checkWebhook(std::string_view url, const WebhookRules& rules, std::string_view field) {
  const auto good = checkServed(url, rules);
  if (good) return good;
  return invalid(std::string(field) + " " + good.failure().message());
}

}  // namespace jobq
