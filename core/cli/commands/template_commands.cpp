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
  if (!printIfJson(invocation, answer) && !printIfQuiet(invocation, answer)) printMembers(answer, {}, invocation.out);
  return ExitCode::ok;
}

}  // namespace

ExitCode listTemplates(const Invocation& invocation) {
  const std::string answer = getList(invocation.api, kTemplatesPath);
  if (printIfJson(invocation, answer) || printIfQuiet(invocation, readArray(answer))) return ExitCode::ok;
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
                       invocation.api.post(kTemplatesPath, formBody(invocation.arguments, templateOptions())));
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
