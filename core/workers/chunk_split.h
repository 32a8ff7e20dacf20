// Splits a handler's piece of output into chunks of at most 1 MB (core/http/API.md, "Stream chunk";
// core/decisions/jobs.md).
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "core/base/output_quota.h"
#include "jobq/chunk_store.h"

namespace jobq {

/// Most bytes of a chunk in an answer: the object with the keys `output`, `metrics` and `partial`.
inline constexpr std::size_t kChunkLimit = 1UL << 20;

/// Most bytes of the metrics within kChunkLimit.
inline constexpr std::size_t kMetricsLimit = OutputQuota::kMostMetrics;

/// Splits `output`, a JSON text. `metrics` is the text of a JSON object with at most kMetricsLimit bytes, or empty.
/// Output that fits stays unchanged. A longer string is cut between characters into several strings; any other longer
/// value is cut into strings of its text, marked `partial`. The last chunk has the metrics. Pure; any thread.
std::vector<Chunk> splitChunk(std::string_view output, std::string_view metrics);

}  // namespace jobq
