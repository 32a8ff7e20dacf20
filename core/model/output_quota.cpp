#include "core/model/output_quota.h"

#include <string>

#include "core/base/json_object.h"
#include "jobq/job_handler.h"
#include "jobq/json.h"

namespace jobq {

CheckedChunk::CheckedChunk(std::string_view output, std::string_view metrics) : output_(output), metrics_(metrics) {
  if (!json::valid(output)) throw JobFailed("the handler emitted a chunk that is not JSON");
  if (!metrics.empty() && !isJsonObject(metrics)) {
    throw JobFailed("the handler emitted metrics that are not a JSON object");
  }
  if (metrics.size() > kMostMetrics) {
    throw JobFailed("a chunk's metrics have " + std::to_string(metrics.size()) + " bytes, the limit is " +
                    std::to_string(kMostMetrics) + ": emit less");
  }
}

// A million chunks of one byte each would take a gigabyte of memory.
void OutputQuota::charge(std::size_t chunks, std::size_t bytes) {
  bytes_ += bytes + chunks * kPriceOfAChunk;
  if (bytes_ > kMost) throw JobFailed("the job's chunks exceed 256 MB in all: emit less");
}

}  // namespace jobq
