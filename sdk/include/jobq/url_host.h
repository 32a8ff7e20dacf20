// The name of a receiver, under which deliveries to the receiver are counted (outbox_store.h). The functions are pure.
// Any thread may call them; they throw std::bad_alloc only. They check no URL: a text that is no URL has a name too.
#pragma once

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

namespace jobq {
namespace url {

/// Returns the value of the whole text as a number in base `base`, 2 to 36. Returns an empty optional for an empty
/// text, a text with other characters, and a number of more than 64 bits.
inline std::optional<std::uint64_t> number(std::string_view text, int base) {
  std::uint64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, value, base);
  if (text.empty() || error != std::errc() || at != end) return std::nullopt;
  return value;
}

/// Returns the four bytes of an IPv4 address in any spelling that inet_aton() reads. The spelling has up to four parts,
/// each decimal, octal ("0177") or hexadecimal ("0x7f", with a lower case "x"). The last part fills the remaining
/// bytes.
inline std::optional<std::uint32_t> ipv4(std::string_view text) {
  std::uint64_t address = 0;
  for (int part = 0;; ++part) {
    const std::size_t dot = std::min(text.find('.'), text.size());
    std::string_view digits = text.substr(0, dot);
    int base = 10;
    if (digits.starts_with("0x")) {
      digits.remove_prefix(2);
      base = 16;
    } else if (digits.size() > 1 && digits[0] == '0') {
      base = 8;
    }
    const auto value = number(digits, base);
    if (!value) return std::nullopt;
    if (dot == text.size()) {
      const int bits = 32 - 8 * part;
      if (*value >> bits != 0) return std::nullopt;
      return static_cast<std::uint32_t>((bits == 32 ? 0 : address << bits) | *value);
    }
    if (part == 3 || *value > 0xff) return std::nullopt;
    address = address << 8 | *value;
    text.remove_prefix(dot + 1);
  }
}

/// Returns an IPv4 address as a dotted quad.
inline std::string ipv4Text(std::uint32_t address) {
  return std::to_string(address >> 24) + '.' + std::to_string(address >> 16 & 0xff) + '.' +
         std::to_string(address >> 8 & 0xff) + '.' + std::to_string(address & 0xff);
}

/// Returns the eight groups of an IPv6 address without brackets. The address may end with an IPv4 address.
inline std::optional<std::array<std::uint16_t, 8>> ipv6(std::string_view text) {
  std::array<std::uint16_t, 8> groups{};
  std::size_t count = 0;
  std::optional<std::size_t> gap;  // the position of "::"
  if (text.starts_with("::")) {
    gap = 0;
    text.remove_prefix(2);
  }
  while (!text.empty()) {
    const std::size_t colon = std::min(text.find(':'), text.size());
    const std::string_view group = text.substr(0, colon);
    if (colon == text.size() && group.find('.') != std::string_view::npos) {
      const auto tail = ipv4(group);
      if (!tail || count > 6) return std::nullopt;
      groups[count++] = static_cast<std::uint16_t>(*tail >> 16);
      groups[count++] = static_cast<std::uint16_t>(*tail & 0xffff);
      break;
    }
    const auto value = group.size() > 4 ? std::nullopt : number(group, 16);
    if (!value || count == 8) return std::nullopt;
    groups[count++] = static_cast<std::uint16_t>(*value);
    text.remove_prefix(std::min(colon + 1, text.size()));
    if (!text.starts_with(':')) continue;
    if (gap) return std::nullopt;
    gap = count;
    text.remove_prefix(1);
  }
  if (!gap) return count == 8 ? std::optional(groups) : std::nullopt;
  if (count == 8) return std::nullopt;
  std::rotate(groups.begin() + static_cast<std::ptrdiff_t>(*gap), groups.begin() + static_cast<std::ptrdiff_t>(count),
              groups.end());
  return groups;
}

/// Returns the text with each %XX replaced by its byte, as clients do before a name lookup.
inline std::string decoded(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = text[i] == '%' && i + 2 < text.size() ? number(text.substr(i + 1, 2), 16) : std::nullopt;
    out += byte ? static_cast<char>(*byte) : text[i];
    if (byte) i += 2;
  }
  return out;
}

/// Returns the text with ASCII letters in lower case.
inline std::string lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return out;
}

/// Returns one spelling for all spellings of a host: numbers for an address, lower case without a final dot for a name.
inline std::string canonicalHost(std::string_view host) {
  if (host.starts_with('[') && host.ends_with(']')) {
    const auto groups = ipv6(host.substr(1, host.size() - 2));
    if (!groups) return lower(host);
    const auto& g = *groups;
    const bool mapped = std::all_of(g.begin(), g.begin() + 5, [](auto group) { return group == 0; }) && g[5] == 0xffff;
    if (mapped) return ipv4Text(static_cast<std::uint32_t>(g[6]) << 16 | g[7]);
    std::string out;
    for (const std::uint16_t group : g) {
      std::array<char, 4> digits{};
      const char* const end = std::to_chars(digits.data(), digits.data() + digits.size(), group, 16).ptr;
      out += out.empty() ? '[' : ':';
      out.append(digits.data(), static_cast<std::size_t>(end - digits.data()));
    }
    return out + ']';
  }
  std::string name = lower(decoded(host));
  if (name.size() > 1 && name.ends_with('.')) name.pop_back();
  const auto address = ipv4(name);
  return address ? ipv4Text(*address) : name;
}

}  // namespace url

/// Returns the host of a URL in its canonical spelling, with the port unless the port is the scheme's own:
/// "hooks.example.com:8443", "127.0.0.1" for "http://0x7f.1:80/". Returns the scheme for a URL without an authority
/// ("file:///calls"), and the whole text in lower case for a text without a scheme.
inline std::string hostOf(std::string_view text) {
  const std::size_t colon = text.find(':');
  const std::string scheme = url::lower(text.substr(0, colon));
  if (colon == std::string_view::npos || !text.substr(colon).starts_with("://")) return scheme;
  std::string_view authority = text.substr(colon + 3);
  authority = authority.substr(0, authority.find_first_of("/?#"));
  authority.remove_prefix(authority.rfind('@') + 1);  // npos + 1 is 0
  const std::size_t bracket = authority.rfind(']');
  const std::size_t beforePort = authority.find(':', bracket == std::string_view::npos ? 0 : bracket);
  const std::string_view port =
      beforePort == std::string_view::npos ? std::string_view() : authority.substr(beforePort + 1);
  authority = authority.substr(0, beforePort);
  if (authority.empty()) return scheme;
  const auto number = url::number(port, 10);
  const bool usual = port.empty() || (scheme == "http" && number == 80) || (scheme == "https" && number == 443);
  return url::canonicalHost(authority) + (usual ? "" : ':' + (number ? std::to_string(*number) : url::lower(port)));
}

}  // namespace jobq
