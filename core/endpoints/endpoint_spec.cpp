#include "core/endpoints/endpoint_spec.h"

#include <set>

#include "core/base/secret_box.h"
#include "core/base/words.h"
#include "core/config/units.h"
#include "core/endpoints/filter_pool.h"
#include "jobq/base64.h"
#include "jobq/json.h"

namespace jobq {
namespace {

using E = EndpointSpec;

constexpr std::size_t kEndpointNameLimit = 191;
constexpr Range kWorkers{0, 10'000};
constexpr Range kHardware{0, 1'000'000};
constexpr Range kRetention{1'000, 604'800'000};
constexpr Range kStopGraceRange{0, 3'600'000};
constexpr Range kRequests{0, 1'000'000'000};
constexpr Range kWindow{1, 3'600'000};

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
  form.runRetentionMs.reset();
  form.runsyncRetentionMs.reset();
  forMembers(value, "", [&form](const std::string& name, const json::Value& ms) {
    if (name != "run" && name != "runsync") refuseInside(name, {"run", "runsync"});
    (name == "run" ? form.runRetentionMs : form.runsyncRetentionMs) = readInside(name, ms, kRetention);
  });
}

std::string writeRetention(const E& form) {
  std::string out = "{";
  if (form.runRetentionMs) out += "\"run\":" + std::to_string(*form.runRetentionMs);
  if (form.runRetentionMs && form.runsyncRetentionMs) out += ",";
  if (form.runsyncRetentionMs) out += "\"runsync\":" + std::to_string(*form.runsyncRetentionMs);
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

FormFields<E> asked() {
  return {
      textField<E>("id", &E::id, 1, 128, FieldUse::answer),
      textField<E>("name", &E::name, 0, kEndpointNameLimit),
      textField<E>("templateId", &E::templateId, 1, 64),
      wholeField<E>("workersMin", &E::workersMin, kWorkers),
      wholeField<E>("workersMax", &E::workersMax, kWorkers),
      wholeField<E>("idleTimeout", &E::idleTimeout, {1, 3'600}),
      choiceField<E>("scalerType", &E::scalerType, {"QUEUE_DELAY", "REQUEST_COUNT"}),
      wholeField<E>("scalerValue", &E::scalerValue, {1, 1'000'000}),
      wholeField<E>("executionTimeoutMs", &E::executionTimeoutMs, {5'000, 604'800'000}),
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
      wholeField<E>("maxAttempts", &E::maxAttempts, {1, 1'000}),
      wholeField<E>("stopGraceMs", &E::stopGraceMs, kStopGraceRange),
      {"maxStuck", FieldUse::free,
       [](E& form, const json::Value& value) { form.maxStuck = readWhole(value, kWorkers); },
       [](const E& form) { return form.maxStuck ? write(*form.maxStuck) : std::string("null"); },
       [](E& form) { form.maxStuck.reset(); }},
      choiceField<E>("isolation", &E::isolation, {"thread"}),
      textField<E>("queuePolicy", &E::queuePolicy, 0, 64),
      {"filters", FieldUse::free, readFilters,
       [](const E& form) { return form.filters ? write(*form.filters) : std::string("null"); },
       [](E& form) { form.filters.reset(); }},
      {"retention", FieldUse::free, readRetention, writeRetention},
      {"rateLimits", FieldUse::free, readLimits, writeLimits},
      {"webhookSecret", FieldUse::secret, readSecret, [](const E& form) { return write(form.webhookSecret); }},
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

void addCrossFaults(FieldFaults& faults, const EndpointSpec& form) {
  if (form.templateId.empty() && !isFaulty(faults, "templateId")) {
    faults.push_back({"templateId", "templateId is missing: name the template of the endpoint's workers"});
  }
  if (form.workersMin > form.workersMax && !isFaulty(faults, "workersMin") && !isFaulty(faults, "workersMax")) {
    faults.push_back({"workersMin", "workersMin is greater than workersMax: lower it, or raise workersMax"});
  }
}

Record toRecord(const EndpointSpec& form, const SecretBox& box) {
  EndpointSpec kept = form;
  kept.sealed = toBase64(box.seal(form.webhookSecret));
  kept.webhookSecret.clear();
  kept.env.clear();
  return {kEndpointKind, form.id, "", writeForm(kept, endpointFields(), true), 0, {}};
}

EndpointSpec endpointSpecOf(const Record& record, const SecretBox& box) {
  try {
    EndpointSpec form;
    readRecord(form, record.body, endpointFields());
    const auto sealed = fromBase64(form.sealed);
    if (!sealed) throw BadField{"webhookSecret is damaged"};
    form.webhookSecret = box.open(*sealed);
    form.sealed.clear();
    return form;
  } catch (const BadField& bad) {
    throw Error("the endpoint " + record.id + " in the storage is damaged: " + bad.message);
  }
}

}  // namespace jobq
