// An endpoint as the management API and the storage describe it (core/http/API.md, "Endpoint"). The server runs the
// Endpoint made from the description (core/endpoints/endpoint.h).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/config/limits.h"
#include "core/endpoints/endpoint.h"
#include "core/endpoints/form.h"
#include "jobq/record_store.h"

namespace jobq {

class SecretBox;

/// The fields of an endpoint in the units of the API.
struct EndpointSpec {
  std::string id;
  std::string name;
  std::string templateId;
  std::int64_t workersMin = 0;
  std::int64_t workersMax = 3;
  std::int64_t idleTimeout = 5;  ///< seconds
  std::string scalerType = "QUEUE_DELAY";
  std::int64_t scalerValue = 4;
  std::int64_t executionTimeoutMs = 600'000;

  // Stored and returned; without effect on this server.
  bool flashboot = false;
  std::string computeType = "GPU";
  std::int64_t gpuCount = 1;
  std::vector<std::string> gpuTypeIds;
  std::vector<std::string> allowedCudaVersions;
  std::string minCudaVersion;
  std::vector<std::string> cpuFlavorIds;
  std::int64_t vcpuCount = 2;
  std::vector<std::string> dataCenterIds;
  std::string networkVolumeId;
  std::vector<std::string> networkVolumeIds;

  // Extensions of jobq.
  std::int64_t maxAttempts = 3;
  std::int64_t stopGraceMs = 5'000;
  std::optional<std::int64_t> maxStuck;  ///< without a value workersMax
  std::string isolation = "thread";
  std::string queuePolicy;                          ///< empty: policy of the server
  std::optional<std::vector<std::string>> filters;  ///< without a value the filters of the server
  std::optional<std::int64_t> runRetentionMs;
  std::optional<std::int64_t> runsyncRetentionMs;
  LimitSettings limits{};
  std::string webhookSecret;  ///< sealed in the record, never returned

  // Set by the server.
  std::string createdAt;
  std::int64_t version = 1;
  bool isStatic = false;  ///< defined by the configuration file
  bool paused = false;
  std::map<std::string, std::string> env;  ///< env of the template
  std::string fault;                       ///< reason why the newest version does not run

  // Only in the record.
  std::int64_t templateRecord = 0;  ///< record version of the template at the time of `version`
  bool deleting = false;            ///< the jobs are being removed, and all readers treat the endpoint as gone
  std::string sealed;
};

inline constexpr const char* kEndpointKind = "endpoint";

/// Kind of the record that marks an endpoint as paused; the record has the id of the endpoint. Endpoints of the file
/// can be paused too: a pause changes no property of an endpoint.
inline constexpr const char* kPauseKind = "pause";

/// Returns the table of all fields, in the order of responses; constant.
const FormFields<EndpointSpec>& endpointFields();

/// Adds the faults between fields and the missing fields to the faults of single fields.
void addCrossFaults(FieldFaults& faults, const EndpointSpec& form);

/// Returns the record, with `webhookSecret` sealed.
Record toRecord(const EndpointSpec& form, const SecretBox& box);

/// Throws Error if the record is damaged or was sealed with another secret.key.
EndpointSpec endpointSpecOf(const Record& record, const SecretBox& box);

}  // namespace jobq
