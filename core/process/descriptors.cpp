#include "core/process/descriptors.h"

#include <sys/resource.h>

#include <algorithm>

#include "jobq/call_descriptors.h"

namespace jobq {
namespace {

constexpr rlim_t kMostKept = 256;

}  // namespace

std::uint64_t raiseDescriptorLimit() noexcept {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;
  const rlim_t before = limit.rlim_cur;
  limit.rlim_cur = limit.rlim_max;
  return setrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur : before;
}

// The limit may change while the server runs (prlimit), so the system is asked each time.
std::uint64_t descriptorsForConnections() noexcept {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return RLIM_INFINITY;
  return limit.rlim_cur - std::min(kMostKept, limit.rlim_cur / 8);
}

std::uint64_t descriptorsForCalls() noexcept {
  rlimit limit{};
  return connectionsForCalls(getrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur : RLIM_INFINITY);
}

}  // namespace jobq
