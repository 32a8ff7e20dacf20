// The rights of a key to a job. The scope `client` permits every call, `read` the calls that change nothing, and
// `submit` calls about the jobs that were submitted with the same key.
#pragma once

#include <optional>

#include "core/http/api/api_request.h"
#include "core/http/api/routes.h"
#include "jobq/job.h"

namespace jobq {

struct ApiKey;

/// Returns true if the job was submitted with the key.
bool isOwnJob(const Job& job, const ApiKey& key);

/// Returns the refusal of a call about the job in the path, or no value if the key permits the call. `isReading` says
/// that the call changes nothing. A key with the scope `submit` alone gets the same 404 for a foreign job and for an
/// absent job. Throws StorageError.
std::optional<ApiResponse> refuseJobCall(const QueueDeps& deps, const ApiRequest& request, bool isReading);

}  // namespace jobq
