#include "core/config/endpoint_spec.h"

#include <set>
#include <string_view>

#include "core/base/words.h"
#include "core/config/filter_name.h"
#include "core/config/units.h"
#include "core/model/job_policy.h"
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
constexpr std::string_view kBeforeId = "endpoint.";
constexpr std::string_view kBeforeEnv = ".env.";
constexpr Millis kMilliUnit{1};
constexpr Millis kSecondUnit{1'000};

// Calls `each(name, value)` for every member with a value other than null, until one fails. Fails if `value` is not an
// object or a name comes twice; `inside` stands before the repeated name.
template <class Each>
Result<void> forMembers(const json::Value& value, const std::string& inside, Each&& each) {
  if (value.kind != json::Kind::object) return invalid("must be an object");
  const auto object = std::get<json::Document>(json::read(value.raw));
  std::set<std::string> seen;
  for (const json::Member& member : object.members) {
    const std::string name = json::decode(member.key);
    if (!seen.insert(name).second) return invalid("holds " + clipped(inside + name) + " twice: send it once");
    if (member.value.kind == json::Kind::null) continue;
    if (const Result<void> done = each(name, member.value); !done) return done;
  }
  return {};
}

Result<std::int64_t> readInside(const std::string& name, const json::Value& value, const Range& range) {
  auto number = readWhole(value, range);
  if (!number) return invalid("has a wrong " + name + ": it " + number.failure().message());
  return number;
}

Result<Millis> readMillis(const std::string& name, const json::Value& value, const Range& range) {
  const auto number = readInside(name, value, range);
  if (!number) return number.failure();
  return Millis(*number);
}

Failure unknownInside(const std::string& name, const std::vector<std::string>& known) {
  return invalid("has no " + clipped(name) + "; the nearest one is " + units::nearest(clipped(name), known));
}

Result<void> readRetention(E& form, const json::Value& value) {
  form.runRetention.reset();
  form.runsyncRetention.reset();
  return forMembers(value, "", [&form](const std::string& name, const json::Value& ms) -> Result<void> {
    if (name != "run" && name != "runsync") return unknownInside(name, {"run", "runsync"});
    return assign(name == "run" ? form.runRetention : form.runsyncRetention, readMillis(name, ms, kRetention));
  });
}

std::string writeRetention(const E& form) {
  return json::object([&form](json::ObjectWriter& out) {
    if (form.runRetention) out.member("run", form.runRetention->count());
    if (form.runsyncRetention) out.member("runsync", form.runsyncRetention->count());
  });
}

Result<void> readLimit(LimitSetting& limit, const std::string& operation, const json::Value& value) {
  if (value.kind != json::Kind::object) return invalid("must hold an object for " + operation);
  const std::string inside = operation + ".";
  return forMembers(value, inside, [&](const std::string& name, const json::Value& number) -> Result<void> {
    if (name == "requests") return assign(limit.requests, readInside(inside + name, number, kLimitCount));
    if (name == "windowMs") return assign(limit.window, readMillis(inside + name, number, kLimitWindow));
    if (name == "concurrent") return assign(limit.concurrent, readInside(inside + name, number, kLimitCount));
    if (name == "perWorker") return assign(limit.perWorker, readInside(inside + name, number, kLimitCount));
    return unknownInside(inside + name,
                         {inside + "requests", inside + "windowMs", inside + "concurrent", inside + "perWorker"});
  });
}

Result<void> readLimits(E& form, const json::Value& value) {
  LimitSettings limits{};
  const Result<void> done =
      forMembers(value, "", [&limits](const std::string& name, const json::Value& limit) -> Result<void> {
        const auto at = std::find(kOperationNames.begin(), kOperationNames.end(), name);
        if (at == kOperationNames.end()) return unknownInside(name, {kOperationNames.begin(), kOperationNames.end()});
        return readLimit(limits[static_cast<std::size_t>(at - kOperationNames.begin())], name, limit);
      });
  if (done) form.limits = limits;
  return done;
}

void writeLimit(json::ObjectWriter& out, const LimitSetting& limit) {
  if (limit.requests) out.member("requests", *limit.requests);
  if (limit.window) out.member("windowMs", limit.window->count());
  if (limit.concurrent) out.member("concurrent", *limit.concurrent);
  if (limit.perWorker) out.member("perWorker", *limit.perWorker);
}

std::string writeLimits(const E& form) {
  return json::object([&form](json::ObjectWriter& out) {
    for (std::size_t i = 0; i < kOperations; ++i) {
      const std::string limit = json::object([&](json::ObjectWriter& inside) { writeLimit(inside, form.limits[i]); });
      if (limit != "{}") out.namedRaw(kOperationNames[i], limit);
    }
  });
}

Result<void> readSecret(E& form, const json::Value& value) {
  if (auto done = assign(form.webhookSecret, readText(value, 0, 1'024)); !done) return done;
  if (const auto key = units::signingKey(form.webhookSecret); !key) return key.failure();
  return {};
}

Result<void> readFilters(E& form, const json::Value& value) {
  const auto names = readTexts(value);
  if (!names) return names.failure();
  if (const auto good = checkFilterNames(*names); !good) {
    return invalid("has a wrong list: " + good.failure().message());
  }
  form.filters = *names;
  return {};
}

Result<void> readScalerType(E& form, const json::Value& value) {
  const auto name = readChoice(value, {"QUEUE_DELAY", "REQUEST_COUNT"});
  if (!name) return name.failure();
  form.scaling.type = parseScalerType(*name).value();
  return {};
}

Setting<E> idleTimeoutInFile() {
  return durationSetting<E>("idleTimeout", &E::idleTimeout, Millis(0), Millis(3'600'000),
                            "The idle time after which a worker above `workersMin` ends.");
}

Setting<E> scalerTypeInFile() {
  using Types = std::vector<std::pair<std::string, ScalerType>>;
  return choiceSetting<E>(
      "scalerType", [](auto& form) -> auto& { return form.scaling.type; },
      Types{{"QUEUE_DELAY", ScalerType::queueDelay}, {"REQUEST_COUNT", ScalerType::requestCount}},
      "`REQUEST_COUNT` keeps a worker for every `scalerValue` jobs that wait or run, `QUEUE_DELAY` adds a worker if a "
      "job waits longer than `scalerValue` seconds.");
}

// Stores the checked text unchanged; makeEndpoint() decodes the signing key from it.
Setting<E> webhookSecretInFile() {
  Setting<E> row = textSetting<E>("webhookSecret", &E::webhookSecret, "The secret for webhooks of the endpoint.")
                       .withDefault("`webhook.secret`");
  row.parse = [](E& form, const std::string& key, const std::string& text) {
    (void)units::secret(key, text);
    form.webhookSecret = text;
  };
  return row;
}

// The key is `endpoint.<id>.env.NAME`, and an id has no dot.
Setting<E> envInFile() {
  return {"env.NAME",
          "text",
          "",
          "A value for handlers and filters.",
          [](E& form, const std::string& key, const std::string& text) {
            const std::size_t afterId = key.find('.', kBeforeId.size());
            form.env[key.substr(afterId + kBeforeEnv.size())] = text;
          },
          {},
          "none"};
}

// etc/README.md has the settings of the file in the order of the rows.
FormFields<E> requestFields() {
  return {
      textField<E>("image", &E::image, 1, 512, FieldUse::file)
          .inFile("image", "The code: `plugin/<handler>` or `lua/<script>`. Any other name means remote workers.",
                  "required"),
      textField<E>("id", &E::id, 1, 128, FieldUse::answer),
      textField<E>("name", &E::name, 0, kEndpointNameLimit),
      textField<E>("templateId", &E::templateId, 1, 64).released(),
      wholeField<E>("workersMin", &E::workersMin, kWorkers).inFile("workersMin", "The workers kept when idle."),
      wholeField<E>("workersMax", &E::workersMax, kWorkers).inFile("workersMax", "The most workers."),
      // The file takes a duration to the millisecond, also 0 (the worker ends at once); responses show whole seconds,
      // rounded down.
      durationField<E>("idleTimeout", &E::idleTimeout, kSecondUnit, {1, 3'600}).inFile(idleTimeoutInFile()),
      FormField<E>{"scalerType", FieldUse::free, readScalerType,
                   [](const E& form) { return jsonText(nameOf(form.scaling.type)); }}
          .inFile(scalerTypeInFile()),
      wholeField<E>("scalerValue", [](auto& form) -> auto& { return form.scaling.value; }, {1, 1'000'000})
          .inFile("scalerValue", "Jobs for `REQUEST_COUNT`, seconds for `QUEUE_DELAY`."),
      durationField<E>("executionTimeoutMs", &E::executionTimeout, kMilliUnit, kExecutionTimeoutBounds.range)
          .inFile("executionTimeout", "The default of `policy.executionTimeout`."),
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

FormFields<E> extensionFields() {
  return {
      wholeField<E>("maxAttempts", &E::maxAttempts, {1, 1'000})
          .inFile("maxAttempts", "The lost runs after which a job is FAILED."),
      durationField<E>("stopGraceMs", &E::stopGrace, kMilliUnit, kStopGrace)
          .inFile("stopGrace", "The time for a handler to obey a stop token before the worker counts as stuck."),
      wholeField<E>("maxStuck", &E::maxStuck, kWorkers)
          .inFile("maxStuck", "The stuck workers replaced at a time.", "`workersMax`"),
      choiceField<E>("isolation", &E::isolation, {"thread"})
          .inFile("isolation", "Where handlers run. Planned: other values."),
      textField<E>("queuePolicy", &E::queuePolicy, 0, 64)
          .inFile("queuePolicy", "The queue policy of the endpoint.", "`queue.policy`"),
      FormField<E>{"filters", FieldUse::free, readFilters, [](const E& form) { return jsonText(form.filters); },
                   [](E& form) { form.filters.reset(); }}
          .inFile(listSetting<E>("filters", &E::filters, "The filters of the endpoint; an empty value means no filter.")
                      .withDefault("`filters`")),
      {"retention", FieldUse::free, readRetention, writeRetention},
      {"rateLimits", FieldUse::free, readLimits, writeLimits},
      FormField<E>{"webhookSecret", FieldUse::secret, readSecret,
                   [](const E& form) { return jsonText(form.webhookSecret); }}
          .inFile(webhookSecretInFile()),
  };
}

FormFields<E> serverFields() {
  const auto nothing = [](E&, const json::Value&) { return Result<void>(); };
  return {
      textField<E>("createdAt", &E::createdAt, 0, 64, FieldUse::answer),
      {"userId", FieldUse::answer, nothing, [](const E&) { return std::string("\"\""); }},
      wholeField<E>("version", &E::version, {1, std::int64_t{1} << 53}, FieldUse::answer),
      {"static", FieldUse::answer, nothing, [](const E& form) { return jsonText(form.isStatic); }},
      {"paused", FieldUse::answer, nothing, [](const E& form) { return jsonText(form.paused); }},
      FormField<E>{"env", FieldUse::answer, nothing, [](const E& form) { return jsonText(form.env); }}.inFile(
          envInFile()),
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
    for (const FormFields<E>& group : {requestFields(), hardware(), extensionFields(), serverFields()}) {
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
