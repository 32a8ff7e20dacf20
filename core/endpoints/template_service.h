// The verbs of templates (api.md, "Template API"; wire.md 4.1).
#pragma once

#include <string>
#include <string_view>
#include <variant>

#include "core/endpoints/endpoint_registry.h"
#include "core/endpoints/form.h"
#include "core/endpoints/template.h"
#include "jobq/record_store.h"

namespace jobq {

class SecretBox;

/// There is nothing of that id.
struct Unknown {};
struct Removed {};

/// Any thread. Reads are the registry's. StorageError passes through every verb; what a verb has answered is stored,
/// and known to the registry.
class TemplateService {
 public:
  TemplateService(RecordStore& records, const SecretBox& box, EndpointRegistry& registry)
      : records_(records), box_(box), registry_(registry) {}

  std::variant<Template, FieldFaults> create(std::string_view body);

  /// What changes something is a release for every endpoint that uses the template. What changes nothing is none: an
  /// update that is sent twice replaces no worker twice.
  std::variant<Template, FieldFaults, Unknown> update(const std::string& id, std::string_view body);

  /// FieldFaults: an endpoint uses it.
  std::variant<Removed, FieldFaults, Unknown> remove(const std::string& id);

 private:
  FieldFaults usersOf(const std::string& id);

  RecordStore& records_;
  const SecretBox& box_;
  EndpointRegistry& registry_;
};

}  // namespace jobq
