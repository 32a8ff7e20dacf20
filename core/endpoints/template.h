// A template: a named configuration from which the workers of endpoints are made (api.md, "Template").
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/endpoints/form.h"
#include "jobq/record_store.h"

namespace jobq {

class SecretBox;

/// Defaults as in the text; what the text leaves open is in wire.md 4.1 and core/DECISIONS.md.
struct Template {
  std::string id;
  std::string name;
  std::string imageName;
  std::string category = "NVIDIA";
  std::int64_t containerDiskInGb = 50;
  std::string containerRegistryAuthId;
  std::vector<std::string> dockerEntrypoint;
  std::vector<std::string> dockerStartCmd;
  std::map<std::string, std::string> env;  ///< sealed in the record
  bool isPublic = false;
  bool isServerless = false;
  std::vector<std::string> ports{"8888/http", "22/tcp"};
  std::string readme;
  std::int64_t volumeInGb = 20;
  std::string volumeMountPath = "/workspace";
  std::int64_t runtimeInMin = 0;  ///< minutes that workers of the template ran; a record of its own
  std::string sealed;             ///< of the record only
};

inline constexpr const char* kTemplateKind = "template";

const FormFields<Template>& templateFields();

/// Faults of a template that has to be complete: what is missing.
FieldFaults missingFields(const Template& form);

/// The record, its env sealed.
Record toRecord(const Template& form, const SecretBox& box);

/// Throws Error when the record is damaged or was sealed with another secret.key.
Template templateOf(const Record& record, const SecretBox& box);

/// As the API tells it.
std::string toJson(const Template& form);
std::string toJson(Template form, std::int64_t runtimeInMin);

}  // namespace jobq
