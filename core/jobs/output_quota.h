// What a handler may hand out while its job runs (room 9), of one attempt: core/decisions/jobs.md.
#pragma once

#include <cstddef>
#include <string_view>

namespace jobq {

/// One thread.
class OutputQuota {
 public:
  static constexpr std::size_t kMostMetrics = 64UL << 10;  ///< of one chunk
  static constexpr std::size_t kMost = 256UL << 20;        ///< of all chunks
  static constexpr std::size_t kPriceOfAChunk = 256;       ///< counted besides its bytes: what keeping it takes

  /// Counts one more. Throws JobFailed when it is none, or one too many.
  void charge(std::string_view chunk, std::string_view metrics);

 private:
  std::size_t bytes_ = 0;
};

}  // namespace jobq
