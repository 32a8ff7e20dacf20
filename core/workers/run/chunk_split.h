// Splits a handler's piece of output into chunks of at most 1 MB (core/http/API.md, "Stream chunk";
// core/decisions/jobs.md).
#pragma once

#include <cstddef>
#include <vector>

#include "core/model/output_quota.h"
#include "jobq/chunk_store.h"

namespace jobq {

/// Most bytes of a chunk in an answer: the object with the keys `output`, `metrics` and `partial`.
inline constexpr std::size_t kChunkLimit = kMaxChunk;

/// Most bytes of the metrics within kChunkLimit.
inline constexpr std::size_t kMetricsLimit = CheckedChunk::kMostMetrics;

/// Splits the output of `chunk`. Output that fits stays unchanged. A longer string is cut between characters into
/// several strings; any other longer value is cut into strings of its text, marked `partial`. The last chunk has the
/// metrics. Pure; any thread.
std::vector<Chunk> splitChunk(const CheckedChunk& chunk);

}  // namespace jobq
