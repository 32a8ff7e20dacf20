#include "core/config/server_settings.h"

#include <cstddef>
#include <set>
#include <string>
#include <vector>

#include "core/base/words.h"
#include "core/config/endpoint_spec.h"
#include "jobq/error.h"

namespace jobq {
namespace {

using C = Config;

constexpr Millis kSecond{1'000};
constexpr Millis kHour{3'600'000};
constexpr Millis kMonth{2'592'000'000};  // 30 days
constexpr std::uint64_t kLargestBody = 20UL << 20;
constexpr std::uint64_t kTerabyte = 1UL << 40;

// Return a function from the configuration to a member of one of its groups.
template <class Member>
auto ofServer(Member ServerConfig::*member) {
  return [member](auto& config) -> auto& { return config.server.*member; };
}
template <class Member>
auto ofLimits(Member LimitsConfig::*member) {
  return [member](auto& config) -> auto& { return config.limits.*member; };
}

template <class Member>
auto ofDefaults(Member EndpointConfig::*member) {
  return [member](auto& config) -> auto& { return config.endpointDefaults.*member; };
}

/// Returns the accessor of a member of the attempts of webhooks.
template <class Member>
auto ofRetries(Member WebhookBackoff::*member) {
  return [member](auto& config) -> auto& { return config.endpointDefaults.webhookRetries.*member; };
}

SettingSection serverSection() {
  using Transports = std::vector<std::pair<std::string, TransportKind>>;
  return {"Server",
          {
              choiceSetting<C>("server.transport", ofServer(&ServerConfig::transport),
                               Transports{{"reactor", TransportKind::reactor}, {"poco", TransportKind::poco}},
                               "The own transport, or Poco's HTTP server with a thread for each connection, as a "
                               "reference for comparisons."),
              textSetting<C>("server.host", ofServer(&ServerConfig::host),
                             "The listening address; `0.0.0.0` means all addresses of the machine."),
              wholeSetting<C>("server.port", ofServer(&ServerConfig::port), {0, 65'535},
                              "The port; 0 takes any free port, written to the file `address` of `data.dir`."),
              wholeSetting<C>(
                  "server.threads", ofServer(&ServerConfig::threads), {4, 10'000},
                  "The most threads for requests. A thread beyond 16 for each processor ends after an idle second.")
                  .withDefault("128 for each processor, at least 128 and at most 1024"),
              wholeSetting<C>(
                  "server.waiting", ofServer(&ServerConfig::waiting), {1, 10'000'000},
                  "The most callers waiting for jobs, 8 KB each. Further callers get the current state of the job."),
              sizeSetting<C>("server.bodyMemory", ofServer(&ServerConfig::bodyMemory), kLargestBody, kTerabyte,
                             "The memory for request bodies over 1 MB; a caller without room reads 503. An endpoint "
                             "has a quarter, at least 20 MB."),
              wholeSetting<C>("server.connectionsPerAddress", ofServer(&ServerConfig::connectionsPerAddress),
                              {0, 10'000'000},
                              "The most connections of a client address, or of an IPv6 /64 network; 0 means no limit, "
                              "for a server behind a proxy."),
              // core/start_check.h checks the origins.
              listSetting<C>(
                  "server.cors.origins", ofServer(&ServerConfig::corsOrigins),
                  "The origins of pages with access to the API, such as `https://app.example.com`; `*` means any."),
              pathSetting<C>("server.tls.certificate", ofServer(&ServerConfig::tlsCertificate),
                             "A PEM file with the certificate chain. The port then speaks only TLS 1.2 and 1.3. Needs "
                             "`server.tls.key`."),
              pathSetting<C>("server.tls.key", ofServer(&ServerConfig::tlsKey),
                             "The PEM file with the private key of the certificate."),
              durationSetting<C>("server.keepAlive", ofServer(&ServerConfig::keepAlive), kSecond, kHour,
                                 "The longest idle time of a connection. Worker clients lose results below 15 s."),
              durationSetting<C>("server.streamSilence", ofServer(&ServerConfig::streamSilence), kSecond, kHour,
                                 "The time without events before a stream sends a comment line, and `/openai` begins "
                                 "an answer. Proxies must wait longer."),
              durationSetting<C>(
                  "server.drain", ofServer(&ServerConfig::drain), Millis(0), kHour,
                  "The time for running jobs to finish after SIGTERM; the rest goes back to the queue, uncounted."),
          }};
}

SettingSection dataSection() {
  return {"Data",
          {
              pathSetting<C>("data.dir", &C::dataDir,
                             "The folder of the database, `admin.key`, `secret.key`, `address`, `node-id` and `lock`, "
                             "with mode 0700, on a local file system, for a single server."),
              pathSetting<C>("secret.keyFile", &C::secretKeyFile,
                             "The file with the key for sealed values: `s3Config`, webhook secrets, template env.")
                  .withDefault("`secret.key` in `data.dir`"),
              textSetting<C>("storage", &C::storage,
                             "The storage plugin: `sqlite` is durable, `memory` loses all jobs with the process."),
              durationSetting<C>(
                  "storage.wait", &C::storageWait, Millis(0), kHour,
                  "The longest wait of a start for a database out of reach; `/readyz` answers 503 meanwhile."),
              textSetting<C>(
                  "node.name", &C::nodeName, 1, 64,
                  "The name of the server in a shared storage, different for each server and the same at each start.")
                  .withDefault("the host's name and an id from the file `node-id`"),
          }};
}

Setting<C> pluginsPath() {
  return {"plugins.path",
          "paths",
          "",
          "The folders with `libjobq_*.so`.",
          [](C& config, const std::string&, const std::string& text) {
            config.pluginPath.clear();
            for (const std::string& path : units::words(text, ":")) config.pluginPath.push_back(config.folder / path);
          },
          {},
          "`../plugins` beside the folder of the program, else the installed folder"};
}

SettingSection pluginsSection() {
  return {"Plugins and scripts",
          {
              pluginsPath(),
              listSetting<C>("plugins.required", &C::pluginsRequired,
                             "The plugins without which the server must not start."),
              pathSetting<C>("scripts.path", &C::scriptPath,
                             "The folder with `handlers/<name>.lua` and `filters/<name>.lua`.")
                  .withDefault("the installed scripts, else `scripts/lua` of the source tree"),
              listSetting<C>("filters", ofDefaults(&EndpointConfig::filters),
                             "The filters for every job, in order: names of scripts, or `plugin/<name>`."),
              textSetting<C>("queue.policy", &C::queuePolicy,
                             "The plugin for the order of the queue: `priority`, `fifo`, `deadline` or `fair`."),
          }};
}

Setting<C> webhookSecret() {
  return {
      "webhook.secret",
      "text",
      "",
      "The secret for signatures of webhooks: `whsec_` and base64, or any other text as bytes.",
      [](C& config, const std::string& key, const std::string& text) { config.webhookKey = units::secret(key, text); },
      {},
      "one is made and kept"};
}

// Ids as nvidia-smi has them, such as 0 or GPU-5a1c..., or names of the Container Device Interface.
Setting<C> launcherGpus() {
  Setting<C> row =
      listSetting<C>("launcher.gpus", &C::launcherGpus,
                     "The ids of the GPUs for launched workers, such as `0, 1`. Each worker has `gpuCount` of the list "
                     "for itself, and waits for free ones.");
  const auto read = row.parse;
  row.parse = [read](C& config, const std::string& key, const std::string& text) {
    constexpr std::size_t kLongest = 128;
    read(config, key, text);
    std::set<std::string> known;
    for (const std::string& gpu : config.launcherGpus) {
      if (gpu.size() > kLongest || !isPlain(gpu, "-_.:/=")) {
        throw ConfigError(key + " has an id with a character that no GPU has: write ids such as 0, 1");
      }
      if (!known.insert(gpu).second) throw ConfigError(key + " names " + gpu + " twice: name each GPU once");
    }
  };
  return row;
}

SettingSection launchesSection() {
  return {
      "Workers that the server starts",
      {
          textSetting<C>(
              "launcher", &C::launcher,
              "The plugin to start remote workers: `process` or `docker`. Admins may then run programs on the machine.")
              .withDefault("none"),
          textSetting<C>("launcher.url", &C::launcherUrl,
                         "The address of the server for launched workers, without a path.")
              .withDefault("`server.host` and `server.port`"),
          launcherGpus(),
      }};
}

SettingSection webhooksSection() {
  return {"Webhooks and addresses",
          {
              listSetting<C>("webhook.transports", &C::webhookTransports,
                             "The plugins for webhooks: `http` for http and https URLs, `file` for `file:///NAME`."),
              webhookSecret(),
              wholeSetting<C>("webhook.attempts", ofRetries(&WebhookBackoff::attempts), kWebhookAttempts,
                              "The number of calls of a webhook in all, if its receiver does not take the webhook."),
              durationSetting<C>("webhook.pause", ofRetries(&WebhookBackoff::pause), Millis(kWebhookPause.min),
                                 Millis(kWebhookPause.max), "The time between the first call and the second."),
              wholeSetting<C>("webhook.factor", ofRetries(&WebhookBackoff::factor), kWebhookFactor,
                              "The factor from each pause to the next. A pause has at most 12 h."),
              durationSetting<C>("webhook.maxAge", &C::webhookMaxAge, kSecond, kMonth,
                                 "The age at which an undelivered webhook is abandoned."),
              wholeSetting<C>("webhook.maxOwed", &C::webhookMaxOwed, {1, 100'000'000},
                              "The most undelivered webhooks of an endpoint; the oldest beyond are abandoned."),
              flagSetting<C>("net.allowPrivate", &C::allowPrivateAddresses,
                             "Permits handlers and webhooks to connect to loopback and private addresses. Link-local "
                             "addresses and metadata services of clouds stay closed."),
          }};
}

std::vector<Setting<LimitSetting>> limitsOfOperations() {
  std::vector<Setting<LimitSetting>> settings;
  for (const FormField<LimitSetting>& field : limitFields()) settings.push_back(field.setting);
  return settings;
}

SettingSection limitsSection() {
  return {"Limits",
          {
              textSetting<C>("limiter", &C::limiter, "The counter: `window` counts exactly, `bucket` refills evenly."),
              flagSetting<C>("limits.enabled", ofLimits(&LimitsConfig::enabled),
                             "Switches the limits of rates and of concurrent calls."),
              flagSetting<C>("limits.queue", ofLimits(&LimitsConfig::queue), "Switches the limit of waiting jobs."),
              wholeSetting<C>(
                  "limits.maxQueued", ofDefaults(&EndpointConfig::maxQueued), kMaxQueued,
                  "The number of waiting jobs at which an endpoint answers 429 to `/run` and `/runsync`, unless "
                  "the endpoint has a `maxQueued` of its own."),
          },
          limitsOfOperations()};
}

SettingSection retentionSection() {
  return {"Retention of results",
          {
              durationSetting<C>("retention.run", ofDefaults(&EndpointConfig::runRetention), Millis(kRetention.min),
                                 Millis(kRetention.max), "The time for which the result of a job of `/run` stays."),
              durationSetting<C>("retention.runsync", ofDefaults(&EndpointConfig::runsyncRetention),
                                 Millis(kRetention.min), Millis(kRetention.max),
                                 "The same for `/runsync`. A longer `wait` keeps the result longer."),
              durationSetting<C>("retention.failed", ofDefaults(&EndpointConfig::failedRetention),
                                 Millis(kFailureRetention.min), Millis(kFailureRetention.max),
                                 "The time for which a FAILED or TIMED_OUT job stays, also beyond its ttl. With `0s` "
                                 "failures stay as long as other results."),
          }};
}

SettingSection logSection() {
  using Levels = std::vector<std::pair<std::string, LogLevel>>;
  using Formats = std::vector<std::pair<std::string, LogFormat>>;
  return {
      "Log",
      {
          choiceSetting<C>("log.level", &C::logLevel,
                           Levels{{"debug", LogLevel::debug},
                                  {"information", LogLevel::information},
                                  {"warning", LogLevel::warning},
                                  {"error", LogLevel::error}},
                           "The least important events in the log."),
          choiceSetting<C>("log.format", &C::logFormat, Formats{{"text", LogFormat::text}, {"json", LogFormat::json}},
                           "Each line as text, or as a JSON object with `time`, `level`, "
                           "`event` and `message`."),
      }};
}

}  // namespace

const std::vector<SettingSection>& serverSettings() {
  static const std::vector<SettingSection> kSections{serverSection(),    dataSection(),     pluginsSection(),
                                                     launchesSection(),  webhooksSection(), limitsSection(),
                                                     retentionSection(), logSection()};
  return kSections;
}

}  // namespace jobq
