#include "registry_auths.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <iterator>
#include <system_error>

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

std::string headerOf(const Fields& credentials) {
  credentials.allowOnly({"server", "user", "password"});
  return toUrlBase64(json::object([&credentials](json::ObjectWriter& out) {
    out.member("username", credentials.requiredText("user"));
    out.member("password", credentials.requiredText("password"));
    out.member("serveraddress", credentials.requiredText("server"));
  }));
}

}  // namespace

RegistryAuths readRegistryAuths(const std::filesystem::path& file) {
  const std::string text = readPrivateText(file);
  RegistryAuths auths;
  try {
    const Fields names("the file", withoutByteOrderMark(text), kMostCredentials);
    for (const json::Member& member : names.members()) {
      const std::string name = json::decode(member.key);
      auths.emplace(name, headerOf(names.requiredObject(name)));
    }
  } catch (const FieldError& fault) {
    throw ConfigError(std::string(kSetting) + " names " + file.string() + ": " + fault.what() +
                      R"(; write {"NAME": {"server": "registry.example", "user": "...", "password": "..."}})");
  }
  return auths;
}

}  // namespace jobq::docker
