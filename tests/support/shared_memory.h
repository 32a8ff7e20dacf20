// The memory storage, shared by several servers of one process.
#pragma once

#include <filesystem>
#include <memory>

#include "jobq/log.h"
#include "jobq/plugin.h"
#include "jobq/storage.h"
#include "jobq/time.h"
#include "memory_storage.h"
#include "testkit/loaded_plugin.h"
#include "testkit/plain_receiver_names.h"

namespace jobq::test {

inline constexpr Millis kLeaseLife{15'000};

/// Returns an empty storage whose lives end `leaseLife` after their last beat. `clock` and `log` outlive the storage.
inline std::unique_ptr<Storage> sharedMemory(Clock& clock, Log& log, Millis leaseLife = kLeaseLife) {
  static const testkit::MapConfig config;
  static const testkit::PlainReceiverNames names;
  const PluginEnv env{config, clock, log, "/nowhere", false, {}, &names};
  return std::make_unique<memory::MemoryStorage>(env, leaseLife);
}

}  // namespace jobq::test
