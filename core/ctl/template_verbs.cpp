// `jobqctl template ...`: what workers are made of (api.md, "Template API").
#include "core/ctl/form_options.h"
#include "core/ctl/reply_reader.h"
#include "core/ctl/table_print.h"
#include "core/ctl/verbs.h"

namespace jobq::ctl {
namespace {

constexpr const char* kTemplatesPath = "/v1/templates";

std::string templatePath(const Call& call) {
  return std::string(kTemplatesPath) + "/" + ApiClient::segment(call.arguments.words[0]);
}

ExitCode printTemplate(const Call& call, const std::string& answer) {
  if (call.json) {
    printAnswer(answer, call.out);
  } else {
    printMembers(answer, {}, call.out);
  }
  return ExitCode::ok;
}

}  // namespace

const std::vector<FieldOption>& templateChanges() {
  static const std::vector<FieldOption> kFields = {
      {"name", "NAME", "its name, which no other template has", "name"},
      {"image", "IMAGE", "what runs: plugin/HANDLER, or the image of remote workers", "imageName"},
      {"env", "NAME=VALUE", "a variable of its workers; an update replaces all of them", "env", FieldKind::map},
      {"entrypoint", "WORD", "a word of the image's entry point", "dockerEntrypoint", FieldKind::texts},
      {"start-cmd", "WORD", "a word of the image's start command", "dockerStartCmd", FieldKind::texts},
      {"port", "PORT/PROTOCOL", "an open port, like 8888/http or 22/tcp", "ports", FieldKind::texts},
      {"container-disk", "GB", "size of the container's disk", "containerDiskInGb", FieldKind::whole},
      {"volume", "GB", "size of the volume", "volumeInGb", FieldKind::whole},
      {"mount-path", "PATH", "where the volume is seen", "volumeMountPath"},
      {"registry-auth", "ID", "what opens the image's registry", "containerRegistryAuthId"},
      {"readme", "TEXT", "its description, in Markdown", "readme"},
      {"public", "true|false", "whether others may see it", "isPublic", FieldKind::flag},
  };
  return kFields;
}

const std::vector<FieldOption>& templateFields() {
  static const std::vector<FieldOption> kFields = [] {
    std::vector<FieldOption> fields = templateChanges();
    fields.push_back({"category", "NVIDIA|AMD|CPU", "its kind, for good", "category"});
    fields.push_back({"serverless", "true|false", "for workers, not Pods; for good", "isServerless", FieldKind::flag});
    return fields;
  }();
  return kFields;
}

ExitCode listTemplates(const Call& call) {
  const std::string answer = call.api.get(kTemplatesPath);
  if (call.json) {
    printAnswer(answer, call.out);
    return ExitCode::ok;
  }
  Table table({"ID", "NAME", "IMAGE", "CATEGORY", "DISK GB", "VOLUME GB", "SERVERLESS", "PUBLIC", "RUNTIME MIN"});
  for (const auto& form : objects(readArray(answer))) {
    table.add({cell(*form, "id"), cell(*form, "name"), cell(*form, "imageName"), cell(*form, "category"),
               cell(*form, "containerDiskInGb"), cell(*form, "volumeInGb"), cell(*form, "isServerless"),
               cell(*form, "isPublic"), cell(*form, "runtimeInMin")});
  }
  table.print(call.out);
  return ExitCode::ok;
}

ExitCode showTemplate(const Call& call) { return printTemplate(call, call.api.get(templatePath(call))); }

ExitCode createTemplate(const Call& call) {
  return printTemplate(call, call.api.post(kTemplatesPath, formBody(call.arguments, templateFields())));
}

ExitCode updateTemplate(const Call& call) {
  return printTemplate(call,
                       call.api.post(templatePath(call) + "/update", formBody(call.arguments, templateChanges())));
}

ExitCode deleteTemplate(const Call& call) {
  const std::string answer = call.api.remove(templatePath(call));
  if (call.json) {
    printAnswer(answer, call.out);
  } else {
    call.out << "The template " << harmless(call.arguments.words[0]) << " is deleted.\n";
  }
  return ExitCode::ok;
}

}  // namespace jobq::ctl
