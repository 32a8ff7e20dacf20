// An endpoint as the rooms see it: what runs, with how many workers, under which rules.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "jobq/job_handler.h"
#include "jobq/queue_policy.h"

namespace jobq {

/// Immutable; shared by everyone who serves it.
struct Endpoint {
  EndpointId id;
  std::string image;
  HandlerFactory* handler = nullptr;  ///< null: remote workers pull its jobs
  const QueuePolicy* policy = nullptr;
  std::uint32_t workersMin = 0;
  std::uint32_t workersMax = 3;
  std::uint32_t maxStuck = 3;  ///< so many workers whose handlers ignore their stop token are replaced
  Millis idleTimeout{5'000};
  Millis executionTimeout{600'000};
  Millis stopGrace{5'000};
  std::uint32_t maxAttempts = 3;
  std::map<std::string, std::string> env;
};

using EndpointPtr = std::shared_ptr<const Endpoint>;

}  // namespace jobq
