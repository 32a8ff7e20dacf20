// An endpoint as the settings file, the management API and the storage describe it (core/http/API.md, "Endpoint"). All
// three use the one struct and the one table of its fields; core/decisions/endpoints.md says how a field is added. The
// server runs the Endpoint made from the description (core/endpoints/endpoint.h).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/base/bounded_integer.h"
#include "core/base/result.h"
#include "core/config/form.h"
#include "core/config/limits.h"
#include "core/config/scaling.h"
#include "core/model/webhook_backoff.h"
#include "jobq/job.h"
#include "jobq/time.h"
#include "jobq/worker_launcher.h"

namespace jobq {

/// Bounds of the retention of results, in milliseconds.
inline constexpr Range kRetention{1'000, 604'800'000};
/// Bounds of the retention of failures, in milliseconds: 90 days. 0 keeps failures as any other result.
inline constexpr Range kFailureRetention{0, 7'776'000'000};
/// Bounds of WebhookBackoff; the pause in milliseconds.
inline constexpr Range kWebhookAttempts{1, 20};
inline constexpr Range kWebhookPause{100, kLongestWebhookPause.count()};
inline constexpr Range kWebhookFactor{1, 10};

/// The settings of the server for endpoints without a value of their own.
struct EndpointConfig {
  std::vector<std::string> filters;     ///< scripts, or `plugin/<filter>`
  std::uint64_t maxQueued = 1'000'000;  ///< waiting jobs at which no more are accepted
  Millis runRetention{1'800'000};       ///< retention of results of /run
  Millis runsyncRetention{60'000};      ///< retention of results of /runsync with a wait of at most 90 s
  WebhookBackoff webhookRetries{};
  Millis failedRetention{0};  ///< retention of failures, also beyond their ttl; 0: as any other result
};

/// The default values of the API; endpointInFile() has the different default values of the file.
struct EndpointSpec {
  EndpointId id;
  std::string name;
  std::string templateId;  ///< empty for endpoints of the file
  std::uint32_t workersMin = 0;
  std::uint32_t workersMax = 3;
  Millis idleTimeout{5'000};
  Scaling scaling;
  Millis executionTimeout{600'000};

  // For a launcher.
  std::string computeType = "GPU";
  std::uint32_t gpuCount = 1;

  // Stored and returned; without effect on this server.
  bool flashboot = false;
  std::vector<std::string> gpuTypeIds;
  std::vector<std::string> allowedCudaVersions;
  std::string minCudaVersion;
  std::vector<std::string> cpuFlavorIds;
  std::uint32_t vcpuCount = 2;
  std::vector<std::string> dataCenterIds;
  std::string networkVolumeId;
  std::vector<std::string> networkVolumeIds;

  // Extensions of jobq.
  std::uint32_t maxAttempts = 3;
  Millis stopGrace{5'000};
  std::optional<std::uint32_t> maxStuck;  ///< stuck workers with a replacement; without a value workersMax
  std::string isolation = "thread";
  std::string queuePolicy;                          ///< empty: policy of the server
  std::optional<std::vector<std::string>> filters;  ///< names in order; without a value, the server's filters
  // Without a value, those of EndpointConfig.
  std::optional<Millis> runRetention;
  std::optional<Millis> runsyncRetention;
  std::optional<Millis> failedRetention;
  std::optional<std::uint32_t> webhookAttempts;
  std::optional<Millis> webhookPause;
  std::optional<std::uint32_t> webhookFactor;
  std::optional<std::uint64_t> maxQueued;
  LimitSettings limits{};     ///< override the limits of the server
  std::string webhookSecret;  ///< key for signatures, as the caller or the file wrote it; sealed in the record

  // Set by the file for its endpoints, and by the server for all others.
  std::string image;                       ///< image of the newest version; in a creation the `imageName`
  std::map<std::string, std::string> env;  ///< env of the newest version, for filters; workers use the release's env

  // Set by the server.
  ContainerSpec container{};  ///< how a launcher runs the workers, from the template, without the image
  std::string createdAt;
  std::uint64_t version = 1;  ///< newest version; workers may still have an older one
  bool isStatic = false;      ///< defined by the configuration file
  bool paused = false;        ///< queued jobs wait, running jobs continue

  // Only in the record.
  std::uint64_t templateRecord = 0;  ///< record version of the template at the time of `version`
  bool deleting = false;             ///< the jobs are being removed, and all readers treat the endpoint as gone
  std::string sealed;                ///< `webhookSecret`, sealed
};

/// Returns the table of the fields of a limit of an operation; constant.
const FormFields<LimitSetting>& limitFields();

/// Returns the table of all fields, in the order of responses; constant.
const FormFields<EndpointSpec>& endpointFields();

/// Returns an endpoint of the settings file before its settings are read.
EndpointSpec endpointInFile(const EndpointId& id);

/// Returns the number of GPUs of a launched worker.
inline std::uint32_t gpusOfWorker(const EndpointSpec& spec) { return spec.computeType == "CPU" ? 0 : spec.gpuCount; }

/// Returns true if a field marked released() differs: the workers of `before` then have to be replaced.
bool needsRelease(const EndpointSpec& before, const EndpointSpec& after);

/// Adds the faults between fields and the missing fields to the faults of single fields.
void addCrossFaults(FieldFaults& faults, const EndpointSpec& spec);

}  // namespace jobq
