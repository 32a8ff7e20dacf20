#include "core/config/template.h"

#include <algorithm>

#include "core/base/secret_box.h"
#include "core/base/words.h"
#include "core/config/form_rows.h"
#include "core/model/image.h"
#include "jobq/base64.h"
#include "jobq/json.h"

namespace jobq {
namespace {

constexpr std::size_t kTemplateNameLimit = 191;
constexpr std::size_t kImageLimit = 512;
constexpr std::size_t kPathLimit = 1'024;
constexpr std::size_t kReadmeLimit = 512UL << 10;
constexpr Range kGigabytes{0, 1'000'000'000};

bool isPort(const std::string& item) {
  const std::size_t slash = item.find('/');
  const std::string number = item.substr(0, slash);
  const std::string protocol = slash == std::string::npos ? "" : item.substr(slash + 1);
  const bool digits =
      !number.empty() && number.size() <= 5 && number.find_first_not_of("0123456789") == std::string::npos;
  if (!digits || (protocol != "http" && protocol != "tcp")) return false;
  const int port = std::stoi(number);
  return port >= 1 && port <= 65'535;
}

Result<void> checkPorts(const Template& form) {
  const auto wrong = std::ranges::find_if_not(form.ports, isPort);
  if (wrong == form.ports.end()) return {};
  return invalid("must hold items like 8888/http or 22/tcp, with a port from 1 to 65535, not " + clipped(*wrong));
}

Result<void> checkPath(const Template& form) {
  if (form.volumeMountPath.starts_with('/')) return {};
  return invalid("must be an absolute path: begin it with /");
}

Result<void> checkEnv(const Template& form) {
  for (const auto& [name, text] : form.env) {
    if (name.empty() || name.find('=') != std::string::npos || name.find('\0') != std::string::npos) {
      return invalid("holds a name that no environment can have: " + json::quoted(clipped(name)));
    }
    if (text.find('\0') != std::string::npos) return invalid("holds a value with a NUL: " + clipped(name));
  }
  return {};
}

// Keywords of JSON Schema for requests.
constexpr const char* kImageKeywords =
    R"({"anyOf":[{"pattern":"^(plugin|lua)/[A-Za-z0-9_-]{1,64}$"},{"not":{"pattern":"^(plugin|lua)/"}}]})";
constexpr const char* kEnvKeywords = R"({"propertyNames":{"pattern":"^[^=\\u0000]+$"},)"
                                     R"("additionalProperties":{"type":"string","pattern":"^[^\\u0000]*$"}})";
constexpr const char* kPortKeywords =
    R"({"items":{"type":"string","pattern":"^(0{0,4}[1-9]|0{0,3}[1-9][0-9]|0{0,2}[1-9][0-9]{2}|0?[1-9][0-9]{3}|)"
    R"([1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5])/(http|tcp)$"}})";
constexpr const char* kPathKeywords = R"({"pattern":"^/"})";
constexpr const char* kTexts = R"({"items":{"type":"string"}})";
constexpr const char* kTextsWithoutNul = R"({"items":{"type":"string","pattern":"^[^\\u0000]*$"}})";
constexpr const char* kTextMap = R"({"additionalProperties":{"type":"string"}})";

FormFields<Template> workerFields() {
  using T = Template;
  return {
      textField<T>("name", &T::name, 1, kTemplateNameLimit)
          .means("The name for people. Two templates never have the same name.")
          .needed("name is missing: give the template a name that no other one has")
          .option("name", "NAME"),
      textField<T>("imageName", &T::imageName, 1, kImageLimit)
          .means(
              "The program of the workers: `plugin/<handler>`, `lua/<script>`, or any other name for remote workers. A "
              "handler is an installed C++ handler, and a script is in the folder `handlers` of the server's scripts.")
          .needed("imageName is missing: name a handler, such as plugin/echo, or an image")
          .checked([](const T& form) { return checkImageName(form.imageName); })
          .schema(kImageKeywords, "{}")
          .option("image", "IMAGE"),
      choiceField<T>("category", &T::category, {"NVIDIA", "AMD", "CPU"}, FieldUse::creation)
          .means("The kind of machine, fixed at creation.")
          .option("category"),
      wholeField<T>("containerDiskInGb", &T::containerDiskInGb, kGigabytes)
          .means("The size of the container's disk, for a launcher.")
          .option("container-disk", "GB"),
      textField<T>("containerRegistryAuthId", &T::containerRegistryAuthId, 0, kTemplateNameLimit)
          .means("The name of the credentials for the registry of the image, for a launcher.")
          .option("registry-auth", "ID"),
      textsField<T>("dockerEntrypoint", &T::dockerEntrypoint)
          .means("The words of the entry point, for a launcher. If empty, the image's own.")
          .schema(kTextsWithoutNul, kTexts)
          .option("entrypoint", "WORD"),
      textsField<T>("dockerStartCmd", &T::dockerStartCmd)
          .means("The words of the start command, for a launcher. If empty, the image's own.")
          .schema(kTextsWithoutNul, kTexts)
          .option("start-cmd", "WORD"),
      textMapField<T>("env", &T::env)
          .means("The environment variables of the workers and of filters, all replaced by a change. New handlers see "
                 "a change. A name is not empty and has no `=`, and no text has a NUL. The values are kept encrypted.")
          .checked(checkEnv)
          .schema(kEnvKeywords, kTextMap)
          .option("env"),
  };
}

