#include "core/start_check.h"

#include <arpa/inet.h>

#include <filesystem>
#include <system_error>
#include <vector>

#include "core/base/curl_url.h"
#include "core/config/filter_name.h"
#include "core/config/template.h"
#include "core/endpoints/endpoint_record.h"
#include "core/http/transport/byte_stream.h"
#include "core/model/image.h"
#include "core/plugin/local_images.h"
#include "core/webhooks/webhook_secrets.h"
#include "jobq/base64.h"
#include "jobq/error.h"
#include "jobq/json.h"
#include "jobq/json_writer.h"

namespace jobq {
namespace {

// Checks of keys of the configuration with names of plugins as the values.
class NameChecks {
 public:
  NameChecks(const PluginHost& host, const std::filesystem::path& handlerScripts, Mistakes& mistakes)
      : host_(host), localImages_(localImages(host, handlerScripts)), mistakes_(mistakes) {}

  // `written` is the value as the configuration has it.
  void need(const std::string& key, PluginKind kind, const std::string& name, const std::string& written) const {
    if (!host_.has(kind, name)) {
      mistakes_.add(key + " = " + written + ": " + host_.absence(kind, name));
    } else {
      mistakes_.collect([&] { host_.checkValues(kind, name); }, key);
    }
  }
  void need(const std::string& key, PluginKind kind, const std::string& name) const { need(key, kind, name, name); }

  void needFilters(const std::string& key, const std::vector<std::string>& filters) const {
    if (const auto good = checkFilterNames(filters); !good) return mistakes_.add(key + ": " + good.failure().message());
    for (const std::string& filter : filters) {
      need(key, PluginKind::admissionFilter, parseFilter(filter)->plugin, filter);
    }
  }

  void needHandler(const std::string& key, const std::string& image) const {
    if (const auto good = checkImageName(image); !good) return mistakes_.add(key + " " + good.failure().message());
    if (const auto good = checkRemoteImage(image, localImages_); !good) {
      return mistakes_.add(key + " = " + image + " " + good.failure().message());
    }
    const Image parsed = parseImage(image);
    if (parsed.kind == Image::Kind::plugin) need(key, PluginKind::handler, parsed.name, image);
    if (parsed.kind == Image::Kind::lua) need(key, PluginKind::handler, "lua", image);
  }

