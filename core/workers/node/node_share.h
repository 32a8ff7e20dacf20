// The part of a node in numbers that hold for all nodes together, such as workersMax.
#pragma once

#include <cstdint>
#include <string_view>

namespace jobq {

/// On a storage for a single process the only node has the whole numbers.
struct NodeShare {
  std::uint32_t index = 0;  ///< place of the node among the living nodes, by name
  std::uint32_t nodes = 1;  ///< number of living nodes

  /// Returns the node's part of `whole` at the endpoint. The parts of all nodes sum to `whole`. Different endpoints
  /// give the rest of the division to different nodes.
  std::uint32_t of(std::uint32_t whole, std::string_view endpoint) const noexcept {
    return whole / nodes + ((index + numberOf(endpoint)) % nodes < whole % nodes ? 1 : 0);
  }

  bool operator==(const NodeShare&) const = default;

 private:
  /// Returns the same number at every node (FNV-1a).
  static std::uint32_t numberOf(std::string_view text) noexcept {
    std::uint32_t hash = 2'166'136'261U;
    for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 16'777'619U;
    return hash % 1'000U;
  }
};

}  // namespace jobq
