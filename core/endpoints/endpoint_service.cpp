#include "core/endpoints/endpoint_service.h"

#include "core/base/clock.h"
#include "core/base/ids.h"
#include "core/base/secret_box.h"
#include "core/base/words.h"
#include "core/endpoints/endpoint_maker.h"
#include "core/endpoints/endpoint_record.h"
#include "jobq/error.h"

namespace jobq {
namespace {

constexpr const char* kEndpointNoun = "an endpoint";
constexpr std::size_t kEndpointIdLetters = 14;

Failure fixedByFile(const EndpointId& id) {
  return invalid("endpoint " + id + " comes from the configuration file: change it there, and restart the server");
}

Failure noEndpoint(const EndpointId& id) { return notFound("there is no endpoint " + clipped(id) + ": check the id"); }

Failure idTaken(const EndpointId& id) {
  return invalid("id " + id + " is the id of an endpoint already: choose another one, or change that endpoint", "id");
}

FieldFault templateGone(const std::string& id) {
  return {"templateId", "templateId " + clipped(id) + " is not a template: create the template first, or name another"};
}

}  // namespace

// Adds the faults known before the endpoint is stored. An endpoint with a template unable to run is refused; a template
// unable to run later becomes a halted release.
void EndpointService::addFaults(FieldFaults& faults, const EndpointSpec& spec, const std::string& templateBefore) {
  addCrossFaults(faults, spec);
  if (!spec.templateId.empty() && spec.templateId != templateBefore && !isFaulty(faults, "templateId")) {
    const auto record = usableTemplate(spec.templateId);
    if (!record) {
      faults.push_back(templateGone(spec.templateId));
    } else if (const auto good = checkImage(templateOf(*record, box_).imageName, registry_.resolver()); !good) {
      faults.push_back(
          {"templateId", "templateId " + spec.templateId + " cannot be used: " + good.failure().message()});
    }
  }
  if (!spec.image.empty() && spec.templateId.empty() && !isFaulty(faults, "imageName")) {
    if (const auto good = checkImage(spec.image, registry_.resolver()); !good) {
      faults.push_back(
          {"imageName", "imageName " + clipped(spec.image) + " cannot be used: " + good.failure().message()});
    }
  }
  if (spec.filters && !isFaulty(faults, "filters")) {
    if (const auto good = checkFilters(*spec.filters, registry_.resolver()); !good) {
      faults.push_back({"filters", "filters cannot be used: " + good.failure().message()});
    }
  }
  if (isFaulty(faults, "queuePolicy")) return;
  if (const auto policy = registry_.resolver().policy(spec.queuePolicy); !policy) {
    faults.push_back(
        {"queuePolicy", "queuePolicy " + clipped(spec.queuePolicy) + " cannot be used: " + policy.failure().message()});
  }
}

// Returns nullopt also for a template with a requested removal, because no further endpoint may use the template
// (kRemovalAsked).
std::optional<Record> EndpointService::usableTemplate(const std::string& id) {
  auto record = records_.find(kTemplateKind, id);
  if (record && !templateOf(*record, box_).removal.empty()) return std::nullopt;
  return record;
}

std::uint64_t EndpointService::templateRecord(const std::string& id) {
  const auto record = usableTemplate(id);
  return record ? record->version : 0;
}

// Returns the endpoint as stored, even if the registry lacks the new version because the storage fails, or has removed
// the endpoint.
EndpointEntryPtr EndpointService::shown(EndpointSpec spec) {
  const bool known = registry_.tryRefresh();
  const auto entry = registry_.entry(spec.id);
  if (known && entry) return entry;
  const auto made = registry_.findTemplate(spec.templateId);
  if (made) spec.env = made->form.env;
  return std::make_shared<EndpointEntry>(EndpointEntry{std::move(spec), entry ? entry->endpoint : nullptr});
}

Result<EndpointEntryPtr> EndpointService::create(std::string_view body) {
  EndpointSpec spec;
  FieldFaults faults = readForm(spec, body, endpointFields(), kEndpointNoun, true);
  addFaults(faults, spec, "");
  if (!faults.empty()) return Failure{Failure::Kind::invalid, std::move(faults)};
  if (spec.id.empty()) spec.id = newName(kEndpointIdLetters);
  if (registry_.entry(spec.id) || records_.find(kEndpointKind, spec.id)) return idTaken(spec.id);
  const std::string made = spec.templateId.empty() ? newName(kTemplateIdLetters) : "";
  if (!made.empty()) spec.templateId = made;
  spec.createdAt = toIso8601(wall_.now());
  try {
    if (!made.empty()) {
      if (const auto good = makeTemplate(spec); !good) return good.failure();
    }
    return store(spec, made);
  } catch (const StorageError&) {
    // On 503 the client sends the request again and wants one endpoint.
    forgetCreation(spec, made);
    throw;
  }
}

// Stores the new endpoint. `made` is the template that was made for the endpoint, if any. The template may go
// meanwhile.
Result<EndpointEntryPtr> EndpointService::store(EndpointSpec spec, const std::string& made) {
  spec.templateRecord = templateRecord(spec.templateId);
  if (!std::holds_alternative<Stored>(records_.create(toRecord(spec, box_)))) {
    if (!made.empty()) records_.remove(kTemplateKind, made);
    return idTaken(spec.id);
  }
  if (usableTemplate(spec.templateId)) return shown(std::move(spec));
  records_.remove(kEndpointKind, spec.id);
  return Failure{Failure::Kind::invalid, {templateGone(spec.templateId)}};
}

// Makes the template `templateId` of an endpoint that is created with an image.
Result<void> EndpointService::makeTemplate(EndpointSpec& spec) {
  Template form;
  form.id = spec.templateId;
  form.name = spec.id;
  form.imageName = std::exchange(spec.image, {});
  const CreateResult result = records_.create(toRecord(form, box_));
  if (const auto* taken = std::get_if<NameTaken>(&result)) {
    const auto record = usableTemplate(taken->byId);
    if (record) form.id = taken->byId;
    // A creation that failed may have left the template.
    if (record && toJson(templateOf(*record, box_)) == toJson(form)) {
      spec.templateId = taken->byId;
      return {};
    }
    return invalid("imageName needs a template with the name " + spec.id + ", which template " + taken->byId +
                       " has already: send templateId " + taken->byId + " instead",
                   "imageName");
  }
  return {};
}

// Removes what a failed creation may have stored, as far as the storage can. Another creation may have the id by now.
void EndpointService::forgetCreation(const EndpointSpec& spec, const std::string& made) {
  const auto record = records_.find(kEndpointKind, spec.id);
  if (record) {
    const EndpointSpec stored = endpointSpecOf(*record, box_);
    if (stored.createdAt != spec.createdAt || stored.templateId != spec.templateId) return;
    records_.remove(kEndpointKind, spec.id);
  }
  if (!made.empty()) records_.remove(kTemplateKind, made);
}

Result<EndpointEntryPtr> EndpointService::update(const EndpointId& id, std::string_view body) {
  for (;;) {
    const auto present = registry_.entry(id);
    if (present && present->spec.isStatic) return fixedByFile(id);
    const auto record = records_.find(kEndpointKind, id);
    if (!record) return noEndpoint(id);
    EndpointSpec before = endpointSpecOf(*record, box_);
    if (before.deleting) return noEndpoint(id);
    before.paused = present && present->spec.paused;  // the record of the endpoint does not hold the pause
    EndpointSpec spec = before;
    FieldFaults faults = readForm(spec, body, endpointFields(), kEndpointNoun, false);
    addFaults(faults, spec, before.templateId);
    if (!faults.empty()) return Failure{Failure::Kind::invalid, std::move(faults)};
    if (needsRelease(before, spec)) {
      ++spec.version;
      spec.templateRecord = templateRecord(spec.templateId);
    }
    if (writeForm(spec, endpointFields(), true) == writeForm(before, endpointFields(), true)) return shown(spec);
    const UpdateResult result = records_.update(toRecord(spec, box_), record->version);
    const auto* stored = std::get_if<Stored>(&result);
    if (stored == nullptr) continue;  // another writer was faster, and its changes are kept
    if (spec.templateId == before.templateId || usableTemplate(spec.templateId)) return shown(spec);
    EndpointSpec back = before;
    back.version = spec.version + 1;
    (void)records_.update(toRecord(back, box_), stored->version);
    registry_.tryRefresh();
    return Failure{Failure::Kind::invalid, {templateGone(spec.templateId)}};
  }
}

Result<void> EndpointService::remove(const EndpointId& id) {
  for (;;) {
    const auto present = registry_.entry(id);
    if (present && present->spec.isStatic) return fixedByFile(id);
    const auto record = records_.find(kEndpointKind, id);
    if (!record) return noEndpoint(id);
    EndpointSpec spec = endpointSpecOf(*record, box_);
    if (spec.deleting) return noEndpoint(id);
    spec.deleting = true;
    if (!std::holds_alternative<Stored>(records_.update(toRecord(spec, box_), record->version))) continue;
    registry_.tryRefresh();
    return {};
  }
}

void EndpointService::forget(const EndpointId& id) {
  const auto record = records_.find(kEndpointKind, id);
  if (record && !endpointSpecOf(*record, box_).deleting) return;  // another node was faster, and the id is in use again
  records_.remove(kPauseKind, id);
  records_.remove(kEndpointKind, id);
  registry_.tryRefresh();
}

Result<EndpointEntryPtr> EndpointService::pause(const EndpointId& id, bool paused) {
  const auto present = registry_.entry(id);
  if (!present) return noEndpoint(id);
  if (paused) {
    (void)records_.create({kPauseKind, id, "", "{}", 0, {}});  // the name is taken if the endpoint is paused already
  } else {
    records_.remove(kPauseKind, id);
  }
  EndpointSpec spec = present->spec;
  spec.paused = paused;
  if (spec.isStatic || isThere(id)) return shown(std::move(spec));
  records_.remove(kPauseKind, id);  // the endpoint is gone, and no later call would remove its pause
  return noEndpoint(id);
}

bool EndpointService::isThere(const EndpointId& id) {
  const auto record = records_.find(kEndpointKind, id);
  return record && !endpointSpecOf(*record, box_).deleting;
}

}  // namespace jobq
