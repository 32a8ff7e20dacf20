// `jobqctl template ...`: shows, makes, changes and deletes templates (core/http/API.md, "Template API").
#include "core/cli/answer_reader.h"
#include "core/cli/commands.h"
#include "core/cli/field_options.h"
#include "core/client/table_print.h"

namespace jobq::cli {
namespace {

constexpr const char* kTemplatesPath = "/v1/templates";

std::string templatePath(const Invocation& invocation) {
  return std::string(kTemplatesPath) + "/" + ApiClient::segment(invocation.arguments.words[0]);
}

ExitCode printTemplate(const Invocation& invocation, const std::string& answer) {
  if (!printIfJson(invocation, answer)) printMembers(answer, {}, invocation.out);
  return ExitCode::ok;
}

}  // namespace

const std::vector<FieldOption>& templateChanges() {
  static const std::vector<FieldOption> kFields = {
      {"name", "NAME", "a name that no other template has", "name"},
      {"image", "IMAGE", "plugin/HANDLER or lua/SCRIPT; remote workers take the jobs of any other name", "imageName"},
      {"env", "NAME=VALUE", "a variable of the workers; an update replaces all variables", "env", FieldKind::map},
      {"entrypoint", "WORD", "a word of the image's entry point", "dockerEntrypoint", FieldKind::texts},
      {"start-cmd", "WORD", "a word of the image's start command", "dockerStartCmd", FieldKind::texts},
      {"port", "PORT/PROTOCOL", "an open port, like 8888/http or 22/tcp", "ports", FieldKind::texts},
      {"container-disk", "GB", "size of the container's disk", "containerDiskInGb", FieldKind::whole},
      {"volume", "GB", "size of the volume", "volumeInGb", FieldKind::whole},
      {"mount-path", "PATH", "where the volume is mounted", "volumeMountPath"},
      {"registry-auth", "ID", "the credentials for the image's registry", "containerRegistryAuthId"},
      {"readme", "TEXT", "the template's description, in Markdown", "readme"},
      {"public", "true|false", "whether other users may see the template", "isPublic", FieldKind::flag},
  };
  return kFields;
}

const std::vector<FieldOption>& templateFields() {
  static const std::vector<FieldOption> kFields = [] {
    std::vector<FieldOption> fields = templateChanges();
    fields.push_back({"category", "NVIDIA|AMD|CPU", "the kind of machine; cannot be changed later", "category"});
    fields.push_back({"serverless", "true|false", "for workers, not Pods; cannot be changed later", "isServerless",
                      FieldKind::flag});
    return fields;
  }();
  return kFields;
}

ExitCode listTemplates(const Invocation& invocation) {
  const std::string answer = getList(invocation.api, kTemplatesPath);
  if (printIfJson(invocation, answer)) return ExitCode::ok;
  Table table({"ID", "NAME", "IMAGE", "CATEGORY", "DISK GB", "VOLUME GB", "SERVERLESS", "PUBLIC", "RUNTIME MIN"});
  for (const auto& form : objects(readArray(answer))) {
    table.add({cell(*form, "id"), cell(*form, "name"), cell(*form, "imageName"), cell(*form, "category"),
               cell(*form, "containerDiskInGb"), cell(*form, "volumeInGb"), cell(*form, "isServerless"),
               cell(*form, "isPublic"), cell(*form, "runtimeInMin")});
  }
  table.print(invocation.out);
  return ExitCode::ok;
}

ExitCode showTemplate(const Invocation& invocation) {
  return printTemplate(invocation, invocation.api.get(templatePath(invocation)));
}

ExitCode createTemplate(const Invocation& invocation) {
  return printTemplate(invocation,
                       invocation.api.post(kTemplatesPath, formBody(invocation.arguments, templateFields())));
}

ExitCode updateTemplate(const Invocation& invocation) {
  return printTemplate(invocation, invocation.api.post(templatePath(invocation) + "/update",
                                                       formBody(invocation.arguments, templateChanges())));
}

ExitCode deleteTemplate(const Invocation& invocation) {
  const std::string answer = invocation.api.remove(templatePath(invocation));
  if (!printIfJson(invocation, answer))
    invocation.out << "The template " << harmless(invocation.arguments.words[0]) << " is deleted.\n";
  return ExitCode::ok;
}

}  // namespace jobq::cli
