// fsync controlled by tests: the fsync of the test program precedes the system's function, also for plugins.
#pragma once

namespace jobq::test {

/// Returns the number of files and folders synced by the program.
int syncs();

/// During the object's life, each sync of a file fails (EIO); syncs of folders succeed.
class FailingSyncs {
 public:
  FailingSyncs();
  ~FailingSyncs();
  FailingSyncs(const FailingSyncs&) = delete;
  FailingSyncs& operator=(const FailingSyncs&) = delete;
};

}  // namespace jobq::test
