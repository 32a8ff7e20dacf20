#include "core/endpoints/template_service.h"

#include <utility>

#include "core/base/ids.h"
#include "core/base/secret_box.h"
#include "core/base/words.h"
#include "core/endpoints/endpoint_record.h"
#include "core/model/image.h"

namespace jobq {
namespace {

constexpr const char* kTemplateNoun = "a template";

Failure nameTaken(const Template& form, const std::string& byId) {
  return invalid("name " + clipped(form.name) + " is the name of template " + byId +
                     " already: choose another, or change that template",
                 "name");
}

Failure noTemplate(const std::string& id) { return notFound("there is no template " + clipped(id) + ": check the id"); }

// Reads a request into the form. A command with a NUL is refused here and not by the field's reader: the reader serves
// stored templates too, and one of an older server may have such a command, and keep it.
FieldFaults readRequest(Template& form, std::string_view body, bool creating) {
  const Template before = form;
  FieldFaults faults = readForm(form, body, templateFields(), kTemplateNoun, creating);
  for (FieldFault& fault : faultyCommands(form, before)) faults.push_back(std::move(fault));
  return faults;
}

Failure wrong(FieldFaults faults) { return {Failure::Kind::invalid, std::move(faults)}; }

}  // namespace

Result<Template> TemplateService::create(std::string_view body) {
  Template form;
  FieldFaults faults = readRequest(form, body, true);
  addAbsent(faults, form, templateFields());
  if (!faults.empty()) return wrong(std::move(faults));
  form.id = newName(kTemplateIdLetters);
  const CreateResult result = records_.create(toRecord(form, box_));
  if (const auto* taken = std::get_if<NameTaken>(&result)) return nameTaken(form, taken->byId);
  registry_.tryRefresh();
  return form;
}

// A template may be meant for another server, so its image is checked when an endpoint uses the template.
void TemplateService::addImageFault(FieldFaults& faults, const Template& form) {
  const auto good = checkRemoteImage(form.imageName, registry_.resolver().localImages());
  if (good || checkUnused(form.id)) return;
  faults.push_back({"imageName", "imageName " + clipped(form.imageName) + " " + good.failure().message()});
}

Result<Template> TemplateService::update(const std::string& id, std::string_view body) {
  for (;;) {
    const auto record = records_.find(kTemplateKind, id);
    if (!record) return noTemplate(id);
    const Template before = templateOf(*record, box_);
    if (isGone(before)) return noTemplate(id);
    Template form = before;
    form.removal.clear();
    FieldFaults faults = readRequest(form, body, false);
    if (form.imageName != before.imageName && !isFaulty(faults, "imageName")) addImageFault(faults, form);
    if (!faults.empty()) return wrong(std::move(faults));
    if (toJson(form) == toJson(before)) return form;
    const UpdateResult result = records_.update(toRecord(form, box_), record->version);
    if (const auto* taken = std::get_if<NameTaken>(&result)) return nameTaken(form, taken->byId);
    if (!std::holds_alternative<Stored>(result)) continue;  // another writer was faster, and its changes are kept
    registry_.tryRefresh();
    return form;
  }
}

// Fails, naming an endpoint, if an endpoint uses the template.
Result<void> TemplateService::checkUnused(const std::string& id) {
  for (const Record& record : records_.list(kEndpointKind)) {
    const EndpointSpec spec = endpointSpecOf(record, box_);
    if (spec.templateId != id || spec.deleting) continue;
    return invalid("template " + id + " is used by endpoint " + spec.id +
                   ": delete the endpoint, or give it another template first");
  }
  return {};
}

// Follows the protocol at kRemovalAsked.
Result<void> TemplateService::remove(const std::string& id) {
  for (;;) {
    const auto record = records_.find(kTemplateKind, id);
    if (!record) return noTemplate(id);
    Template form = templateOf(*record, box_);
    if (isGone(form)) return noTemplate(id);
    if (auto unused = checkUnused(id); !unused) return unused;
    form.removal = kRemovalAsked;
    if (!std::holds_alternative<Stored>(records_.update(toRecord(form, box_), record->version))) continue;
    registry_.refresh();
    if (!registry_.findTemplate(id)) return {};
    // The template was kept for an endpoint, which the next round names, or changed meanwhile.
  }
}

}  // namespace jobq
