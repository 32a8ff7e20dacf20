#include "core/config/endpoint_spec.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "core/config/endpoint_id.h"
#include "core/config/filter_name.h"
#include "core/config/form_rows.h"
#include "core/config/units.h"
#include "core/model/image.h"
#include "core/model/job_policy.h"
#include "jobq/error.h"
#include "jobq/json.h"

namespace jobq {
namespace {

using E = EndpointSpec;

constexpr std::size_t kEndpointNameLimit = 191;
constexpr std::size_t kEndpointIdLimit = 128;
constexpr Range kWorkers{0, 10'000};
constexpr Range kHardware{0, 1'000'000};
constexpr Range kStopGrace{0, 3'600'000};
constexpr std::string_view kBeforeId = "endpoint.";
constexpr std::string_view kBeforeEnv = ".env.";
constexpr Millis kMilliUnit{1};
constexpr Millis kSecondUnit{1'000};

FormFields<E> retentionFields() {
  return {
      durationField<E>("run", &E::runRetention, kMilliUnit, kRetention)
          .means("The retention of results of `/run`.")
          .defaulting("the server's `retention.run`")
          .inFile("retention.run", "`retention.run`"),
      durationField<E>("runsync", &E::runsyncRetention, kMilliUnit, kRetention)
          .means("The retention of results of `/runsync`, and at least the time of a `wait` over 90000.")
          .defaulting("the server's `retention.runsync`")
          .inFile("retention.runsync", "`retention.runsync`"),
      durationField<E>("failed", &E::failedRetention, kMilliUnit, kFailureRetention)
          .means("The retention of FAILED and TIMED_OUT jobs, also beyond their ttl. A retry begins a new ttl. With 0 "
                 "failures stay as long as other results.")
          .defaulting("the server's `retention.failed`")
          .inFile("retention.failed", "`retention.failed`"),
  };
}

FormFields<E> webhookRetryFields() {
  return {
      wholeField<E>("attempts", &E::webhookAttempts, kWebhookAttempts)
          .means("The number of calls of a webhook in all.")
          .defaulting("the server's `webhook.attempts`")
          .inFile("webhook.attempts", "`webhook.attempts`"),
      durationField<E>("pause", &E::webhookPause, kMilliUnit, kWebhookPause)
          .means("The time between the first call and the second.")
          .defaulting("the server's `webhook.pause`")
          .inFile("webhook.pause", "`webhook.pause`"),
      wholeField<E>("factor", &E::webhookFactor, kWebhookFactor)
          .means("The factor from each pause to the next. A pause has at most 12 h.")
          .defaulting("the server's `webhook.factor`")
          .inFile("webhook.factor", "`webhook.factor`"),
  };
}

Result<void> readLimits(E& form, const json::Value& value) {
  const auto members = presentMembers(value, "");
  if (!members) return members.failure();
  LimitSettings limits{};
  for (const auto& [name, limit] : *members) {
    const auto at = std::find(kOperationNames.begin(), kOperationNames.end(), name);
    if (at == kOperationNames.end()) return unknownMember(name, {kOperationNames.begin(), kOperationNames.end()});
    if (limit.kind != json::Kind::object) return invalid("must hold an object for " + name);
    LimitSetting& setting = limits[static_cast<std::size_t>(at - kOperationNames.begin())];
    if (const auto done = readMembers(setting, limit, limitFields(), name + "."); !done) return done;
  }
  form.limits = limits;
  return {};
}

std::string writeLimits(const E& form) {
  return json::object([&form](json::ObjectWriter& out) {
    for (std::size_t i = 0; i < kOperations; ++i) {
      const std::string limit = writePresent(form.limits[i], limitFields());
      if (limit != "{}") out.namedRaw(kOperationNames[i], limit);
    }
  });
}

// Returns the keywords of an object with a limit for each operation, which has the schema.
std::string ofOperations(const std::string& schema) {
  return json::object([&schema](json::ObjectWriter& out) {
    out.object("properties", [&schema](json::ObjectWriter& operations) {
      for (const std::string_view operation : kOperationNames) {
        operations.namedRaw(operation, R"({"$ref":"#/components/schemas/)" + schema + "\"}");
      }
    });
    out.member("additionalProperties", false);
  });
}

Result<void> checkSecret(const E& form) {
  const auto key = units::signingKey(form.webhookSecret);
  return key ? Result<void>() : key.failure();
}

Result<void> checkFilters(const E& form) {
  const auto good = checkFilterNames(*form.filters);
  return good ? good : invalid("has a wrong list: " + good.failure().message());
}

Setting<E> idleTimeoutInFile() {
  return durationSetting<E>("idleTimeout", &E::idleTimeout, Millis(0), Millis(3'600'000), "");
}

// Stores the checked text unchanged; makeEndpoint() decodes the signing key from it.
Setting<E> webhookSecretInFile() {
  Setting<E> row = textSetting<E>("webhookSecret", &E::webhookSecret, "").withDefault("`webhook.secret`");
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
  using Types = std::vector<std::pair<std::string, ScalerType>>;
  const Types types{{"QUEUE_DELAY", ScalerType::queueDelay}, {"REQUEST_COUNT", ScalerType::requestCount}};
  return {
      textField<E>("image", &E::image, 1, 512, FieldUse::file)
          .means("The code: `plugin/<handler>` or `lua/<script>`. Any other name means remote workers.")
          .inFile("image", "required"),
      textField<E>("id", &E::id, 1, kEndpointIdLimit, FieldUse::creation)
          .means(
              "The id, of letters, digits, `_` and `-`, fixed at creation. Without an id the server chooses one of 14 "
              "letters and digits. An endpoint of the configuration file has the id of the file.")
          .checked([](const E& form) { return checkEndpointId(form.id); })
          .defaulting("chosen by the server")
          .schema(R"({"pattern":"^[A-Za-z0-9_-]+$"})", R"({"examples":["h7c2k9x0m2qa4f"]})")
          .option("id", "ID"),
      textField<E>("name", &E::name, 0, kEndpointNameLimit)
          .means("The name for people. Two endpoints may have the same name.")
          .option("name", "NAME"),
      textField<E>("templateId", &E::templateId, 1, 64)
          .means("The template of the endpoint's workers. Another template makes a new version. An endpoint of the "
                 "configuration file has an empty text.")
          .defaulting("none: either `templateId` or `imageName` is needed")
          .answering({0, 64})
          .option("template", "ID")
          .released(),
      textField<E>("imageName", &E::image, 1, 512, FieldUse::making)
          .means(
              "The image of the workers, in place of `templateId`. The server makes a template with this image, whose "
              "name is the id of the endpoint.")
          .checked([](const E& form) { return checkImageName(form.image); })
          .defaulting("none")
          .option("image", "IMAGE"),
      wholeField<E>("workersMin", &E::workersMin, kWorkers)
          .means("The least number of workers, also when idle; not more than `workersMax`.")
          .inFile("workersMin")
          .option("workers-min"),
      wholeField<E>("workersMax", &E::workersMax, kWorkers)
          .means("The largest number of workers. Further remote workers may connect, and 0 gives them no jobs.")
          .inFile("workersMax")
          .option("workers-max"),
      // The file takes a duration to the millisecond, also 0 (the worker ends at once); responses show whole seconds,
      // rounded down.
      durationField<E>("idleTimeout", &E::idleTimeout, kSecondUnit, {1, 3'600})
          .means("The idle time after which a worker above `workersMin` ends.")
          .answering({0, 3'600})
          .inFile(idleTimeoutInFile())
          .option("idle-timeout"),
      choiceField<E>(
          "scalerType", [](auto& form) -> auto& { return form.scaling.type; }, types)
          .means("The rule for the number of workers. `REQUEST_COUNT` keeps a worker for every `scalerValue` jobs that "
                 "wait or run, `QUEUE_DELAY` adds a worker if a job waits longer than `scalerValue` seconds.")
          .inFile("scalerType")
          .option("scaler-type"),
      wholeField<E>("scalerValue", [](auto& form) -> auto& { return form.scaling.value; }, {1, 1'000'000})
          .means("The value for the scaler: jobs for `REQUEST_COUNT`, seconds for `QUEUE_DELAY`.")
          .inFile("scalerValue")
          .option("scaler-value"),
      durationField<E>("executionTimeoutMs", &E::executionTimeout, kMilliUnit, kExecutionTimeoutBounds.range)
          .means("The longest run of a job, unless the job has a `policy.executionTimeout`.")
          .inFile("executionTimeout")
          .option("execution-timeout"),
  };
}

FormFields<E> hardware() {
  FormFields<E> fields{
      flagField<E>("flashboot", &E::flashboot).option("flashboot"),
      textsField<E>("gpuTypeIds", &E::gpuTypeIds),
      textsField<E>("allowedCudaVersions", &E::allowedCudaVersions),
      textField<E>("minCudaVersion", &E::minCudaVersion, 0, kEndpointNameLimit),
      textsField<E>("cpuFlavorIds", &E::cpuFlavorIds),
      wholeField<E>("vcpuCount", &E::vcpuCount, kHardware),
      textsField<E>("dataCenterIds", &E::dataCenterIds),
      textField<E>("networkVolumeId", &E::networkVolumeId, 0, kEndpointNameLimit),
      textsField<E>("networkVolumeIds", &E::networkVolumeIds),
  };
  for (FormField<E>& field : fields) field = field.means("A stored value without effect.");
  // After `flashboot`, as in responses.
  fields.insert(
      fields.begin() + 1,
      {choiceField<E>("computeType", &E::computeType, {"GPU", "CPU"}, FieldUse::creation)
           .means("`CPU` for workers without GPUs, for a launcher. Fixed at creation.")
           .option("compute-type"),
       wholeField<E>("gpuCount", &E::gpuCount, kHardware)
           .means("The number of GPUs of each worker that starts, unless `computeType` is `CPU`, for a launcher.")
           .inFile("gpuCount")
           .option("gpu-count")});
  return fields;
}

FormFields<E> extensionFields() {
  constexpr const char* kFilterNames = R"("items":{"type":"string","pattern":"^(plugin/)?[A-Za-z0-9_-]{1,64}$"})";
  constexpr const char* kSigningKey =
      R"({"anyOf":[{"pattern":"^whsec_([A-Za-z0-9+/]{4})*)"
      R"(([A-Za-z0-9+/][AQgw]==|[A-Za-z0-9+/]{2}[AEIMQUYcgkosw048]=|[A-Za-z0-9+/]{4})$"},)"
      R"({"not":{"pattern":"^whsec_"}}]})";
  return {
      wholeField<E>("maxAttempts", &E::maxAttempts, {1, 1'000})
          .means("The number of lost runs after which a job is FAILED.")
          .inFile("maxAttempts")
          .option("max-attempts"),
      durationField<E>("stopGraceMs", &E::stopGrace, kMilliUnit, kStopGrace)
          .means("The time for a handler to obey a stop before the worker counts as stuck.")
          .inFile("stopGrace")
          .option("stop-grace"),
      wholeField<E>("maxStuck", &E::maxStuck, kWorkers)
          .means("The number of stuck workers replaced at a time. The default is `workersMax`, and null restores the "
                 "default.")
          .inFile("maxStuck", "`workersMax`")
          .option("max-stuck"),
      choiceField<E>("isolation", &E::isolation, {"thread"})
          .means("The place where handlers run. Planned: other values.")
          .inFile("isolation")
          .option("isolation"),
      wholeField<E>("maxQueued", &E::maxQueued, kMaxQueued)
          .means("The number of waiting jobs at which the server answers 429 to `/run` and `/runsync`. The default is "
                 "the server's `limits.maxQueued`, and null restores the default.")
          .inFile("maxQueued", "`limits.maxQueued`")
          .option("max-queued"),
      textField<E>("queuePolicy", &E::queuePolicy, 0, 64)
          .means(
              "The order of the jobs. The value is the name of an installed queue plugin, such as `fifo`, `priority`, "
              "`deadline` or `fair`. Empty means the server's policy.")
          .inFile("queuePolicy", "`queue.policy`")
          .option("queue-policy", "NAME"),
      textsField<E>("filters", &E::filters)
          .means("The admission filters in order. Filters check each job before storage. A filter is a script of the "
                 "server by its name, or `plugin/<filter>`. An empty value means no filter, and null the server's "
                 "filters.")
          .checked(checkFilters)
          .schema(std::string(R"({"maxItems":16,)") + kFilterNames + "}", std::string("{") + kFilterNames + "}")
          .inFile("filters", "`filters`")
          .option("filters", "NAMES")
          .commaList(),
      objectField<E>("retention", retentionFields()).means("The retention of results."),
      objectField<E>("webhookRetries", webhookRetryFields())
          .means("The calls of a webhook that its receiver does not take."),
      FormField<E>{.name = "rateLimits", .read = readLimits, .write = writeLimits, .facts = {.type = "object"}}
          .means("The endpoint's own limits by operation, in place of the server's.")
          .schema(ofOperations("RateLimitInput"), ofOperations("RateLimit")),
      textField<E>("webhookSecret", &E::webhookSecret, 0, 1'024, FieldUse::secret)
          .means(
              "The secret for signatures of the endpoint's webhooks, in place of the server's: any text, or `whsec_` "
              "and base64. The value is kept encrypted and never returned.")
          .checked(checkSecret)
          .schema(kSigningKey, "{}")
          .inFile(webhookSecretInFile()),
  };
}

// The settings of the file inside a field: the file has no objects.
FormFields<E> innerFileFields() {
  FormFields<E> fields = retentionFields();
  for (FormField<E>& field : webhookRetryFields()) fields.push_back(std::move(field));
  for (FormField<E>& field : fields) {
    field.name = field.setting.name;
    field.use = FieldUse::file;
  }
  return fields;
}

FormFields<E> serverFields() {
  constexpr std::int64_t kLargestVersion = std::int64_t{1} << 53;
  return {
      textField<E>("createdAt", &E::createdAt, 0, 64, FieldUse::answer)
          .means("The time of creation. An endpoint of the configuration file has the server's start time.")
          .schema("{}", R"({"allOf":[{"$ref":"#/components/schemas/Time"}]})")
          .untyped(),
      constantField<E>("userId", "string", "\"\"").means("The server has a single tenant."),
      wholeField<E>("version", &E::version, {1, kLargestVersion}, FieldUse::answer)
          .means("The number of the version. Each release increases the number: the template has changed, or the "
                 "endpoint has another template."),
      flagField<E>("static", &E::isStatic, FieldUse::answer)
          .means("True for an endpoint of the configuration file. The API cannot change the endpoint, except with a "
                 "pause.")
          .unread(),
      flagField<E>("paused", &E::paused, FieldUse::answer)
          .means("The endpoint's jobs wait, and running jobs continue.")
          .unread(),
      textMapField<E>("env", &E::env, FieldUse::answer).means("The template's `env`.").unread().inFile(envInFile()),
      constantField<E>("instanceIds", "array", "[]")
          .means("Always empty.")
          .schema("{}", R"({"maxItems":0,"items":{"type":"string"}})"),
      wholeField<E>("templateRecord", &E::templateRecord, {0, kLargestVersion}, FieldUse::record),
      flagField<E>("deleting", &E::deleting, FieldUse::record),
      textField<E>("sealed", &E::sealed, 0, std::size_t{1} << 20, FieldUse::record),
  };
}

}  // namespace

const FormFields<LimitSetting>& limitFields() {
  using L = LimitSetting;
  static const FormFields<L> kFields{
      wholeField<L>("requests", &L::requests, kLimitCount)
          .means("The number of requests in a window at an endpoint; 0 means no limit.")
          .defaulting("the server\'s")
          .inFile("requests", "see below"),
      durationField<L>("windowMs", &L::window, kMilliUnit, kLimitWindow)
          .means("The length of the window.")
          .defaulting("the server\'s")
          .inFile("window", "`" + units::print(kLimitWindowDefault) + "`"),
      wholeField<L>("concurrent", &L::concurrent, kLimitCount)
          .means("The number of concurrent calls at an endpoint; 0 means no limit.")
          .defaulting("the server\'s")
          .inFile("concurrent", "see below"),
      wholeField<L>("perWorker", &L::perWorker, kLimitCount)
          .means(
              "The number of requests for each running worker, if more than `requests` in all; concurrent calls grow "
              "alike.")
          .defaulting("the server\'s")
          .inFile("perWorker", "a tenth of `requests`"),
  };
  return kFields;
}

const FormFields<EndpointSpec>& endpointFields() {
  static const FormFields<E> kFields = [] {
    FormFields<E> fields;
    for (const FormFields<E>& group :
         {requestFields(), hardware(), extensionFields(), innerFileFields(), serverFields()}) {
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
  if (spec.templateId.empty() == spec.image.empty() && !isFaulty(faults, "templateId") &&
      !isFaulty(faults, "imageName")) {
    faults.push_back({"templateId", spec.image.empty()
                                        ? "templateId is missing: name the template of the endpoint's workers, or give "
                                          "an imageName, such as plugin/echo"
                                        : "templateId and imageName exclude each other: leave one out"});
  }
  if (spec.workersMin > spec.workersMax && !isFaulty(faults, "workersMin") && !isFaulty(faults, "workersMax")) {
    faults.push_back({"workersMin", "workersMin is greater than workersMax: lower it, or raise workersMax"});
  }
}

}  // namespace jobq
