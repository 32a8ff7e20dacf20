#include "webhook_syncs.h"

#include <dlfcn.h>
#include <sys/stat.h>

#include <atomic>
#include <cerrno>

namespace jobq::test {
namespace {

std::atomic<int> count{0};
std::atomic<bool> failing{false};

}  // namespace

int syncs() { return count; }
FailingSyncs::FailingSyncs() { failing = true; }
FailingSyncs::~FailingSyncs() { failing = false; }

}  // namespace jobq::test

extern "C" __attribute__((visibility("default"))) int fsync(int file) {
  static const auto systems = reinterpret_cast<int (*)(int)>(dlsym(RTLD_NEXT, "fsync"));
  struct stat what {};
  ::fstat(file, &what);
  if (jobq::test::failing && S_ISREG(what.st_mode)) {
    errno = EIO;
    return -1;
  }
  ++jobq::test::count;
  return systems(file);
}
