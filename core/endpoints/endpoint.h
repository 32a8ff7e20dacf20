// An endpoint as a running server uses it: the description, and the plugins and the release that were found for it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/config/endpoint_spec.h"
#include "core/model/webhook_backoff.h"
#include "jobq/job_handler.h"
#include "jobq/queue_policy.h"
#include "jobq/worker_launcher.h"

namespace jobq {

class FilterPool;

/// The image and environment of an endpoint's workers. A release changes only as a whole: workers of an older release
/// are replaced (core/decisions/endpoints.md). Immutable; shared by the endpoint and by all workers of the release.
struct Release {
  std::uint64_t version = 1;
  std::string templateId;  ///< empty: the release of an endpoint of the configuration file
  std::string image;
  std::string script;                 ///< script of the image `lua/<script>`
  HandlerFactory* handler = nullptr;  ///< null with isRemote
  bool isRemote = false;              ///< workers on any machine take the jobs over HTTP
  std::map<std::string, std::string> env;
  ContainerSpec container;  ///< how a launcher runs the workers; only with isRemote
};

using ReleasePtr = std::shared_ptr<const Release>;

/// The description and everything that was found for it. Immutable; shared by all threads. A change puts a new object
/// in the place of the old one (EndpointRegistry).
struct Endpoint {
  EndpointSpec spec;
  EndpointConfig defaults{};
  ReleasePtr release;  ///< null: the image cannot run on this server
  /// Fails with the reasons if the newest version does not run; `release` is then the last good version.
  Result<void> runnable;
  const QueuePolicy* policy = nullptr;
  std::vector<FilterPool*> filters;  ///< review each job, in this order
  std::string webhookKey;            ///< key for signatures of webhooks, as bytes; empty: key of the server

  /// Returns the number of stuck workers with a replacement; a stuck worker beyond it keeps its slot.
  std::uint32_t maxStuck() const { return spec.maxStuck.value_or(spec.workersMax); }
  /// Returns the number of waiting jobs at which no more are accepted.
  std::uint64_t maxQueued() const { return spec.maxQueued.value_or(defaults.maxQueued); }
  /// Returns the attempts of the endpoint's webhooks.
  WebhookBackoff webhookRetries() const {
    const WebhookBackoff& others = defaults.webhookRetries;
    return {spec.webhookAttempts.value_or(others.attempts), spec.webhookPause.value_or(others.pause),
            spec.webhookFactor.value_or(others.factor)};
  }
};

using EndpointPtr = std::shared_ptr<const Endpoint>;

}  // namespace jobq
