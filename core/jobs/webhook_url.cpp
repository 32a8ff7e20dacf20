#include "core/jobs/webhook_url.h"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <system_error>
#include <utility>

namespace jobq {
namespace {

using Ipv4 = std::array<std::uint8_t, 4>;
using Ipv6 = std::array<std::uint8_t, 16>;

constexpr const char* kExpected = "must be an absolute http or https URL with a host, such as https://example.com/done";
constexpr std::string_view kDecimalDigits = "0123456789";
constexpr std::string_view kHexDigits = "0123456789abcdefABCDEF";
constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

// Refusals travel as an exception inside this file only, so that each reader returns just the value read.
struct Refused {
  std::string why;
};
[[noreturn]] void refuseUrl(std::string why) { throw Refused{std::move(why)}; }

bool isAmong(char c, std::string_view set) { return set.find(c) != std::string_view::npos; }

bool consistsOf(std::string_view text, std::string_view set) {
  return text.find_first_not_of(set) == std::string_view::npos;
}

std::string lowered(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return lower;
}

void checkBytes(std::string_view url) {
  if (url.size() > kMaxWebhookUrl) refuseUrl("is longer than 8192 bytes: send a shorter URL");
  for (const char c : url) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte <= 0x20 || byte == 0x7f) refuseUrl("holds a blank or a control character: percent-encode it");
    if (byte > 0x7e) {
      refuseUrl(
          "holds a character beyond ASCII: write a host in punycode (xn--...) and percent-encode everything else");
    }
  }
}

void checkSpelling(std::string_view url) {
  if (isAmong('\\', url)) refuseUrl("holds a backslash: write / or %5C");
  for (std::size_t at = url.find('%'); at != std::string_view::npos; at = url.find('%', at + 1)) {
    const std::string_view code = url.substr(at + 1, 2);
    if (code.size() < 2 || !consistsOf(code, kHexDigits)) {
      refuseUrl("holds a % without two hexadecimal digits behind it: write a plain % as %25");
    }
  }
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
  if (served == std::set<std::string>{"http", "https"}) return kExpected;
  std::string list;
  for (const std::string& scheme : served) list += (list.empty() ? "" : ", ") + scheme;
  return "must be an absolute URL with a supported scheme: " + list;
}

/// Reads a number as inet_aton does: octal with a leading 0, hexadecimal with 0x.
std::optional<std::uint64_t> readPart(std::string_view text) {
  int base = 10;
  if (text.starts_with("0x") || text.starts_with("0X")) {
    base = 16;
    text.remove_prefix(2);
  } else if (text.size() > 1 && text.front() == '0') {
    base = 8;
  }
  std::uint64_t number = 0;
  const char* end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, number, base);
  if (text.empty() || error != std::errc() || at != end) return std::nullopt;
  return number;
}

/// Reads one to four numbers; the last number fills the remaining bytes.
std::optional<Ipv4> readIpv4(std::string_view host) {
  Ipv4 address{};
  std::size_t filled = 0;
  for (;;) {
    const std::size_t dot = host.find('.');
    const auto number = readPart(host.substr(0, dot));
    if (!number) return std::nullopt;
    if (dot == std::string_view::npos) {
      const std::size_t left = address.size() - filled;
      if (*number >> (8 * left) != 0) return std::nullopt;
      for (std::size_t i = 0; i < left; ++i) address[3 - i] = static_cast<std::uint8_t>(*number >> (8 * i) & 0xff);
      return address;
    }
    if (*number > 255 || filled == 3) return std::nullopt;
    address[filled++] = static_cast<std::uint8_t>(*number);
    host.remove_prefix(dot + 1);
  }
}

// No top-level domain is a number, so a host ending in a number is meant as an address; the URL standard of browsers
// has the same rule.
bool endsInNumber(std::string_view host) {
  const std::string_view last = host.substr(host.rfind('.') + 1);
  if (last.starts_with("0x") || last.starts_with("0X")) return consistsOf(last.substr(2), kHexDigits);
  return !last.empty() && consistsOf(last, kDecimalDigits);
}

void checkName(std::string_view name) {
  if (name.size() > 253) refuseUrl("has a host of more than 253 characters: send one that can be looked up");
  for (;;) {
    const std::size_t dot = name.find('.');
    const std::string_view label = name.substr(0, dot);
    if (label.empty() || label.size() > 63) {
      refuseUrl("has a host that cannot be looked up: each part between dots has 1 to 63 characters");
    }
    if (dot == std::string_view::npos) return;
    name.remove_prefix(dot + 1);
  }
}

std::string textOf(int family, const void* address) {
  char text[INET6_ADDRSTRLEN] = "";
  inet_ntop(family, address, text, sizeof text);
  return text;
}

