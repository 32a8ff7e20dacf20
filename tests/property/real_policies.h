// The queue policies of this tree, loaded like in the server, and used with random operations and schedules.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "jobq/plugin.h"
#include "jobq/queue_policy.h"
#include "testkit/loaded_plugin.h"
#include "testkit/manual_clock.h"

namespace jobq::model {

/// Loads the policy on the first call and keeps the policy. Confined to one thread.
inline const QueuePolicy& realPolicy(const std::string& name) {
  static testkit::ManualClock clock;
  static testkit::SilentLog log;
  static const testkit::MapConfig config;
  static std::map<std::string, std::unique_ptr<QueuePolicy>> loaded;
  std::unique_ptr<QueuePolicy>& policy = loaded[name];
  if (!policy) {
    policy = testkit::loadPlugin<QueuePolicy>(JOBQ_PLUGIN_DIR "/libjobq_queue_" + name + ".so", name,
                                              PluginEnv{config, clock, log, "/tmp", false});
  }
  return *policy;
}

}  // namespace jobq::model
