// The operations on endpoints (core/http/API.md, "Endpoint API").
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/base/clock.h"
#include "core/base/result.h"
#include "core/config/endpoint_spec.h"
#include "core/config/form.h"
#include "core/endpoints/endpoint_registry.h"
#include "jobq/job.h"
#include "jobq/record_store.h"
#include "jobq/time.h"

namespace jobq {

class SecretBox;

/// Any thread may call all functions. Every operation may throw StorageError. An answered operation is stored. The
/// registry, which serves all reads, knows the change too, or takes in the change with a later refresh() if the storage
/// fails in between. A failure has every fault of the call by field, or says that no endpoint has the id.
class EndpointService {
 public:
  /// All arguments outlive the service.
  EndpointService(RecordStore& records, const SecretBox& box, EndpointRegistry& registry, const WallClock& wall)
      : records_(records), box_(box), registry_(registry), wall_(wall) {}

  /// Creates an endpoint from the JSON body of a request. Returns the new entry.
  Result<EndpointEntryPtr> create(std::string_view body);

  /// Another template makes a release; other changes take effect without a release. Fails also for an endpoint of
  /// the configuration file, which never changes.
  Result<EndpointEntryPtr> update(const EndpointId& id, std::string_view body);

  /// Removes the endpoint from all answers. The dispatcher stops the running jobs, and EndpointRemover removes all jobs
  /// afterwards.
  Result<void> remove(const EndpointId& id);

  /// Removes the last traces of a removed endpoint, with its record last: after a crash in between, the next call
  /// continues.
  void forget(const EndpointId& id);

  /// Pauses or resumes any endpoint, including endpoints of the file. A paused endpoint accepts jobs and lets them
  /// wait; running jobs continue.
  Result<EndpointEntryPtr> pause(const EndpointId& id, bool paused);

 private:
  void addFaults(FieldFaults& faults, const EndpointSpec& spec, const std::string& templateBefore);
  Result<EndpointEntryPtr> store(EndpointSpec spec, const std::string& made);
  Result<void> makeTemplate(EndpointSpec& spec);
  void forgetCreation(const EndpointSpec& spec, const std::string& made);
  std::optional<Record> usableTemplate(const std::string& id);
  std::uint64_t templateRecord(const std::string& id);
  bool isThere(const EndpointId& id);
  EndpointEntryPtr shown(EndpointSpec spec);

  RecordStore& records_;
  const SecretBox& box_;
  EndpointRegistry& registry_;
  const WallClock& wall_;
};

}  // namespace jobq