void readName(std::string_view host, WebUrl& into) {
  if (host.empty()) refuseUrl(kExpected);
  if (!std::all_of(host.begin(), host.end(),
                   [](char c) { return isAmong(c, kLetters) || isAmong(c, kDecimalDigits) || isAmong(c, "-._"); })) {
    refuseUrl("has a host with a character that hosts cannot have: use letters, digits, '-', '.' and '_'");
  }
  if (host.ends_with('.')) host.remove_suffix(1);
  if (host.empty()) refuseUrl(kExpected);
  if (!endsInNumber(host)) {
    checkName(host);
    into.host = lowered(host);
    return;
  }
  const auto address = readIpv4(host);
  if (!address)
    refuseUrl("has a host that ends in a number and is not an IPv4 address: write four numbers from 0 to 255");
  into.reach = net::classifyAddress(*address);
  into.host = textOf(AF_INET, address->data());
}

void readIpv6(std::string_view inside, WebUrl& into) {
  Ipv6 address{};
  if (isAmong('%', inside)) refuseUrl("has an IPv6 address with a zone: send one that needs none");
  if (inet_pton(AF_INET6, std::string(inside).c_str(), address.data()) != 1) {
    refuseUrl("has brackets without an IPv6 address in them: write a host like [2001:db8::1]");
  }
  into.reach = net::classifyAddress(address);
  into.host = textOf(AF_INET6, address.data());
}

/// Reads the port; an empty port means the default port (RFC 3986).
void readPort(std::string_view text, WebUrl& into) {
  into.port = into.scheme == "https" ? 443 : 80;
  if (text.empty()) return;
  const char* end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, into.port);
  if (error != std::errc() || at != end || into.port == 0) {
    refuseUrl("has a wrong port: use 1 to 65535, and put an IPv6 address in brackets");
  }
}

void readHostAndPort(std::string_view text, WebUrl& into) {
  std::size_t end = text.find(':');
  if (text.starts_with('[')) {
    end = text.find(']');
    if (end == std::string_view::npos) refuseUrl("has a bracket that is not closed: write a host like [2001:db8::1]");
    readIpv6(text.substr(1, end - 1), into);
    ++end;
    if (end < text.size() && text[end] != ':') refuseUrl("has something between ] and the port: remove it");
  } else {
    readName(text.substr(0, end), into);
  }
  readPort(end < text.size() ? text.substr(end + 1) : std::string_view(), into);
}

void checkUser(std::string_view user) {
  for (const char c : user) {
    if (!isAmong(c, kLetters) && !isAmong(c, kDecimalDigits) && !isAmong(c, "-._~!$&'()*+,;=:%")) {
      refuseUrl("has a user or password with a special character: percent-encode it");
    }
  }
}

WebUrl readWeb(std::string_view url) {
  checkBytes(url);
  WebUrl read;
  read.scheme = schemeOf(url);
  if (!isWeb(read.scheme)) refuseUrl(kExpected);
  checkSpelling(url);
  url.remove_prefix(read.scheme.size() + 1);
  if (!url.starts_with("//")) refuseUrl(kExpected);
  url.remove_prefix(2);
  std::string_view authority = url.substr(0, url.find_first_of("/?#"));
  if (const std::size_t at = authority.rfind('@'); at != std::string_view::npos) {
    checkUser(authority.substr(0, at));
    authority.remove_prefix(at + 1);
  }
  readHostAndPort(authority, read);
  return read;
}

/// Refuses a URL to which the transport of the scheme `file` (plugins/webhook_file) cannot write: no call to such a URL
/// could ever be delivered.
void checkFile(std::string_view url) {
  constexpr std::string_view kHead = "file:///";
  constexpr std::size_t kLongest = 128;
  const std::string_view name = url.starts_with(kHead) ? url.substr(kHead.size()) : std::string_view();
  const bool good = std::all_of(name.begin(), name.end(), [](char c) {
    return isAmong(c, kLetters) || isAmong(c, kDecimalDigits) || isAmong(c, "_-.");
  });
  if (name.empty() || name.size() > kLongest || name.front() == '.' || !good) {
    refuseUrl("must be file:///NAME: up to 128 letters, digits, '_', '-' and '.', without a '.' in front");
  }
}

void judgeWebhook(const std::string& url, const WebhookRules& rules) {
  checkBytes(url);
  const std::string scheme = schemeOf(url);
  if (!rules.schemes.contains(scheme)) refuseUrl(explainSchemes(rules.schemes));
  if (scheme == "file") checkFile(url);
  if (!isWeb(scheme)) return;
  const net::AddressClass reach = readWeb(url).reach;
  if (reach == net::AddressClass::forbidden) refuseUrl("names an address that is never called: send a public one");
  if (!net::isAllowed(reach, rules.allowPrivate)) {
    refuseUrl("names a private address: send a public one, unless the operator allows it (net.allowPrivate = true)");
  }
}

}  // namespace

std::variant<WebUrl, std::string> readWebUrl(std::string_view url) {
  try {
    return readWeb(url);
  } catch (const Refused& refused) {
    return refused.why;
  }
}

std::optional<std::string> webhookFault(const std::string& url, const WebhookRules& rules, std::string_view field) {
  try {
    judgeWebhook(url, rules);
    return std::nullopt;
  } catch (const Refused& refused) {
    return std::string(field) + " " + refused.why;
  }
}

}  // namespace jobq
