#include "core/endpoints/endpoint_service.h"

#include "core/base/clock.h"
#include "core/base/ids.h"
#include "core/base/secret_box.h"
#include "core/base/words.h"

namespace jobq {
namespace {

constexpr const char* kEndpointNoun = "an endpoint";
constexpr std::size_t kEndpointIdLetters = 14;

FieldFaults fixedByFile(const EndpointId& id) {
  return {{"", "endpoint " + id + " comes from the configuration file: change it there, and restart the server"}};
}

FieldFault templateGone(const std::string& id) {
  return {"templateId", "templateId " + clipped(id) + " is not a template: create the template first, or name another"};
}

}  // namespace

// Adds the faults known before the form is stored. An endpoint with a template unable to run is refused; a template
// unable to run later becomes a halted release.
void EndpointService::addFaults(FieldFaults& faults, const EndpointSpec& form, const std::string& templateBefore) {
  addCrossFaults(faults, form);
  if (!form.templateId.empty() && form.templateId != templateBefore && !isFaulty(faults, "templateId")) {
    const auto record = usableTemplate(form.templateId);
    if (!record) {
      faults.push_back(templateGone(form.templateId));
    } else if (const auto fault = imageFault(templateOf(*record, box_).imageName, registry_.resolver())) {
      faults.push_back({"templateId", "templateId " + form.templateId + " cannot be used: " + *fault});
    }
  }
  if (form.filters && !isFaulty(faults, "filters")) {
    if (const auto fault = filterFault(*form.filters, registry_.resolver())) {
      faults.push_back({"filters", "filters cannot be used: " + *fault});
    }
  }
  if (isFaulty(faults, "queuePolicy")) return;
  try {
    (void)registry_.resolver().policy(form.queuePolicy);
  } catch (const ConfigError& error) {
    faults.push_back({"queuePolicy", "queuePolicy " + clipped(form.queuePolicy) + " cannot be used: " + error.what()});
  }
}

// Returns nullopt also for a template with a requested removal, because no further endpoint may use the template
// (kRemovalAsked).
std::optional<Record> EndpointService::usableTemplate(const std::string& id) {
  auto record = records_.find(kTemplateKind, id);
  if (record && !templateOf(*record, box_).removal.empty()) return std::nullopt;
  return record;
}

std::int64_t EndpointService::templateRecord(const std::string& id) {
  const auto record = usableTemplate(id);
  return record ? static_cast<std::int64_t>(record->version) : 0;
}

// Returns the endpoint as stored, even if the registry lacks the new version because the storage fails, or has removed
// the endpoint.
EndpointEntryPtr EndpointService::shown(EndpointSpec form) {
  const bool known = registry_.showChange();
  const auto entry = registry_.entry(form.id);
  if (known && entry) return entry;
  const auto made = registry_.findTemplate(form.templateId);
  if (made) form.env = made->form.env;
  return std::make_shared<EndpointEntry>(EndpointEntry{std::move(form), entry ? entry->endpoint : nullptr});
}

std::variant<EndpointEntryPtr, FieldFaults> EndpointService::create(std::string_view body) {
  EndpointSpec form;
  FieldFaults faults = readForm(form, body, endpointFields(), kEndpointNoun, true);
  addFaults(faults, form, "");
  if (!faults.empty()) return faults;
  form.id = newName(kEndpointIdLetters);
  form.createdAt = toIso8601(wall_.now());
  form.templateRecord = templateRecord(form.templateId);
  if (!std::holds_alternative<Stored>(records_.create(toRecord(form, box_)))) {
    throw StorageError("the new endpoint's id is taken: try again");
  }
  try {
    if (usableTemplate(form.templateId)) return shown(form);
  } catch (const StorageError&) {
    // On 503 the client sends the request again and wants one endpoint.
    records_.remove(kEndpointKind, form.id);
    throw;
  }
  records_.remove(kEndpointKind, form.id);
  return FieldFaults{templateGone(form.templateId)};
}

std::variant<EndpointEntryPtr, FieldFaults, Unknown> EndpointService::update(const EndpointId& id,
                                                                             std::string_view body) {
  for (;;) {
    const auto present = registry_.entry(id);
    if (present && present->form.isStatic) return fixedByFile(id);
    const auto record = records_.find(kEndpointKind, id);
    if (!record) return Unknown{};
    EndpointSpec before = endpointSpecOf(*record, box_);
    if (before.deleting) return Unknown{};
    before.paused = present && present->form.paused;  // the record of the endpoint does not hold the pause
    EndpointSpec form = before;
    FieldFaults faults = readForm(form, body, endpointFields(), kEndpointNoun, false);
    addFaults(faults, form, before.templateId);
    if (!faults.empty()) return faults;
    const bool another = form.templateId != before.templateId;
    if (another) {
      ++form.version;
      form.templateRecord = templateRecord(form.templateId);
    }
    if (writeForm(form, endpointFields(), true) == writeForm(before, endpointFields(), true)) return shown(form);
    const UpdateResult result = records_.update(toRecord(form, box_), record->version);
    const auto* stored = std::get_if<Stored>(&result);
    if (stored == nullptr) continue;  // another writer was faster, and its changes are kept
    if (!another || usableTemplate(form.templateId)) return shown(form);
    EndpointSpec back = before;
    back.version = form.version + 1;
    (void)records_.update(toRecord(back, box_), stored->version);
    registry_.showChange();
    return FieldFaults{templateGone(form.templateId)};
  }
}

std::variant<Removed, FieldFaults, Unknown> EndpointService::remove(const EndpointId& id) {
  for (;;) {
    const auto present = registry_.entry(id);
    if (present && present->form.isStatic) return fixedByFile(id);
    const auto record = records_.find(kEndpointKind, id);
    if (!record) return Unknown{};
    EndpointSpec form = endpointSpecOf(*record, box_);
    if (form.deleting) return Unknown{};
    form.deleting = true;
    if (!std::holds_alternative<Stored>(records_.update(toRecord(form, box_), record->version))) continue;
    registry_.showChange();
    return Removed{};
  }
}

void EndpointService::forget(const EndpointId& id) {
  records_.remove(kPauseKind, id);
  records_.remove(kEndpointKind, id);
  registry_.showChange();
}

std::variant<EndpointEntryPtr, Unknown> EndpointService::pause(const EndpointId& id, bool paused) {
  const auto present = registry_.entry(id);
  if (!present) return Unknown{};
  if (paused) {
    (void)records_.create({kPauseKind, id, "", "{}", 0, {}});  // the name is taken if the endpoint is paused already
  } else {
    records_.remove(kPauseKind, id);
  }
  EndpointSpec form = present->form;
  form.paused = paused;
  if (form.isStatic || isThere(id)) return shown(std::move(form));
  records_.remove(kPauseKind, id);  // the endpoint is gone, and no later call would remove its pause
  return Unknown{};
}

bool EndpointService::isThere(const EndpointId& id) {
  const auto record = records_.find(kEndpointKind, id);
  return record && !endpointSpecOf(*record, box_).deleting;
}

}  // namespace jobq
