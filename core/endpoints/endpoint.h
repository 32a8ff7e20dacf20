// An endpoint as the rooms see it: what runs, with how many workers, under which rules.
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

/// What the workers of an endpoint run. It changes only as a whole: workers of another release are replaced
/// (core/decisions/endpoints.md). Immutable; shared by the endpoint and by every worker that runs it.
struct Release {
  std::uint64_t version = 1;
  std::string templateId;  ///< empty: of the configuration file
  std::string image;
  std::string script;                 ///< of the image `lua/<script>`
  HandlerFactory* handler = nullptr;  ///< never null: an endpoint that nothing here can run has no release
  std::map<std::string, std::string> env;
};

using ReleasePtr = std::shared_ptr<const Release>;

/// Immutable; shared by everyone who serves it. A change is another one in its place (EndpointRegistry).
struct Endpoint {
  EndpointId id;
  std::uint64_t version = 1;  ///< the newest; its workers may still have an older one
  std::string image;          ///< of the newest version
  ReleasePtr release;         ///< null: remote workers pull its jobs, or nobody can run it
  std::string fault;          ///< why the newest version cannot run here; `release` is then the last that could
  const QueuePolicy* policy = nullptr;
  std::vector<FilterPool*> filters;        ///< judge each job, in order
  std::map<std::string, std::string> env;  ///< of the newest version: what filters see; workers see their release's
  std::uint32_t workersMin = 0;
  std::uint32_t workersMax = 3;
  std::uint32_t maxStuck = 3;  ///< so many workers whose handlers ignore their stop token are replaced
  Scaling scaling;
  bool paused = false;  ///< jobs wait; those that run go on
  Millis idleTimeout{5'000};
  Millis executionTimeout{600'000};
  Millis stopGrace{5'000};
  std::uint32_t maxAttempts = 3;
  std::optional<Millis> runRetention;      ///< how long results of /run stay, instead of the text's 30 minutes
  std::optional<Millis> runsyncRetention;  ///< of /runsync with an ordinary wait, instead of 60 s
  LimitSettings limits{};                  ///< instead of the server's
  std::string webhookKey;                  ///< the bytes that sign its webhooks; empty: the server's
};

using EndpointPtr = std::shared_ptr<const Endpoint>;

}  // namespace jobq
