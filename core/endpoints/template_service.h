// The operations on templates (core/http/API.md, "Template API").
#pragma once

#include <string>
#include <string_view>

#include "core/base/result.h"
#include "core/config/form.h"
#include "core/config/template.h"
#include "core/endpoints/endpoint_registry.h"
#include "jobq/record_store.h"

namespace jobq {

class SecretBox;

/// Any thread may call all functions. Every operation may throw StorageError. An answered operation is stored. The
/// registry, which serves all reads, knows the change too, or takes in the change with a later refresh() if the storage
/// fails in between. A failure has every fault of the body by field, or says that no template has the id.
class TemplateService {
 public:
  /// All arguments outlive the service.
  TemplateService(RecordStore& records, const SecretBox& box, EndpointRegistry& registry)
      : records_(records), box_(box), registry_(registry) {}

  /// Creates a template from the JSON body of a request. Returns the template.
  Result<Template> create(std::string_view body);

  /// An update with a change makes a release for every endpoint using the template. An update without a change makes no
  /// release, so an update sent twice does not replace workers twice.
  Result<Template> update(const std::string& id, std::string_view body);

  /// Fails also if an endpoint uses the template.
  Result<void> remove(const std::string& id);

 private:
  void addImageFault(FieldFaults& faults, const Template& form);
  Result<void> checkUnused(const std::string& id);

  RecordStore& records_;
  const SecretBox& box_;
  EndpointRegistry& registry_;
};

}  // namespace jobq
