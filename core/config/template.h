// A template: a named configuration from which the workers of endpoints are made (core/http/API.md, "Template").
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/config/form.h"
#include "jobq/record_store.h"
#include "jobq/worker_launcher.h"

namespace jobq {

class SecretBox;

/// The default values are part of the API (core/http/API.md, "Template"). Further choices: core/decisions/endpoints.md.
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
  std::int64_t runtimeInMin = 0;  ///< minutes of work of the template's workers; stored in another record
  std::string sealed;             ///< only in the record
  std::string removal;            ///< only in the record: progress of the removal, see below
};

inline constexpr const char* kTemplateKind = "template";
/// Letters of the id of a template.
inline constexpr std::size_t kTemplateIdLetters = 10;

// Protocol of a removal. Two records cannot change in one step, so the removal of a template and each new use of the
// template check again after the write. A refresh() of the registry decides a requested removal after reading all
// endpoints that began to use the template before the request; a later use finds the request and withdraws. Each step
// is conditional, so only one of several nodes decides, and after a crash in between the next refresh() continues.
inline constexpr const char* kRemovalAsked = "asked";      ///< no further endpoint may use the template
inline constexpr const char* kRemovalDecided = "decided";  ///< gone for all readers; the record is removed next

/// Returns how a launcher runs workers of the template.
ContainerSpec containerOf(const Template& form);

/// Returns true if the template exists no more.
inline bool isGone(const Template& form) { return form.removal == kRemovalDecided; }

/// Returns the table of all fields, in the order of responses; constant.
const FormFields<Template>& templateFields();

/// Returns a fault for each of the two commands that is not the one of `before` and has a word with a NUL: no program
/// gets such an argument.
FieldFaults faultyCommands(const Template& form, const Template& before);

/// Returns the record, with `env` sealed.
Record toRecord(const Template& form, const SecretBox& box);

/// Returns the template of a record, with `env` opened. Pure; any thread. Throws Error if the record is damaged or was
/// sealed with another secret.key.
Template templateOf(const Record& record, const SecretBox& box);

/// Return the template as in responses of the API.
std::string toJson(const Template& form);
std::string toJson(Template form, std::int64_t runtimeInMin);

}  // namespace jobq
