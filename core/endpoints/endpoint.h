// An endpoint as a running server uses it: image, number of workers, rules.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/config/limits.h"
#include "core/config/scaling.h"
#include "jobq/job.h"
#include "jobq/job_handler.h"
#include "jobq/queue_policy.h"
#include "jobq/time.h"

namespace jobq {

class FilterPool;

/// The image and environment of an endpoint's workers. A release changes only as a whole: workers of an older release
/// are replaced (core/decisions/endpoints.md). Immutable; shared by the endpoint and by all workers of the release.
struct Release {
  std::uint64_t version = 1;
  std::string templateId;  ///< empty: the release of an endpoint of the configuration file
  std::string image;
  std::string script;                 ///< script of the image `lua/<script>`
  HandlerFactory* handler = nullptr;  ///< never null: an endpoint without a handler on this server has no release
  std::map<std::string, std::string> env;
};

using ReleasePtr = std::shared_ptr<const Release>;

/// Immutable; shared by all threads. A change puts a new object in the place of the old one (EndpointRegistry).
struct Endpoint {
  EndpointId id;
  std::uint64_t version = 1;  ///< newest version; workers may still have an older one
  std::string image;          ///< image of the newest version
  ReleasePtr release;         ///< null: the image is for remote workers or cannot run on this server
  std::string fault;          ///< fault of the newest version; `release` is then the last good version
  const QueuePolicy* policy = nullptr;
  std::vector<FilterPool*> filters;        ///< review each job, in this order
  std::map<std::string, std::string> env;  ///< env of the newest version, for filters; workers use the release's env
  std::uint32_t workersMin = 0;
  std::uint32_t workersMax = 3;
  std::uint32_t maxStuck = 3;  ///< stuck workers with a replacement; beyond, a stuck worker keeps its slot
  Scaling scaling;
  bool paused = false;  ///< queued jobs wait, running jobs continue
  Millis idleTimeout{5'000};
  Millis executionTimeout{600'000};
  Millis stopGrace{5'000};
  std::uint32_t maxAttempts = 3;
  std::optional<Millis> runRetention;      ///< retention of results of /run; without a value 30 minutes
  std::optional<Millis> runsyncRetention;  ///< retention of results of /runsync with an ordinary wait; else 60 s
  LimitSettings limits{};                  ///< override the limits of the server
  std::string webhookKey;                  ///< key for signatures of webhooks, as bytes; empty: key of the server
};

using EndpointPtr = std::shared_ptr<const Endpoint>;

}  // namespace jobq
