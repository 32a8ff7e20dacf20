// fsync as a test wants it: the test program's own stands before the system's, for plugins too.
#pragma once

namespace jobq::test {

/// How many files and folders this program has synced.
int syncs();

/// While it lives, no sync of a file succeeds (EIO); those of folders do.
class FailingSyncs {
 public:
  FailingSyncs();
  ~FailingSyncs();
  FailingSyncs(const FailingSyncs&) = delete;
  FailingSyncs& operator=(const FailingSyncs&) = delete;
};

}  // namespace jobq::test
