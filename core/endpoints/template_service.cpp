#include "core/endpoints/template_service.h"

#include "core/base/ids.h"
#include "core/base/secret_box.h"
#include "core/base/words.h"
#include "core/endpoints/endpoint_record.h"

namespace jobq {
namespace {

constexpr const char* kTemplateNoun = "a template";
constexpr std::size_t kTemplateIdLetters = 10;

FieldFaults nameTaken(const Template& form, const std::string& byId) {
  return {{"name", "name " + clipped(form.name) + " is the name of template " + byId +
                       " already: choose another, or change that template"}};
}

}  // namespace

std::variant<Template, FieldFaults> TemplateService::create(std::string_view body) {
  Template form;
  FieldFaults faults = readForm(form, body, templateFields(), kTemplateNoun, true);
  for (const FieldFault& missing : missingFields(form)) {
    if (!isFaulty(faults, missing.field)) faults.push_back(missing);
  }
  if (!faults.empty()) return faults;
  form.id = newName(kTemplateIdLetters);
  const CreateResult result = records_.create(toRecord(form, box_));
  if (const auto* taken = std::get_if<NameTaken>(&result)) return nameTaken(form, taken->byId);
  registry_.showChange();
  return form;
}

std::variant<Template, FieldFaults, Unknown> TemplateService::update(const std::string& id, std::string_view body) {
  for (;;) {
    const auto record = records_.find(kTemplateKind, id);
    if (!record) return Unknown{};
    const Template before = templateOf(*record, box_);
    if (isGone(before)) return Unknown{};
    Template form = before;
    form.removal.clear();
    FieldFaults faults = readForm(form, body, templateFields(), kTemplateNoun, false);
    if (!faults.empty()) return faults;
    if (toJson(form) == toJson(before)) return form;
    const UpdateResult result = records_.update(toRecord(form, box_), record->version);
    if (const auto* taken = std::get_if<NameTaken>(&result)) return nameTaken(form, taken->byId);
    if (!std::holds_alternative<Stored>(result)) continue;  // another writer was faster, and its changes are kept
    registry_.showChange();
    return form;
  }
}

FieldFaults TemplateService::usersOf(const std::string& id) {
  FieldFaults faults;
  for (const Record& record : records_.list(kEndpointKind)) {
    const EndpointSpec spec = endpointSpecOf(record, box_);
    if (spec.templateId != id || spec.deleting) continue;
    faults.push_back({"", "template " + id + " is used by endpoint " + spec.id +
                              ": delete the endpoint, or give it another template first"});
    break;
  }
  return faults;
}

// Follows the protocol at kRemovalAsked.
std::variant<Removed, FieldFaults, Unknown> TemplateService::remove(const std::string& id) {
  for (;;) {
    const auto record = records_.find(kTemplateKind, id);
    if (!record) return Unknown{};
    Template form = templateOf(*record, box_);
    if (isGone(form)) return Unknown{};
    FieldFaults users = usersOf(id);
    if (!users.empty()) return users;
    form.removal = kRemovalAsked;
    if (!std::holds_alternative<Stored>(records_.update(toRecord(form, box_), record->version))) continue;
    registry_.refresh();
    if (!registry_.findTemplate(id)) return Removed{};
    // The template was kept for an endpoint, which the next round names, or changed meanwhile.
  }
}

}  // namespace jobq
