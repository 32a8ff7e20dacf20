// The part of gearmand's binary protocol needed by a client and a worker.
#pragma once

#include <arpa/inet.h>

#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

namespace gearman {

enum class Type : std::uint32_t {
  canDo = 1,
  preSleep = 4,
  noop = 6,
  submitJob = 7,
  jobCreated = 8,
  grabJob = 9,
  noJob = 10,
  jobAssign = 11,
  workComplete = 13
};

struct Packet {
  Type type;
  std::string_view body;
  std::size_t size;  ///< in bytes, header included
};

constexpr std::size_t kHeader = 12;

inline std::string packet(Type type, std::string_view body) {
  std::string text("\0REQ", 4);
  for (const std::uint32_t number : {static_cast<std::uint32_t>(type), static_cast<std::uint32_t>(body.size())}) {
    const std::uint32_t wire = htonl(number);
    text.append(reinterpret_cast<const char*>(&wire), sizeof wire);
  }
  return text.append(body);
}

inline std::uint32_t numberAt(std::string_view text, std::size_t at) {
  std::uint32_t wire = 0;
  std::memcpy(&wire, text.data() + at, sizeof wire);
  return ntohl(wire);
}

/// Returns the packet at the front of `text`; empty if the packet is not whole.
inline std::optional<Packet> read(std::string_view text) {
  if (text.size() < kHeader) return std::nullopt;
  const std::size_t size = kHeader + numberAt(text, 8);
  if (text.size() < size) return std::nullopt;
  return Packet{static_cast<Type>(numberAt(text, 4)), text.substr(kHeader, size - kHeader), size};
}

}  // namespace gearman
