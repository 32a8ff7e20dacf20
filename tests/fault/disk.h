// A disk beneath SQLite whose power can fail, and whose calls can fail. It wraps the system's file layer and becomes
// the default, so that the storage plugin uses it unknowingly.
//
// Power: what was written and not synced lies in a cache that a power cut loses. Writes, truncations, deletions, syncs
// and the making of files are counted as steps; at a chosen step the power goes: that step and all later ones fail, as
// they would for a machine that stops. What is on the platters then is what was synced, and of the rest a random part:
// of each write nothing, all, or some of its sectors of 512 bytes (SQLite counts on no less: a sector is written whole,
// and what lies beside a write is not harmed). A sync costs nothing here.
//
// Faults: the n-th call of a kind answers with an error, once or from then on; the calls of other kinds go on.
#pragma once

#include <sqlite3.h>

#include <array>
#include <cstdint>
#include <filesystem>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "jobq/mutex.h"

namespace jobq::fault {

enum class DiskCall { write, sync, truncate, open, remove };
inline constexpr std::array kDiskCalls{DiskCall::write, DiskCall::sync, DiskCall::truncate, DiskCall::open,
                                       DiskCall::remove};
std::string nameOf(DiskCall call);

/// A call that fails.
struct DiskFault {
  DiskCall call{};
  std::uint64_t number = 0;  ///< 1 is the first from now on; 0: none fails
  bool forever = false;      ///< and all after it
  int answer = SQLITE_IOERR;
};

/// Any thread.
class Disk {
 public:
  /// The one disk; installed at the first call, before SQLite opens anything.
  static Disk& instance();

  /// From now on the files in `folder` are on this disk. What they hold now is safe.
  void watch(std::filesystem::path folder);
  void forget();

  /// The power goes at the step with this number, counted from now; 0: never.
  void cutAt(std::uint64_t step);
  bool isCut() const;
  /// How many steps there were since cutAt().
  std::uint64_t steps() const;
  /// The power is back. Nobody has a file open: what survived is written back to the folder.
  void restore(std::mt19937_64& random);

  void fail(const DiskFault& fault);
  /// How many calls of that kind there were since fail().
  std::uint64_t calls(DiskCall call) const;
  /// The fault has struck.
  bool hasFailed() const;

 private:
  friend struct Layer;

  struct Pending {
    bool truncation = false;
    std::uint64_t at = 0;  // or the new size
    std::string bytes;
  };
  struct File {
    bool safe = false;  // its name survives
    bool deleted = false;
    std::string platter;
    std::vector<Pending> cache;
  };

  File* watched(const char* name) JOBQ_REQUIRES(mutex_);
  /// Counts a call; what it has to answer.
  int step(DiskCall call) JOBQ_REQUIRES(mutex_);
  static void settle(File& file, std::mt19937_64& random);
  static void settle(File& file, const Pending& write, int fate, std::mt19937_64& random);
  static void sync(File& file);
  void syncFolder() JOBQ_REQUIRES(mutex_);

  mutable Mutex mutex_;
  std::filesystem::path folder_ JOBQ_GUARDED_BY(mutex_);
  std::map<std::string, File> files_ JOBQ_GUARDED_BY(mutex_);
  std::uint64_t steps_ JOBQ_GUARDED_BY(mutex_) = 0;
  std::uint64_t cutAt_ JOBQ_GUARDED_BY(mutex_) = 0;
  bool cut_ JOBQ_GUARDED_BY(mutex_) = false;
  std::array<std::uint64_t, kDiskCalls.size()> calls_ JOBQ_GUARDED_BY(mutex_){};
  DiskFault fault_ JOBQ_GUARDED_BY(mutex_);
  bool failed_ JOBQ_GUARDED_BY(mutex_) = false;
};

}  // namespace jobq::fault
