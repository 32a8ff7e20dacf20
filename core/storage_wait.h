// The wait for the storage at a start: at the boot of a machine, the database may come up after the server.
#pragma once

#include <memory>
#include <string>

#include "core/config/config.h"
#include "core/plugin_instances.h"
#include "jobq/error.h"
#include "jobq/log.h"
#include "jobq/storage.h"
#include "jobq/time.h"

namespace jobq {

/// The order to stop a server that has not started yet.
class StopOrder {
 public:
  virtual ~StopOrder() = default;
  /// Waits for `longest`, or until the order comes. Returns whether the order has come.
  virtual bool await(Millis longest) = 0;
};

/// Thrown if the order to stop came before the storage could be opened.
class StoppedBeforeStart final : public Error {
 public:
  StoppedBeforeStart() : Error("the server was stopped before its storage could be reached") {}
};

/// Opens the storage of a server. One thread calls.
class StorageWait {
 public:
  /// All references outlive the object.
  StorageWait(Clock& clock, Log& log, StopOrder& stop) : clock_(clock), log_(log), stop_(stop) {}

  /// Makes the storage of `instances`, repeatedly for `storage.wait` while the storage cannot be reached. Meanwhile the
  /// address of the server answers 503, and 200 to `/healthz`. Throws ConfigError or StorageError if the storage
  /// refuses, or is not reached in time; StoppedBeforeStart; and ConfigError if the address is taken.
  std::unique_ptr<Storage> open(const Config& config, PluginInstances& instances);

 private:
  Clock& clock_;
  Log& log_;
  StopOrder& stop_;
};

}  // namespace jobq
