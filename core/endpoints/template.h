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

/// Defaults as in the text; what the text leaves open is in wire.md 4.1 and core/decisions/endpoints.md.
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
  std::string removal;            ///< of the record only: how far its removal has come, below
};

inline constexpr const char* kTemplateKind = "template";

// Two records cannot change in one step, so that both who removes a template and who brings it into use look again
// afterwards. A removal that is asked for is decided by a refresh() of the registry that finds it after everybody who
// may have brought the template into use before; who does so later finds it asked for, and steps back. Each step is
// conditional, so that of several who decide, on whatever node, one does; and who dies in between leaves the rest to
// the next refresh().
inline constexpr const char* kRemovalAsked = "asked";      ///< nobody may begin to use it
inline constexpr const char* kRemovalDecided = "decided";  ///< gone for everybody; its record follows

/// There is no such template any more.
inline bool isGone(const Template& form) { return form.removal == kRemovalDecided; }

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
