// Returns the space of removed jobs to the file system.
//
// SQLite keeps the pages of deleted rows for later rows. In a file with auto_vacuum=INCREMENTAL the writer can move the
// last pages of the file into such free pages and cut the file off; a checkpoint then makes the file shorter. Files
// without the setting, made by earlier versions, cannot shrink, but a copy of such a file can (`backup.h`).
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>

#include "connection.h"
#include "jobq/log.h"
#include "jobq/time.h"
#include "reads/readers.h"
#include "writes/step.h"
#include "writes/writer.h"

namespace jobq::sqlite {

/// Cuts free pages off the database file. Any thread may call run(). The writer, the readers and the clock outlive the
/// object.
class Shrinker {
 public:
  Shrinker(Writer& writer, Readers& readers, Clock& clock) : writer_(writer), readers_(readers), clock_(clock) {}

  /// Cuts free pages off while more than 1,000 pages and more than a tenth of the file are free: at most 512 pages (2
  /// MB) in a call, 64 pages in a commit, and at most two calls a second. No other write waits for more than a commit
  /// of 64 pages. Costs two reads of the file's first page when there is no space to return. A failure of the storage
  /// ends the call silently: the next write reports the reason.
  void run();

  /// Lets run() return at once until the object is destroyed: a copy of the database holds a snapshot, so pages cut off
  /// would grow the log and could not leave the file. The shrinker outlives the pause.
  class Pause {
   public:
    explicit Pause(Shrinker& shrinker) : shrinker_(shrinker) { ++shrinker_.pauses_; }
    ~Pause() { --shrinker_.pauses_; }
    Pause(const Pause&) = delete;
    Pause& operator=(const Pause&) = delete;

   private:
    Shrinker& shrinker_;
  };

 private:
  bool isDue();
  bool cutSome(Step& step) const;

  Writer& writer_;
  Readers& readers_;
  Clock& clock_;
  std::atomic<int> pauses_ = 0;
  std::atomic<std::int64_t> nextAt_ = 0;  // milliseconds since the epoch
};

/// Logs once, at a start, how to convert a file with much free space that cannot shrink. Throws StorageError.
void adviseConversion(Connection& connection, const std::filesystem::path& file, Log& log);

}  // namespace jobq::sqlite