 private:
  const PluginHost& host_;
  const std::vector<std::string> localImages_;
  Mistakes& mistakes_;
};

// Adds a mistake if the script has no file. The text of a script is read when the plugin is made, and a check makes no
// plugin; a missing file can be reported before.
void needScript(const std::string& key, const std::filesystem::path& folder, const std::string& name,
                Mistakes& mistakes) {
  const std::filesystem::path file = folder / (name + ".lua");
  std::error_code ignored;
  if (std::filesystem::is_regular_file(file, ignored)) return;
  mistakes.add(key + " needs " + file.string() + ", which does not exist: create the file, or set scripts.path");
}

void needFilterScripts(const std::string& key, const Config& config, const std::vector<std::string>& filters,
                       Mistakes& mistakes) {
  for (const std::string& filter : filters) {
    const auto name = parseFilter(filter);
    if (name && !name->script.empty()) needScript(key, config.scriptPath / "filters", name->script, mistakes);
  }
}

// Returns `origin` with the IPv6 address of `host` in the spelling of browsers: the longest run of zeros as "::", and a
// single zero as "0". inet_ntop() differs in addresses with an IPv4 part alone.
std::string withPlainIpv6(std::string origin, const std::string& host) {
  in6_addr address{};
  char text[INET6_ADDRSTRLEN] = "";
  if (inet_pton(AF_INET6, host.substr(1, host.size() - 2).c_str(), &address) != 1) return origin;
  inet_ntop(AF_INET6, &address, text, sizeof text);
  return origin.replace(origin.find('['), host.size(), "[" + std::string(text) + "]");
}

// Throws ConfigError unless `origin` has the form of the header Origin of browsers: scheme and host in lower case, and
// a port only if the port is not the default port of the scheme.
void checkOrigin(const std::string& origin) {
  if (origin == "*") return;
  const auto parts = readUrlParts(origin);
  const bool isWeb = parts && (parts->scheme == "http" || parts->scheme == "https") && parts->port != 0;
  if (!isWeb) {
    throw ConfigError("server.cors.origins = " + origin + ": write origins such as https://app.example.com, or *");
  }
  std::string written = lowered(parts->scheme + "://" + parts->host);
  if (parts->port != (parts->scheme == "https" ? 443 : 80)) written += ":" + std::to_string(parts->port);
  if (parts->host.starts_with('[')) written = withPlainIpv6(written, parts->host);
  if (origin != written) throw ConfigError("server.cors.origins = " + origin + ": browsers send " + written);
  if (parts->host.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789.-_:[]") != std::string::npos) {
    throw ConfigError("server.cors.origins = " + origin + ": write the host in its form for DNS (xn--...)");
  }
  if (parts->host.ends_with('.') || parts->host.find("[::ffff:") == 0) {
    throw ConfigError("server.cors.origins = " + origin + ": browsers spell this host in another way");
  }
}

// Throws ConfigError unless the text is empty or an address such as http://10.0.0.5:8000.
void checkLauncherUrl(const std::string& url) {
  if (url.empty()) return;
  const auto parts = readUrlParts(url);
  const bool isWeb = parts && (parts->scheme == "http" || parts->scheme == "https") && parts->port != 0;
  const std::size_t path = isWeb ? url.find('/', url.find("://") + 3) : 0;
  if (isWeb && (path == std::string::npos || path + 1 == url.size()) && url.find_first_of("?#@") == std::string::npos) {
    return;
  }
  throw ConfigError("launcher.url = " + url + ": write scheme, host and port alone, such as http://10.0.0.5:8000");
}

// Returns the opened text of the member `sealed`, empty without the member; nullopt if another key sealed the text.
std::optional<std::string> unseal(const Record& record, const SecretBox& secrets) {
  const auto document = json::read(record.body);
  const auto* object = std::get_if<json::Document>(&document);
  const auto value = object != nullptr ? object->find("sealed") : std::nullopt;
  const auto sealed = fromBase64(value ? json::toText(*value).value_or("") : "");
  try {
    return secrets.open(sealed.value_or(""));
  } catch (const Error&) {  // sealed with another key
    return std::nullopt;
  }
}

bool isLoopback(const std::string& host) {
  return host == "localhost" || host == "::1" || host == "[::1]" || host.starts_with("127.");
}

}  // namespace

void checkNames(const Config& config, const PluginHost& host, Mistakes& mistakes) {
  const NameChecks names(host, config.scriptPath / "handlers", mistakes);
  names.need("storage", PluginKind::storage, config.storage);
  names.need("limiter", PluginKind::rateLimiter, config.limiter);
  names.need("queue.policy", PluginKind::queuePolicy, config.queuePolicy);
  for (const std::string& name : config.webhookTransports) {
    names.need("webhook.transports", PluginKind::webhookTransport, name);
  }
  if (!config.launcher.empty()) names.need("launcher", PluginKind::workerLauncher, config.launcher);
  mistakes.collect([&] { checkLauncherUrl(config.launcherUrl); });
  names.needFilters("filters", config.endpointDefaults.filters);
  for (const EndpointSpec& endpoint : config.endpoints) {
    const std::string prefix = "endpoint." + endpoint.id;
    names.needHandler(prefix + ".image", endpoint.image);
    // A mistake in the values of the server is reported once, not for each endpoint.
    if (endpoint.queuePolicy != config.queuePolicy) {
      names.need(prefix + ".queuePolicy", PluginKind::queuePolicy, endpoint.queuePolicy);
    }
    if (*endpoint.filters != config.endpointDefaults.filters) names.needFilters(prefix + ".filters", *endpoint.filters);
  }
}

std::string describePrograms(const Config& config) {
  std::string lines;
  for (const EndpointSpec& endpoint : config.endpoints) {
    const Image image = parseImage(endpoint.image);
    lines += "endpoint " + endpoint.id + ": " + endpoint.image;
    if (image.kind == Image::Kind::plugin) lines += ", a handler in the server";
    if (image.kind == Image::Kind::lua) {
      lines += ", the script " + (config.scriptPath / "handlers" / (image.name + ".lua")).string();
    }
    lines += image.kind == Image::Kind::remote ? ", remote workers\n" : "\n";
  }
  return lines;
}

void checkOrigins(const Config& config) {
  for (const std::string& origin : config.server.corsOrigins) checkOrigin(origin);
}

void checkFiles(const Config& config, Mistakes& mistakes) {
  if (!config.server.tlsCertificate.empty()) {
    mistakes.collect([&] { (void)TlsContext(config.server.tlsCertificate.string(), config.server.tlsKey.string()); });
  }
  needFilterScripts("filters", config, config.endpointDefaults.filters, mistakes);
  for (const EndpointSpec& endpoint : config.endpoints) {
    const std::string prefix = "endpoint." + endpoint.id;
    const Image image = parseImage(endpoint.image);
    if (image.kind == Image::Kind::lua) {
      needScript(prefix + ".image = " + endpoint.image, config.scriptPath / "handlers", image.name, mistakes);
    }
    if (*endpoint.filters != config.endpointDefaults.filters) {
      needFilterScripts(prefix + ".filters", config, *endpoint.filters, mistakes);
    }
  }
}

std::optional<std::string> exposureOf(const Config& config) {
  if (!config.allowPrivateAddresses || isLoopback(config.server.host)) return std::nullopt;
  return "net.allowPrivate = true, and server.host = " + config.server.host +
         ": callers on other machines can reach this machine's loopback and private addresses through handlers and "
         "webhooks; set net.allowPrivate = false in production";
}

void checkSecretKey(RecordStore& records, const SecretBox& secrets, const std::filesystem::path& keyFile) {
  constexpr const char* kKind = "secretKey";
  constexpr const char* kId = "check";
  bool opens = true;
  if (!records.find(kKind, kId)) {
    for (const std::string_view kind : {kTemplateKind, kEndpointKind, kWebhookSecretKind}) {
      for (const Record& record : records.list(kind)) opens = opens && unseal(record, secrets).has_value();
    }
    const std::string body =
        json::object([&](json::ObjectWriter& out) { out.member("sealed", toBase64(secrets.seal(kId))); });
    if (opens) (void)records.create({kKind, kId, "", body, 0, {}});  // another node may have been first
  }
  const auto record = records.find(kKind, kId);
  if (opens && record && unseal(*record, secrets) == kId) return;
  if (secrets.isNew()) {
    std::error_code ignored;
    std::filesystem::remove(keyFile, ignored);
  }
  throw ConfigError("secret.keyFile: " + keyFile.string() + (secrets.isNew() ? " is missing" : " is not the key") +
                    " that sealed the secrets in the storage: copy the file secret.key that was kept with the backup, "
                    "or that of another node of the storage; etc/operation.md, \"Backup\", says what to do without it");
}

}  // namespace jobq
