// The records of endpoints, templates and pauses, as the storage has them. Every node follows the records, decides the
// removal of templates (core/config/template.h), and raises the version of each endpoint whose template has changed
// (core/decisions/endpoints.md); the first node to see a change stores its effect.
#pragma once

#include <cstdint>
#include <exception>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "core/base/shared_map.h"
#include "core/config/endpoint_spec.h"
#include "core/config/template.h"
#include "jobq/job.h"
#include "jobq/log.h"
#include "jobq/record_store.h"

namespace jobq {

class SecretBox;

/// A template with the version of its record.
struct TemplateEntry {
  Template form;
  std::uint64_t record = 0;  ///< version of the stored record
};
using TemplateEntryPtr = std::shared_ptr<const TemplateEntry>;

inline const std::string& idOf(const TemplateEntry& entry) { return entry.form.id; }
using TemplateEntries = SharedMap<TemplateEntry, idOf>;

/// Used by one thread at a time.
class EndpointRecords {
 public:
  /// All arguments outlive the object.
  EndpointRecords(RecordStore& records, const SecretBox& box, Log& log) : records_(records), box_(box), log_(log) {}

  /// Reads all changes since the last call, by any node, and stores their effects: decided removals and raised
  /// versions. Adds each endpoint with a change to `touched`. Throws StorageError and std::bad_alloc; the changes read
  /// until then are in `touched` and are not read again, and the next call reads the others. After 100 rounds of
  /// changes and their effects the rest waits for the next call.
  void follow(std::set<EndpointId>& touched);

  /// Returns the templates that exist, by id.
  const TemplateEntries& templates() const { return templates_; }

  /// Returns the endpoint as stored, with `env` and `image` empty, or null if no record has the id.
  const EndpointSpec* find(const EndpointId& id) const;

  bool isPaused(const EndpointId& id) const { return paused_.contains(id); }

 private:
  struct StoredEndpoint {
    EndpointSpec spec;
    std::uint64_t record = 0;  ///< version of the stored record
  };

  void set(const EndpointId& id, StoredEndpoint stored);
  void erase(const EndpointId& id);
  void forgetUser(const std::string& templateId, const EndpointId& user);
  void followTemplates(std::set<EndpointId>& touched);
  void followEndpoints(std::set<EndpointId>& touched);
  void followPauses(std::set<EndpointId>& touched);
  bool decideRemovals();
  bool releaseTemplates();
  void store(const std::vector<StoredEndpoint>& raised);
  void logDamage(const std::exception& error) const;

  RecordStore& records_;
  const SecretBox& box_;
  Log& log_;
  TemplateEntries templates_;
  std::map<EndpointId, StoredEndpoint> endpoints_;
  std::map<std::string, std::set<EndpointId>> users_;  // the endpoints by template
  std::set<EndpointId> unreleased_;                    // with a change, also of the template, since releaseTemplates()
  std::set<EndpointId> paused_;
  std::set<std::string> unwanted_;  // templates to remove if no endpoint uses them
  std::set<std::string> gone_;      // removed templates with a record left over
  std::uint64_t templatesSeen_ = 0;
  std::uint64_t endpointsSeen_ = 0;
  std::uint64_t pausesSeen_ = 0;
};

}  // namespace jobq