FormFields<Template> otherFields() {
  using T = Template;
  return {
      flagField<T>("isPublic", &T::isPublic).means("A stored value without effect.").option("public"),
      flagField<T>("isServerless", &T::isServerless, FieldUse::creation)
          .means("A stored value without effect, fixed at creation. Any template may serve endpoints.")
          .option("serverless"),
      textsField<T>("ports", &T::ports)
          .means("The open ports, `<port>/http` or `<port>/tcp`, for a launcher. A port is 1 to 65535.")
          .checked(checkPorts)
          .schema(kPortKeywords, kTexts)
          .option("port", "PORT/PROTOCOL"),
      textField<T>("readme", &T::readme, 0, kReadmeLimit)
          .means("The description of the template, in Markdown.")
          .option("readme", "TEXT"),
      wholeField<T>("volumeInGb", &T::volumeInGb, kGigabytes)
          .means("The size of the volume, for a launcher.")
          .option("volume", "GB"),
      textField<T>("volumeMountPath", &T::volumeMountPath, 1, kPathLimit)
          .means("The absolute path of the volume, for a launcher.")
          .checked(checkPath)
          .schema(kPathKeywords, kPathKeywords)
          .option("mount-path", "PATH"),
      constantField<T>("earned", "integer", "0").means("Always 0."),
      constantField<T>("isRunpod", "boolean", "false").means("Always false."),
      wholeField<T>("runtimeInMin", &T::runtimeInMin, kGigabytes, FieldUse::answer)
          .means("The minutes run by workers of the template."),
      textField<T>("sealed", &T::sealed, 0, std::size_t{1} << 30, FieldUse::record),
      choiceField<T>("removal", &T::removal, {"", kRemovalAsked, kRemovalDecided}, FieldUse::record),
  };
}

}  // namespace

const FormFields<Template>& templateFields() {
  using T = Template;
  static const FormFields<T> kFields = [] {
    FormFields<T> fields{textField<T>("id", &T::id, 1, 64, FieldUse::answer)
                             .means("The id, assigned by the server.")
                             .schema("{}", R"({"examples":["k3v9x0m2qa"]})")};
    for (const FormFields<T>& group : {workerFields(), otherFields()}) {
      fields.insert(fields.end(), group.begin(), group.end());
    }
    return fields;
  }();
  return kFields;
}

FieldFaults faultyCommands(const Template& form, const Template& before) {
  FieldFaults faults;
  using Words = std::vector<std::string>;
  const auto check = [&faults](const char* field, const Words& words, const Words& wordsBefore) {
    if (words == wordsBefore) return;
    if (std::ranges::none_of(words, [](const std::string& word) { return word.find('\0') != std::string::npos; }))
      return;
    faults.push_back(
        {field, std::string(field) + " holds a NUL: leave it out, because no program gets such an argument"});
  };
  check("dockerEntrypoint", form.dockerEntrypoint, before.dockerEntrypoint);
  check("dockerStartCmd", form.dockerStartCmd, before.dockerStartCmd);
  return faults;
}

Record toRecord(const Template& form, const SecretBox& box) {
  Template kept = form;
  kept.sealed = toBase64(box.seal(jsonText(form.env)));
  kept.env.clear();
  // The name of a template that is gone is free for a new template.
  return {kTemplateKind, form.id, isGone(form) ? "" : form.name, writeForm(kept, templateFields(), true), 0, {}};
}

Template templateOf(const Record& record, const SecretBox& box) {
  const auto damaged = [&record](const std::string& reason) {
    return Error("the template " + record.id + " in the storage is damaged: " + reason);
  };
  Template form;
  if (const auto done = readRecord(form, record.body, templateFields()); !done) {
    throw damaged(done.failure().message());
  }
  const auto sealed = fromBase64(form.sealed);
  if (!sealed) throw damaged("env is damaged");
  const std::string text = box.open(*sealed);
  const auto env = readTextMap({json::Kind::object, text});
  if (!env) throw damaged(env.failure().message());
  form.env = *env;
  form.sealed.clear();
  return form;
}

ContainerSpec containerOf(const Template& form) {
  return {"",
          form.dockerEntrypoint,
          form.dockerStartCmd,
          form.ports,
          form.containerDiskInGb,
          form.volumeInGb,
          form.volumeMountPath,
          form.containerRegistryAuthId};
}

std::string toJson(Template form, std::int64_t runtimeInMin) {
  form.runtimeInMin = runtimeInMin;
  return toJson(form);
}

std::string toJson(const Template& form) { return writeForm(form, templateFields(), false); }

}  // namespace jobq
