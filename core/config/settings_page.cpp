#include "core/config/settings_page.h"

#include "core/config/endpoint_spec.h"
#include "core/config/server_settings.h"

namespace jobq {
namespace {

constexpr const char* kEndpoints =
    "Endpoints of the file are fixed while the server runs. An id consists of `A-Z a-z 0-9 _ -`.\n\n";

std::string heading(const std::string& title) { return "### " + title + "\n"; }

std::string headOfTable() {
  return "| setting | type | default | bounds | meaning |\n"
         "|---|---|---|---|---|\n";
}

template <class Form>
std::string defaultOf(const Setting<Form>& setting, const Form& form) {
  if (!setting.defaultText.empty()) return setting.defaultText;
  const std::string value = setting.print(form);
  return value.empty() ? "none" : "`" + value + "`";
}

// Returns the row of a table. `form` has the values of a file without settings.
template <class Form>
std::string row(const std::string& prefix, const Setting<Form>& setting, const Form& form) {
  return "| `" + prefix + setting.name + "` | " + setting.type + " | " + defaultOf(setting, form) + " | " +
         (setting.bounds.empty() ? "" : setting.bounds + " ") + "| " + setting.meaning + " |\n";
}

std::string section(const SettingSection& subject) {
  std::string text = heading(subject.title) + headOfTable();
  for (const Setting<Config>& setting : subject.settings) text += row("", setting, Config());
  for (const Setting<LimitSetting>& setting : subject.ofOperations) {
    text += row("limits.<operation>.", setting, LimitSetting());
  }
  return subject.ofOperations.empty() ? text : text + "\n" + operationsTable();
}

std::string endpoints() {
  std::string text = heading("Endpoints of the file") + kEndpoints + headOfTable();
  for (const FormField<EndpointSpec>& field : endpointFields()) {
    if (!field.setting.name.empty()) text += row("endpoint.<id>.", field.setting, endpointInFile("ID"));
  }
  return text;
}

}  // namespace

std::string settingsPage() {
  std::string page;
  for (const SettingSection& subject : serverSettings()) page += section(subject) + "\n";
  return page + endpoints();
}

std::string operationsTable() {
  std::string table =
      "| operation | requests | concurrent | counts |\n"
      "|---|---|---|---|\n";
  for (std::size_t i = 0; i < kOperations; ++i) {
    const OperationLimit& limit = kOperationLimits[i];
    table += "| `" + std::string(kOperationNames[i]) + "` | " + std::to_string(limit.requests) + " | " +
             std::to_string(limit.concurrent) + " | " + std::string(limit.calls) + " |\n";
  }
  return table;
}

}  // namespace jobq
