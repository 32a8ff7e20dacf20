#include "core/webhooks/curl_receiver_names.h"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>

#include "core/base/curl_url.h"

namespace jobq {
namespace {

std::string ipv4Name(const std::uint8_t* bytes) {
  std::array<char, INET_ADDRSTRLEN> text{};
  return inet_ntop(AF_INET, bytes, text.data(), text.size());
}

// Eight groups instead of the shorter text of inet_ntop(), because databases hold names of this form.
std::string ipv6Name(const std::array<std::uint8_t, 16>& bytes) {
  std::string name;
  for (std::size_t i = 0; i < bytes.size(); i += 2) {
    std::array<char, 4> digits{};
    const unsigned group = static_cast<unsigned>(bytes[i]) << 8 | bytes[i + 1];
    const char* const end = std::to_chars(digits.data(), digits.data() + digits.size(), group, 16).ptr;
    name += i == 0 ? '[' : ':';
    name.append(digits.data(), static_cast<std::size_t>(end - digits.data()));
  }
  return name + ']';
}

std::string nameOfHost(const std::string& host) {
  std::array<std::uint8_t, 16> bytes{};
  if (!host.starts_with('[') || inet_pton(AF_INET6, host.substr(1, host.size() - 2).c_str(), bytes.data()) != 1) {
    return lowered(resolverHost(host));
  }
  constexpr std::array<std::uint8_t, 12> kMapped{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  return std::equal(kMapped.begin(), kMapped.end(), bytes.begin()) ? ipv4Name(&bytes[kMapped.size()]) : ipv6Name(bytes);
}

}  // namespace

std::string CurlReceiverNames::nameOf(std::string_view url) const {
  const std::string_view scheme = url.substr(0, url.find(':'));
  const std::string_view rest = url.substr(scheme.size());
  const std::string_view nameWithoutHost = scheme.empty() ? url : scheme;
  // With another number of slashes libcurl takes a part of the path for the host.
  if (!rest.starts_with("://") || rest.starts_with(":///")) return lowered(nameWithoutHost);
  const auto parts = readUrlParts(std::string(url));
  const std::string host = parts ? nameOfHost(parts->host) : std::string();
  if (host.empty()) return lowered(nameWithoutHost);
  return host + (parts->isUsualPort ? "" : ":" + std::to_string(parts->port));
}

}  // namespace jobq
