#include "core/process/node_name.h"

#include <unistd.h>

#include <array>
#include <optional>

#include "core/base/data_dir.h"
#include "core/base/ids.h"

namespace jobq {
namespace {

constexpr std::size_t kLongestHost = 48;
constexpr std::size_t kIdLetters = 10;

std::string hostName() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0 || name[0] == '\0') return "host";
  return std::string(name.data()).substr(0, kLongestHost);
}

}  // namespace

std::string nodeName(const std::string& configured, const std::filesystem::path& dataDir) {
  if (!configured.empty()) return configured;
  const std::filesystem::path file = dataDir / "node-id";
  std::optional<std::string> id = readFile(file);
  if (id) id->erase(id->find_last_not_of("\r\n ") + 1);
  if (!id || id->size() != kIdLetters || !isIdentifier(*id)) {
    id = newName(kIdLetters);
    writePrivateFile(file, *id + "\n");
  }
  return hostName() + "-" + *id;
}

}  // namespace jobq
