#include "core/config/server_settings.h"

namespace jobq {
namespace {

using C = Config;
using L = LimitSetting;

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

SettingSection serverSection() {
  return {
      "Server",
      {
          textSetting<C>("server.host", ofServer(&ServerConfig::host),
                         "The address on which the server listens; `0.0.0.0` means all addresses of the machine."),
          wholeSetting<C>(
              "server.port", ofServer(&ServerConfig::port), {0, 65'535},
              "The port; 0 takes any free port, which is then in the file `address` of the data directory."),
          wholeSetting<C>("server.threads", ofServer(&ServerConfig::threads), {4, 10'000},
                          "The most threads that serve requests, started when needed. Beyond 16 for each processor a "
                          "thread ends after a second without work. A caller that waits for a job and an idle "
                          "connection need no thread.")
              .withDefault("128 for each processor, at least 128 and at most 1024"),
          wholeSetting<C>("server.waiting", ofServer(&ServerConfig::waiting), {1, 10'000'000},
                          "The callers that may wait for jobs at once, 8 KB of memory each. A caller beyond is "
                          "answered with the present state of its job."),
          sizeSetting<C>("server.bodyMemory", ofServer(&ServerConfig::bodyMemory), kLargestBody, kTerabyte,
                         "The memory for all request bodies over 1 MB while they are read. A body without room reads "
                         "503. The bodies of one endpoint have a quarter of it, at least 20 MB."),
          wholeSetting<C>("server.connectionsPerAddress", ofServer(&ServerConfig::connectionsPerAddress),
                          {0, 10'000'000},
                          "The connections that one client address may have at once; an IPv6 /64 network counts as one "
                          "address. 0 means any number, which a server behind a reverse proxy needs."),
          // core/start_check.h checks the origins.
          listSetting<C>("server.cors.origins", ofServer(&ServerConfig::corsOrigins),
                         "The origins whose pages may call the API from a browser, such as `https://app.example.com`; "
                         "`*` means any."),
          pathSetting<C>("server.tls.certificate", ofServer(&ServerConfig::tlsCertificate),
                         "A PEM file with the certificate chain. With it the port speaks TLS 1.2 and 1.3 and nothing "
                         "else. Needs `server.tls.key`."),
          pathSetting<C>("server.tls.key", ofServer(&ServerConfig::tlsKey),
                         "The PEM file with the private key of the certificate."),
          durationSetting<C>("server.keepAlive", ofServer(&ServerConfig::keepAlive), kSecond, kHour,
                             "The time for which a connection may be idle. Worker clients lose results below 15 s."),
          durationSetting<C>("server.streamSilence", ofServer(&ServerConfig::streamSilence), kSecond, kHour,
                             "The time after which a silent event stream sends a comment line, and a stream of "
                             "`/openai` without a first event opens its answer. A proxy in front must wait longer."),
          durationSetting<C>("server.drain", ofServer(&ServerConfig::drain), Millis(0), kHour,
                             "The time that running jobs have to finish after SIGTERM; the rest goes back to the "
                             "queue, uncounted."),
      }};
}

SettingSection dataSection() {
  return {"Data",
          {
              pathSetting<C>(
                  "data.dir", &C::dataDir,
                  "The folder of the database, `admin.key`, `secret.key`, `address`, `node-id` and `lock`; made with "
                  "mode 0700, used by one server at a time. Must lie on a local file system."),
              pathSetting<C>("secret.keyFile", &C::secretKeyFile,
                             "The file with the key that seals `s3Config`, webhook secrets and template env.")
                  .withDefault("`secret.key` in `data.dir`"),
              textSetting<C>("storage", &C::storage,
                             "The storage plugin: `sqlite` is durable, `memory` is gone with the process."),
              durationSetting<C>("storage.wait", &C::storageWait, Millis(0), kHour,
                                 "How long a start waits for a database that refuses connections, cannot be reached or "
                                 "does not answer. The port is open meanwhile, and `/readyz` answers 503."),
              textSetting<C>("node.name", &C::nodeName, 1, 64,
                             "The name of this server in a storage that several servers share, different for each "
                             "server and the same at each start.")
                  .withDefault("the name of the host and an id from the file `node-id` in `data.dir`"),
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
                             "The names of plugins without which the server must not start."),
              pathSetting<C>("scripts.path", &C::scriptPath,
                             "The folder with `handlers/<name>.lua` and `filters/<name>.lua`.")
                  .withDefault("the installed scripts, else `scripts/lua` of the source tree"),
              listSetting<C>("filters", &C::filters,
                             "The filters that judge every job, in order: names of scripts, or `plugin/<name>`."),
              textSetting<C>("queue.policy", &C::queuePolicy,
                             "The plugin that orders the queue: `priority`, `fifo`, `deadline` or `fair`."),
          }};
}

Setting<C> webhookSecret() {
  return {
      "webhook.secret",
      "text",
      "",
      "The secret that signs webhooks: `whsec_` and base64, or any other text for its own bytes.",
      [](C& config, const std::string& key, const std::string& text) { config.webhookKey = units::secret(key, text); },
      {},
      "one is made and kept"};
}

SettingSection launchesSection() {
  return {
      "Workers that the server starts",
      {
          textSetting<C>("launcher", &C::launcher,
                         "The plugin that starts remote workers from templates: `process` or `docker`. It runs what "
                         "admins give over REST, so it is off unless this file names it.")
              .withDefault("none"),
          textSetting<C>("launcher.url", &C::launcherUrl,
                         "The address at which such workers reach this server, without a path.")
              .withDefault("`server.host` and `server.port`"),
      }};
}

SettingSection webhooksSection() {
  return {
      "Webhooks and addresses",
      {
          listSetting<C>("webhook.transports", &C::webhookTransports,
                         "The plugins that carry webhooks: `http` for http and https URLs, `file` for `file:///NAME`."),
          webhookSecret(),
          durationSetting<C>("webhook.maxAge", &C::webhookMaxAge, kSecond, kMonth,
                             "The time after which a webhook that is still owed is abandoned."),
          wholeSetting<C>("webhook.maxOwed", &C::webhookMaxOwed, {1, 100'000'000},
                          "The number of webhooks that an endpoint may owe; beyond it the oldest are abandoned, once a "
                          "second."),
          flagSetting<C>("net.allowPrivate", &C::allowPrivateAddresses,
                         "Permits handlers and webhooks to connect to loopback and private addresses. Link-local "
                         "addresses and metadata services of clouds stay closed."),
      }};
}

std::vector<Setting<L>> limitsOfOperations() {
  return {
      wholeSetting<L>("requests", &L::requests, kLimitCount,
                      "The requests in one window at one endpoint; 0 means no limit.")
          .withDefault("see below"),
      durationSetting<L>("window", &L::window, Millis(kLimitWindow.min), Millis(kLimitWindow.max),
                         "The length of the window.")
          .withDefault("`" + units::print(kLimitWindowDefault) + "`"),
      wholeSetting<L>("concurrent", &L::concurrent, kLimitCount,
                      "The concurrent calls at one endpoint; 0 means no limit.")
          .withDefault("see below"),
      wholeSetting<L>("perWorker", &L::perWorker, kLimitCount,
                      "The requests that each running worker adds: the limit in force is the higher of `requests` and "
                      "running workers times this number, and the concurrent calls grow with it.")
          .withDefault("a tenth of `requests`"),
  };
}

SettingSection limitsSection() {
  return {"Limits",
          {
              textSetting<C>("limiter", &C::limiter,
                             "The plugin that counts: `window` counts exactly, `bucket` refills evenly."),
              flagSetting<C>("limits.enabled", ofLimits(&LimitsConfig::enabled),
                             "Switches the limits of rates and of concurrent calls on or off."),
              flagSetting<C>("limits.queue", ofLimits(&LimitsConfig::queue),
                             "Switches the limit on the length of the queue on or off: 429 when more than 50 jobs and "
                             "more than `workersMax` times 500 wait."),
          },
          limitsOfOperations()};
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
                           "The least important events that are written."),
          choiceSetting<C>("log.format", &C::logFormat, Formats{{"text", LogFormat::text}, {"json", LogFormat::json}},
                           "One line an event on standard error, as text or as a JSON object with `time`, `level`, "
                           "`event` and `message`."),
      }};
}

}  // namespace

const std::vector<SettingSection>& serverSettings() {
  static const std::vector<SettingSection> kSections{serverSection(),   dataSection(),     pluginsSection(),
                                                     launchesSection(), webhooksSection(), limitsSection(),
                                                     logSection()};
  return kSections;
}

}  // namespace jobq
