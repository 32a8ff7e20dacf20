#include "process_user.h"

#include <grp.h>
#include <linux/capability.h>
#include <pwd.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <vector>

#include "jobq/error.h"

namespace jobq::process {
namespace {

constexpr int kMostGroups = 1'000;

// The guard is a separate program: unless the server runs as root, only the server's ambient capabilities pass to the
// guard.
bool maySetUsers() {
  constexpr std::array kNeeded{CAP_SETUID, CAP_SETGID, CAP_KILL};
  return ::geteuid() == 0 || std::all_of(kNeeded.begin(), kNeeded.end(), [](int capability) {
           return ::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_IS_SET, capability, 0, 0) == 1;
         });
}

}  // namespace

std::string userNumbersOf(const std::string& name) {
  if (name.empty()) return {};
  passwd user{};
  passwd* found = nullptr;
  std::vector<char> texts(64UL << 10);
  (void)::getpwnam_r(name.c_str(), &user, texts.data(), texts.size(), &found);
  if (found == nullptr) {
    throw ConfigError("launcher.process.user: there is no user " + name +
                      " on this machine: create it, or name another");
  }
  if (!maySetUsers()) {
    throw ConfigError(
        "launcher.process.user: this server may not start processes as another user: run it as root, or "
        "with the ambient capabilities CAP_SETUID, CAP_SETGID and CAP_KILL");
  }
  std::array<gid_t, kMostGroups> groups{};
  int count = kMostGroups;
  if (::getgrouplist(name.c_str(), user.pw_gid, groups.data(), &count) < 0) count = kMostGroups;
  std::string numbers = std::to_string(user.pw_uid) + " " + std::to_string(user.pw_gid);
  for (int i = 0; i < count; ++i) numbers += " " + std::to_string(groups[static_cast<std::size_t>(i)]);
  return numbers;
}

}  // namespace jobq::process
