#include "registry_auths.h"

#include <sys/stat.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstddef>
#include <fstream>
#include <iterator>
#include <system_error>
#include <utility>

#include "image_reference.h"
#include "jobq/base64.h"
#include "jobq/byte_order_mark.h"
#include "jobq/error.h"
#include "jobq/fields.h"
#include "jobq/json.h"
#include "jobq/json_writer.h"

namespace jobq::docker {
namespace {

constexpr const char* kSetting = "launcher.docker.auths";
constexpr std::size_t kMostCredentials = 1'000;

std::string readPrivateText(const std::filesystem::path& file) {
  constexpr mode_t kOthers = 077;
  struct stat status {};
  const std::string start = std::string(kSetting) + " names " + file.string() + ", ";
  if (::stat(file.c_str(), &status) != 0) {
    throw ConfigError(start + "which cannot be read (" + std::generic_category().message(errno) +
                      "): create the file, or let this user read it");
  }
  if ((status.st_mode & kOthers) != 0) {
    throw ConfigError(start + "which other users may read: run chmod 600 " + file.string());
  }
  std::ifstream in(file, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(in), {}};
  if (!in.is_open() || in.bad()) throw ConfigError(start + "which cannot be read: let this user read the file");
  return text;
}

// The alphabet of base64 for URLs, which Docker expects.
std::string toUrlBase64(const std::string& text) {
  std::string encoded = toBase64(text);
  std::replace(encoded.begin(), encoded.end(), '+', '-');
  std::replace(encoded.begin(), encoded.end(), '/', '_');
  return encoded;
}

RegistryAuth authOf(const Fields& credentials) {
  credentials.allowOnly({"server", "user", "password"});
  const std::string server = credentials.requiredText("server");
  std::string header = toUrlBase64(json::object([&](json::ObjectWriter& out) {
    out.member("username", credentials.requiredText("user"));
    out.member("password", credentials.requiredText("password"));
    out.member("serveraddress", server);
  }));
  return {std::move(header), registryOfServer(server)};
}

constexpr std::string_view kDockers = "docker.io";

std::string hostOf(std::string_view host) {
  std::string small(host);
  std::transform(small.begin(), small.end(), small.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  const bool isDockers =
      small == "index.docker.io" || small == "registry-1.docker.io" || small == "registry.hub.docker.com";
  return isDockers ? std::string(kDockers) : small;
}

}  // namespace

std::string registryOfImage(std::string_view image) {
  const std::string_view registry = registryIn(image);
  return registry.empty() ? std::string(kDockers) : hostOf(registry);
}

// Docker writes the address of the registry of Docker as a URL: https://index.docker.io/v1/.
std::string registryOfServer(std::string_view server) {
  if (const std::size_t scheme = server.find("://"); scheme != server.npos) server.remove_prefix(scheme + 3);
  return hostOf(server.substr(0, server.find('/')));
}

std::optional<std::string> authFault(const RegistryAuths& auths, const ContainerSpec& container) {
  if (container.registryAuthId.empty()) return std::nullopt;
  const auto auth = auths.find(container.registryAuthId);
  const std::string start = "containerRegistryAuthId is " + json::quoted(container.registryAuthId);
  if (auth == auths.end()) {
    return start +
           ", and no such credentials are known: add them to the file that launcher.docker.auths names, and start the "
           "server again.";
  }
  const std::string registry = registryOfImage(container.image);
  if (registry == auth->second.registry) return std::nullopt;
  return start + ", and these credentials are for " + auth->second.registry + ", while the image is of " + registry +
         ": name an image of " + auth->second.registry + ", or other credentials.";
}

RegistryAuths readRegistryAuths(const std::filesystem::path& file) {
  const std::string text = readPrivateText(file);
  RegistryAuths auths;
  try {
    const Fields names("the file", withoutByteOrderMark(text), kMostCredentials);
    for (const json::Member& member : names.members()) {
      const std::string name = json::decode(member.key);
      // Templates without credentials have the empty name.
      if (name.empty()) throw FieldError("the file", {}, "must have a name for each credentials, not \"\"");
      auths.emplace(name, authOf(names.requiredObject(name)));
    }
  } catch (const FieldError& fault) {
    throw ConfigError(std::string(kSetting) + " names " + file.string() + ": " + fault.what() +
                      R"(; write {"NAME": {"server": "registry.example", "user": "...", "password": "..."}})");
  }
  return auths;
}

}  // namespace jobq::docker
