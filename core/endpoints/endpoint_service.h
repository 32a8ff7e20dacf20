// The verbs of endpoints (wire.md 4.1, and ours).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "core/base/clock.h"
#include "core/endpoints/endpoint_registry.h"
#include "core/endpoints/endpoint_spec.h"
#include "core/endpoints/form.h"
#include "core/endpoints/template_service.h"
#include "jobq/job.h"
#include "jobq/record_store.h"
#include "jobq/time.h"

namespace jobq {

class SecretBox;

/// Any thread. Reads are the registry's. StorageError passes through every verb; what a verb has answered is stored,
/// and known to the registry.
class EndpointService {
 public:
  EndpointService(RecordStore& records, const SecretBox& box, EndpointRegistry& registry, const WallClock& wall)
      : records_(records), box_(box), registry_(registry), wall_(wall) {}

  std::variant<EndpointEntryPtr, FieldFaults> create(std::string_view body);

  /// Another template is a release; everything else takes effect without one. FieldFaults also for an endpoint of the
  /// configuration file, which does not change.
  std::variant<EndpointEntryPtr, FieldFaults, Unknown> update(const EndpointId& id, std::string_view body);

  /// The endpoint is gone for everybody. Its running jobs are stopped and all its jobs removed afterwards
  /// (EndpointRemover).
  std::variant<Removed, FieldFaults, Unknown> remove(const EndpointId& id);

  /// Nothing is left of an endpoint that was removed, its records last: who dies before goes on with them.
  void forget(const EndpointId& id);

  /// Jobs are still accepted, and wait; those that run go on. Of every endpoint, those of the file too.
  std::variant<EndpointEntryPtr, Unknown> pause(const EndpointId& id, bool paused);

 private:
  void addFaults(FieldFaults& faults, const EndpointSpec& form, const std::string& templateBefore);
  std::optional<Record> usableTemplate(const std::string& id);
  std::int64_t templateRecord(const std::string& id);
  bool isThere(const EndpointId& id);
  EndpointEntryPtr shown(EndpointSpec form);

  RecordStore& records_;
  const SecretBox& box_;
  EndpointRegistry& registry_;
  const WallClock& wall_;
};

}  // namespace jobq
