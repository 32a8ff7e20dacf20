// Bounds on the output that one attempt of a job may hand out while the job runs (core/decisions/jobs.md).
#pragma once

#include <cstddef>
#include <string_view>

namespace jobq {

inline constexpr std::size_t kMaxOutput = 20UL << 20;        ///< bytes of an output
inline constexpr std::size_t kMaxChunk = 1UL << 20;          ///< bytes of a chunk in an answer
inline constexpr std::size_t kMaxProgressBytes = 1UL << 20;  ///< bytes of a progress

/// A piece of output that a handler emits, well-formed by construction: the quota and the split (splitChunk) take no
/// other. The texts outlive the object.
class CheckedChunk {
 public:
  static constexpr std::size_t kMostMetrics = 64UL << 10;  ///< bytes of metrics

  /// `metrics` may be empty. Throws JobFailed unless `output` is JSON and `metrics` a JSON object within the limit.
  CheckedChunk(std::string_view output, std::string_view metrics);

  std::string_view output() const noexcept { return output_; }
  std::string_view metrics() const noexcept { return metrics_; }

 private:
  std::string_view output_;
  std::string_view metrics_;
};

/// The bytes handed out by one attempt. Used by one thread.
class OutputQuota {
 public:
  static constexpr std::size_t kMost = 256UL << 20;  ///< bytes of all chunks of an attempt
  /// Bytes counted for each chunk besides its size, about the memory for keeping a chunk.
  static constexpr std::size_t kPriceOfAChunk = 256;

  /// Counts one more chunk. Throws JobFailed if the bound is exceeded.
  void charge(const CheckedChunk& chunk) { charge(1, chunk.output().size() + chunk.metrics().size()); }
  /// Counts `chunks` more chunks with `bytes` of outputs and metrics. Throws JobFailed if the bound is exceeded.
  void charge(std::size_t chunks, std::size_t bytes);

 private:
  std::size_t bytes_ = 0;
};

}  // namespace jobq
