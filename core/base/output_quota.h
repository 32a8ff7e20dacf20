// Bounds on the output that one attempt of a job may hand out while the job runs (core/decisions/jobs.md).
#pragma once

#include <cstddef>
#include <string_view>

namespace jobq {

inline constexpr std::size_t kMaxOutput = 20UL << 20;        ///< bytes of an output
inline constexpr std::size_t kMaxProgressBytes = 1UL << 20;  ///< bytes of a progress

/// The bytes handed out by one attempt. Used by one thread.
class OutputQuota {
 public:
  static constexpr std::size_t kMostMetrics = 64UL << 10;  ///< bytes of metrics of one chunk
  static constexpr std::size_t kMost = 256UL << 20;        ///< bytes of all chunks of an attempt
  /// Bytes counted for each chunk besides its size, about the memory for keeping a chunk.
  static constexpr std::size_t kPriceOfAChunk = 256;

  /// Counts one more chunk, a JSON text, and its metrics, a JSON object or empty. Throws JobFailed if a text is
  /// malformed or a bound is exceeded.
  void charge(std::string_view chunk, std::string_view metrics);

 private:
  std::size_t bytes_ = 0;
};

}  // namespace jobq
