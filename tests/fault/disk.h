// A disk beneath SQLite with power cuts and failing calls. The class wraps the file layer of the system and becomes the
// default layer, so the storage plugin uses the disk unchanged.
//
// Power: written bytes without a sync lie in a cache and are lost in a power cut. Written pages, truncations,
// deletions, syncs and the creation of files are counted as steps. At a chosen step the power goes: the step and all
// later steps fail, as on a machine in the middle of a stop. The platters then hold all synced bytes and a random part
// of the rest: of each page of 4 KB of a write no byte, all bytes, or some of its sectors of 512 bytes. SQLite counts
// on no less: a sector is written whole, and bytes beside a write are not harmed. The name of a new file survives a
// power cut after a sync of its folder only, which the system's layer does at the first sync of a new log, journal or
// body file. A sync costs no time here.
//
// Faults: the n-th call of a kind answers with an error, once or from then on. Calls of other kinds work.
#pragma once

#include <sqlite3.h>

#include <array>
#include <cstdint>
#include <filesystem>
#include <map>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "jobq/mutex.h"

namespace jobq::fault {

enum class DiskCall { write, sync, truncate, open, remove };
inline constexpr std::array kDiskCalls{DiskCall::write, DiskCall::sync, DiskCall::truncate, DiskCall::open,
                                       DiskCall::remove};
std::string nameOf(DiskCall call);

/// A failing call.
struct DiskFault {
  DiskCall call{};
  std::uint64_t number = 0;  ///< 1 is the first call from now on; 0 means no failure
  bool forever = false;      ///< all later calls fail as well
  int answer = SQLITE_IOERR;
};

/// Thread-safe.
class Disk {
 public:
  /// Returns the only disk; the first call installs it and must come before SQLite opens a file.
  static Disk& instance();

  /// Puts the files in `folder` and in its folder `bodies` on this disk from now on. Their present content counts as
  /// synced.
  void watch(std::filesystem::path folder);
  void forget();

  /// Cuts the power at step number `step`, counted from now; 0 means never.
  void cutAt(std::uint64_t step);
  bool isCut() const;
  /// Returns the number of steps since cutAt().
  std::uint64_t steps() const;
  /// Turns the power on again and writes the surviving bytes back to the folder. No file may be open.
  void restore(std::mt19937_64& random);

  void fail(const DiskFault& fault);
  /// Returns the number of calls of the kind `call` since fail().
  std::uint64_t calls(DiskCall call) const;
  /// Returns true if the planned fault has struck.
  bool hasFailed() const;

 private:
  friend struct Layer;

  struct Pending {
    bool truncation = false;
    std::uint64_t at = 0;  // offset in bytes, or the new size of a truncation
    std::string bytes;
  };
  struct File {
    bool safe = false;  // the file's name survives a cut
    bool deleted = false;
    std::string platter;
    std::vector<Pending> cache;
  };

  File* watched(const char* name) JOBQ_REQUIRES(mutex_);
  /// Counts a step that needs power; returns the SQLite result code for the caller.
  int step(DiskCall call) JOBQ_REQUIRES(mutex_);
  /// Counts a step without a call of its own.
  int stepOfPower() JOBQ_REQUIRES(mutex_);
  /// Adds a write to the cache of the file, with a step for each page; returns the SQLite result code for the caller.
  int write(const char* name, std::uint64_t at, std::string_view bytes) JOBQ_REQUIRES(mutex_);
  /// Counts a call; returns the SQLite result code for the caller.
  int answerTo(DiskCall call) JOBQ_REQUIRES(mutex_);
  static void resolve(File& file, std::mt19937_64& random);
  static void resolve(File& file, const Pending& write, int fate, std::mt19937_64& random);
  static void sync(File& file);
  /// Makes the names in the folder of the file `name` durable.
  void syncFolderOf(const char* name) JOBQ_REQUIRES(mutex_);

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
