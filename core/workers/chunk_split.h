// How a handler's piece of output becomes chunks of at most 1 MB (api.md, "Endpoints", rule 2; core/decisions/jobs.md).
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "core/jobs/output_quota.h"
#include "jobq/chunk_store.h"

namespace jobq {

/// What one chunk may have as a client reads it: the object with its keys `output`, `metrics` and `partial`.
inline constexpr std::size_t kChunkLimit = 1UL << 20;

/// Of that, what its metrics may have.
inline constexpr std::size_t kMetricsLimit = OutputQuota::kMostMetrics;

/// `output` is JSON text, `metrics` a JSON object's text of at most kMetricsLimit, or empty. What fits stays as it is.
/// A longer string is cut between characters into several strings; anything else into strings of its text, marked
/// `partial`. The metrics go with the last chunk. Pure.
std::vector<Chunk> splitChunk(std::string_view output, std::string_view metrics);

}  // namespace jobq
