// An endpoint as the management API and the storage know it (wire.md 4.1, and ours). What of it the rooms need becomes
// an Endpoint (endpoint.h).
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

  // Kept and given back: they mean nothing here.
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

  // Ours.
  std::int64_t maxAttempts = 3;
  std::int64_t stopGraceMs = 5'000;
  std::optional<std::int64_t> maxStuck;  ///< workersMax unless it is set
  std::string isolation = "thread";
  std::string queuePolicy;                          ///< empty: the server's
  std::optional<std::vector<std::string>> filters;  ///< nothing: the server's
  std::optional<std::int64_t> runRetentionMs;
  std::optional<std::int64_t> runsyncRetentionMs;
  LimitSettings limits{};
  std::string webhookSecret;  ///< sealed in the record, never told

  // Told by the server.
  std::string createdAt;
  std::int64_t version = 1;
  bool isStatic = false;  ///< of the configuration file
  bool paused = false;
  std::map<std::string, std::string> env;  ///< of its template
  std::string fault;                       ///< why its newest version does not run

  // Of the record only.
  std::int64_t templateRecord = 0;  ///< the record version of the template that `version` stands for
  bool deleting = false;            ///< its jobs are being removed; it is gone for everybody else
  std::string sealed;
};

inline constexpr const char* kEndpointKind = "endpoint";

/// The existence of such a record under an endpoint's id means that it is paused. Endpoints of the file can be paused
/// too: that is no change of what they are.
inline constexpr const char* kPauseKind = "pause";

const FormFields<EndpointSpec>& endpointFields();

/// Adds what is wrong between the fields, or missing, to what is wrong with each of them.
void addCrossFaults(FieldFaults& faults, const EndpointSpec& form);

Record toRecord(const EndpointSpec& form, const SecretBox& box);

/// Throws Error when the record is damaged or was sealed with another secret.key.
EndpointSpec endpointSpecOf(const Record& record, const SecretBox& box);

}  // namespace jobq
