#include "worker_environment.h"

#include <cstdlib>

namespace jobq::process {

std::map<std::string, std::string> inheritedVariables() {
  std::map<std::string, std::string> found;
  for (const char* const name : {"PATH", "HOME", "LANG", "LC_ALL", "TZ", "TMPDIR", "SSL_CERT_FILE"}) {
    if (const char* const value = std::getenv(name)) found.emplace(name, value);
  }
  return found;
}

std::string joinedWithCommas(const std::vector<std::string>& words) {
  std::string joined;
  for (const std::string& word : words) joined += (joined.empty() ? "" : ",") + word;
  return joined;
}

std::map<std::string, std::string> environmentOf(const std::string& mark, std::map<std::string, std::string> own,
                                                 const std::map<std::string, std::string>& inherited) {
  own.insert(inherited.begin(), inherited.end());
  own.insert_or_assign(std::string(kMark), mark);
  return own;
}

}  // namespace jobq::process
