// The health of an endpoint, as /health and /v1/health show it.
#pragma once

#include <optional>
#include <string>

#include "jobq/job_store.h"
#include "jobq/json_writer.h"
#include "jobq/node_store.h"
#include "jobq/outbox_store.h"

namespace jobq {

struct EndpointStatus {
  EndpointCounts jobs;
  OwedDeliveries owed;
  WorkerCounts workers;
  std::optional<std::string> advice;  ///< what to do, while the endpoint lacks a worker
};

/// Writes the members of the answer.
void writeHealth(json::ObjectWriter& out, const EndpointStatus& health);

}  // namespace jobq
