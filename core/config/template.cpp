#include "core/config/template.h"

#include <algorithm>

#include "core/base/secret_box.h"
#include "core/base/words.h"
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

Result<std::string> readImage(const json::Value& value) {
  auto image = readText(value, 1, kImageLimit);
  if (!image) return image;
  if (const auto good = checkImageName(*image); !good) return good.failure();
  return image;
}

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

Result<std::vector<std::string>> readPorts(const json::Value& value) {
  auto ports = readTexts(value);
  if (!ports) return ports;
  for (const std::string& port : *ports) {
    if (!isPort(port)) {
      return invalid("must hold items like 8888/http or 22/tcp, with a port from 1 to 65535, not " + clipped(port));
    }
  }
  return ports;
}

Result<std::string> readPath(const json::Value& value) {
  auto path = readText(value, 1, kPathLimit);
  if (path && path->front() != '/') return invalid("must be an absolute path: begin it with /");
  return path;
}

Result<std::map<std::string, std::string>> readEnv(const json::Value& value) {
  auto env = readTextMap(value);
  if (!env) return env;
  for (const auto& [name, text] : *env) {
    if (name.empty() || name.find('=') != std::string::npos || name.find('\0') != std::string::npos) {
      return invalid("holds a name that no environment can have: " + json::quoted(clipped(name)));
    }
    if (text.find('\0') != std::string::npos) return invalid("holds a value with a NUL: " + clipped(name));
  }
  return env;
}

}  // namespace

const FormFields<Template>& templateFields() {
  using T = Template;
  const auto nothing = [](T&, const json::Value&) { return Result<void>(); };
  static const FormFields<T> kFields{
      textField<T>("id", &T::id, 1, 64, FieldUse::answer),
      textField<T>("name", &T::name, 1, kTemplateNameLimit),
      {"imageName", FieldUse::free,
       [](T& form, const json::Value& value) { return assign(form.imageName, readImage(value)); },
       [](const T& form) { return jsonText(form.imageName); }},
      choiceField<T>("category", &T::category, {"NVIDIA", "AMD", "CPU"}, FieldUse::creation),
      wholeField<T>("containerDiskInGb", &T::containerDiskInGb, kGigabytes),
      textField<T>("containerRegistryAuthId", &T::containerRegistryAuthId, 0, kTemplateNameLimit),
      textsField<T>("dockerEntrypoint", &T::dockerEntrypoint),
      textsField<T>("dockerStartCmd", &T::dockerStartCmd),
      {"env", FieldUse::free, [](T& form, const json::Value& value) { return assign(form.env, readEnv(value)); },
       [](const T& form) { return jsonText(form.env); }},
      flagField<T>("isPublic", &T::isPublic),
      flagField<T>("isServerless", &T::isServerless, FieldUse::creation),
      {"ports", FieldUse::free, [](T& form, const json::Value& value) { return assign(form.ports, readPorts(value)); },
       [](const T& form) { return jsonText(form.ports); }},
      textField<T>("readme", &T::readme, 0, kReadmeLimit),
      wholeField<T>("volumeInGb", &T::volumeInGb, kGigabytes),
      {"volumeMountPath", FieldUse::free,
       [](T& form, const json::Value& value) { return assign(form.volumeMountPath, readPath(value)); },
       [](const T& form) { return jsonText(form.volumeMountPath); }},
      {"earned", FieldUse::answer, nothing, [](const T&) { return std::string("0"); }},
      {"isRunpod", FieldUse::answer, nothing, [](const T&) { return std::string("false"); }},
      wholeField<T>("runtimeInMin", &T::runtimeInMin, kGigabytes, FieldUse::answer),
      textField<T>("sealed", &T::sealed, 0, std::size_t{1} << 30, FieldUse::record),
      choiceField<T>("removal", &T::removal, {"", kRemovalAsked, kRemovalDecided}, FieldUse::record),
  };
  return kFields;
}

FieldFaults missingFields(const Template& form) {
  FieldFaults faults;
  if (form.name.empty()) faults.push_back({"name", "name is missing: give the template a name that no other one has"});
  if (form.imageName.empty()) {
    faults.push_back({"imageName", "imageName is missing: name a handler, such as plugin/echo, or an image"});
  }
  return faults;
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
