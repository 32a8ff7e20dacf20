#include "core/config/endpoint_spec.h"

#include <set>

#include "core/base/words.h"
#include "core/config/filter_name.h"
#include "core/config/units.h"
#include "jobq/error.h"
#include "jobq/json.h"

namespace jobq {
namespace {

using E = EndpointSpec;

constexpr std::size_t kEndpointNameLimit = 191;
constexpr Range kWorkers{0, 10'000};
constexpr Range kHardware{0, 1'000'000};
constexpr Range kRetention{1'000, 604'800'000};
constexpr Range kStopGrace{0, 3'600'000};
constexpr Range kExecutionTimeout{5'000, 604'800'000};
constexpr Range kRequests{0, 1'000'000'000};
constexpr Range kWindow{1, 3'600'000};
constexpr Millis kMilliUnit{1};
constexpr Millis kSecondUnit{1'000};

json::Document objectOf(const json::Value& value) {
  if (value.kind != json::Kind::object) throw BadField{"must be an object"};
  return std::get<json::Document>(json::read(value.raw));
}

// Calls `each(name, value)` for every member with a value other than null. Messages about a member put `inside` before
// its name. Throws BadField if a name comes twice.
template <class Each>
void forMembers(const json::Value& value, const std::string& inside, Each&& each) {
  std::set<std::string> seen;
  for (const json::Member& member : objectOf(value).members) {
    const std::string name = json::decode(member.key);
    if (!seen.insert(name).second) throw BadField{"holds " + clipped(inside + name) + " twice: send it once"};
    if (member.value.kind != json::Kind::null) each(name, member.value);
  }
}

std::int64_t readInside(const std::string& name, const json::Value& value, const Range& range) {
  try {
    return readWhole(value, range);
  } catch (const BadField& bad) {
    throw BadField{"has a wrong " + name + ": it " + bad.message};
  }
}

[[noreturn]] void refuseInside(const std::string& name, const std::vector<std::string>& known) {
  throw BadField{"has no " + clipped(name) + "; the nearest one is " + units::nearest(clipped(name), known)};
}

void readRetention(E& form, const json::Value& value) {
  form.runRetention.reset();
  form.runsyncRetention.reset();
  forMembers(value, "", [&form](const std::string& name, const json::Value& ms) {
    if (name != "run" && name != "runsync") refuseInside(name, {"run", "runsync"});
    (name == "run" ? form.runRetention : form.runsyncRetention) = Millis(readInside(name, ms, kRetention));
  });
}

std::string writeRetention(const E& form) {
  std::string out = "{";
  if (form.runRetention) out += "\"run\":" + std::to_string(form.runRetention->count());
  if (form.runRetention && form.runsyncRetention) out += ",";
  if (form.runsyncRetention) out += "\"runsync\":" + std::to_string(form.runsyncRetention->count());
  return out + "}";
}

void readLimit(LimitSetting& limit, const std::string& operation, const json::Value& value) {
  if (value.kind != json::Kind::object) throw BadField{"must hold an object for " + operation};
  forMembers(value, operation + ".", [&](const std::string& name, const json::Value& number) {
    const auto read = [&](const Range& range) {
      return static_cast<std::uint32_t>(readInside(operation + "." + name, number, range));
    };
    if (name == "requests") {
      limit.requests = read(kRequests);
    } else if (name == "windowMs") {
      limit.window = Millis(read(kWindow));
    } else if (name == "concurrent") {
      limit.concurrent = read(kRequests);
    } else if (name == "perWorker") {
      limit.perWorker = read(kRequests);
    } else {
      refuseInside(operation + "." + name, {operation + ".requests", operation + ".windowMs", operation + ".concurrent",
                                            operation + ".perWorker"});
    }
  });
}

void readLimits(E& form, const json::Value& value) {
  LimitSettings limits{};
  forMembers(value, "", [&limits](const std::string& name, const json::Value& limit) {
    const auto at = std::find(kOperationNames.begin(), kOperationNames.end(), name);
    if (at == kOperationNames.end()) refuseInside(name, {kOperationNames.begin(), kOperationNames.end()});
    readLimit(limits[static_cast<std::size_t>(at - kOperationNames.begin())], name, limit);
  });
  form.limits = limits;
}

std::string writeLimits(const E& form) {
  std::string out = "{";
  for (std::size_t i = 0; i < kOperations; ++i) {
    const LimitSetting& limit = form.limits[i];
    std::string inside;
    const auto add = [&inside](const char* name, std::int64_t number) {
      inside += (inside.empty() ? "\"" : ",\"") + std::string(name) + "\":" + std::to_string(number);
    };
    if (limit.requests) add("requests", *limit.requests);
    if (limit.window) add("windowMs", limit.window->count());
    if (limit.concurrent) add("concurrent", *limit.concurrent);
    if (limit.perWorker) add("perWorker", *limit.perWorker);
    if (inside.empty()) continue;
    out += (out.size() > 1 ? ",\"" : "\"") + std::string(kOperationNames[i]) + "\":{" + inside + "}";
  }
  return out + "}";
}

void readSecret(E& form, const json::Value& value) {
  form.webhookSecret = readText(value, 0, 1'024);
  try {
    (void)units::secret("webhookSecret", form.webhookSecret);
  } catch (const ConfigError& error) {
    throw BadField{"begins with whsec_, and the rest is not base64"};
  }
}

void readFilters(E& form, const json::Value& value) {
  std::vector<std::string> names = readTexts(value);
  try {
    checkFilterNames(names);
  } catch (const ConfigError& error) {
    throw BadField{std::string("has a wrong list: ") + error.what()};
  }
  form.filters = std::move(names);
}

void readScalerType(E& form, const json::Value& value) {
  form.scaling.type = parseScalerType(readChoice(value, {"QUEUE_DELAY", "REQUEST_COUNT"})).value();
}

void parseScaler(E& form, const std::string& key, const std::string& text) {
  const auto type = parseScalerType(text);
  if (!type) throw ConfigError(key + " = " + text + " is not one of QUEUE_DELAY, REQUEST_COUNT");
  form.scaling.type = *type;
}

// The text is kept, and the bytes of the key are read from it again (makeEndpoint).
void parseSecret(E& form, const std::string& key, const std::string& text) {
  (void)units::secret(key, text);
  form.webhookSecret = text;
}

void parseIsolation(E&, const std::string& key, const std::string& text) {
  if (text != "thread") throw ConfigError(key + " = " + text + ": only thread is available");
}

FormFields<E> asked() {
  return {
      textField<E>("id", &E::id, 1, 128, FieldUse::answer),
      textField<E>("name", &E::name, 0, kEndpointNameLimit),
      textField<E>("templateId", &E::templateId, 1, 64).released(),
      wholeField<E>("workersMin", &E::workersMin, kWorkers).inFile("workersMin"),
      wholeField<E>("workersMax", &E::workersMax, kWorkers).inFile("workersMax"),
      // The file has milliseconds, and may end a worker at once.
      durationField<E>("idleTimeout", &E::idleTimeout, kSecondUnit, {1, 3'600})
          .inFile("idleTimeout",
                  [](E& form, const std::string& key, const std::string& text) {
                    form.idleTimeout = units::duration(key, text, Millis(0), Millis(3'600'000));
                  }),
      FormField<E>{"scalerType", FieldUse::free, readScalerType,
                   [](const E& form) { return write(std::string(nameOf(form.scaling.type))); }}
          .inFile("scalerType", parseScaler),
      wholeField<E>("scalerValue", [](auto& form) -> auto& { return form.scaling.value; }, {1, 1'000'000})
          .inFile("scalerValue"),
      durationField<E>("executionTimeoutMs", &E::executionTimeout, kMilliUnit, kExecutionTimeout)
          .inFile("executionTimeout"),
  };
}

FormFields<E> hardware() {
  return {
      flagField<E>("flashboot", &E::flashboot),
      choiceField<E>("computeType", &E::computeType, {"GPU", "CPU"}, FieldUse::creation),
      wholeField<E>("gpuCount", &E::gpuCount, kHardware),
      textsField<E>("gpuTypeIds", &E::gpuTypeIds),
      textsField<E>("allowedCudaVersions", &E::allowedCudaVersions),
      textField<E>("minCudaVersion", &E::minCudaVersion, 0, kEndpointNameLimit),
      textsField<E>("cpuFlavorIds", &E::cpuFlavorIds),
      wholeField<E>("vcpuCount", &E::vcpuCount, kHardware),
      textsField<E>("dataCenterIds", &E::dataCenterIds),
      textField<E>("networkVolumeId", &E::networkVolumeId, 0, kEndpointNameLimit),
      textsField<E>("networkVolumeIds", &E::networkVolumeIds),
  };
}

FormFields<E> ours() {
  return {
      wholeField<E>("maxAttempts", &E::maxAttempts, {1, 1'000}).inFile("maxAttempts"),
      durationField<E>("stopGraceMs", &E::stopGrace, kMilliUnit, kStopGrace).inFile("stopGrace"),
      wholeField<E>("maxStuck", &E::maxStuck, kWorkers).inFile("maxStuck"),
      choiceField<E>("isolation", &E::isolation, {"thread"}).inFile("isolation", parseIsolation),
      textField<E>("queuePolicy", &E::queuePolicy, 0, 64).inFile("queuePolicy"),
      FormField<E>{"filters", FieldUse::free, readFilters, [](const E& form) { return write(form.filters); },
                   [](E& form) { form.filters.reset(); }}
          .inFile("filters",
                  [](E& form, const std::string&, const std::string& text) { form.filters = units::words(text, ","); }),
      {"retention", FieldUse::free, readRetention, writeRetention},
      {"rateLimits", FieldUse::free, readLimits, writeLimits},
      FormField<E>{"webhookSecret", FieldUse::secret, readSecret,
                   [](const E& form) { return write(form.webhookSecret); }}
          .inFile("webhookSecret", parseSecret),
      textField<E>("image", &E::image, 1, 512, FieldUse::file).inFile("image"),
  };
}

FormFields<E> answered() {
  const auto nothing = [](E&, const json::Value&) {};
  return {
      textField<E>("createdAt", &E::createdAt, 0, 64, FieldUse::answer),
      {"userId", FieldUse::answer, nothing, [](const E&) { return std::string("\"\""); }},
      wholeField<E>("version", &E::version, {1, std::int64_t{1} << 53}, FieldUse::answer),
      {"static", FieldUse::answer, nothing, [](const E& form) { return write(form.isStatic); }},
      {"paused", FieldUse::answer, nothing, [](const E& form) { return write(form.paused); }},
      {"env", FieldUse::answer, nothing, [](const E& form) { return write(form.env); }},
      {"instanceIds", FieldUse::answer, nothing, [](const E&) { return std::string("[]"); }},
      wholeField<E>("templateRecord", &E::templateRecord, {0, std::int64_t{1} << 53}, FieldUse::record),
      flagField<E>("deleting", &E::deleting, FieldUse::record),
      textField<E>("sealed", &E::sealed, 0, std::size_t{1} << 20, FieldUse::record),
  };
}

}  // namespace

const FormFields<EndpointSpec>& endpointFields() {
  static const FormFields<E> kFields = [] {
    FormFields<E> fields;
    for (const FormFields<E>& group : {asked(), hardware(), ours(), answered()}) {
      fields.insert(fields.end(), group.begin(), group.end());
    }
    return fields;
  }();
  return kFields;
}

EndpointSpec endpointInFile(const EndpointId& id) {
  EndpointSpec spec;
  spec.id = id;
  spec.name = id;
  spec.isStatic = true;
  spec.scaling = {ScalerType::requestCount, 1};  // one worker for each job, at once: workers start in a moment
  return spec;
}

bool needsRelease(const EndpointSpec& before, const EndpointSpec& after) {
  return std::any_of(endpointFields().begin(), endpointFields().end(), [&](const FormField<EndpointSpec>& field) {
    return field.isReleased && field.write(before) != field.write(after);
  });
}

void addCrossFaults(FieldFaults& faults, const EndpointSpec& spec) {
  if (spec.templateId.empty() && !isFaulty(faults, "templateId")) {
    faults.push_back({"templateId", "templateId is missing: name the template of the endpoint's workers"});
  }
  if (spec.workersMin > spec.workersMax && !isFaulty(faults, "workersMin") && !isFaulty(faults, "workersMax")) {
    faults.push_back({"workersMin", "workersMin is greater than workersMax: lower it, or raise workersMax"});
  }
}

}  // namespace jobq
