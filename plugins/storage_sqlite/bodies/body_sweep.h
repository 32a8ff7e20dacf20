// Deletes the files of large bodies that no row names any more.
#pragma once

#include <cstdint>
#include <vector>

#include "bodies/body_files.h"
#include "jobq/mutex.h"
#include "reads/readers.h"
#include "writes/writer.h"

namespace jobq::sqlite {

/// Any thread may call run(). The files, the writer and the readers outlive the object.
class BodySweep {
 public:
  BodySweep(BodyFiles& files, Writer& writer, Readers& readers) : files_(files), writer_(writer), readers_(readers) {}

  /// Deletes at most 64 files without owners, each after the deletion of its row is on disk. Costs a read of an empty
  /// index if there is no such file. Returns whether there may be more. A failure of the storage ends the call
  /// silently: the next write reports the reason.
  bool run();

  /// Returns whether run() would find a file; false also if the storage cannot be read.
  bool isDue();

  /// Lets run() return at once until the object is destroyed: a copy of the database names the files of its moment. The
  /// constructor waits for the end of a call of run() that is under way. The sweep outlives the pause.
  class Pause {
   public:
    explicit Pause(BodySweep& sweep) : sweep_(sweep) { sweep_.beginPause(); }
    ~Pause() { sweep_.endPause(); }
    Pause(const Pause&) = delete;
    Pause& operator=(const Pause&) = delete;

   private:
    BodySweep& sweep_;
  };

 private:
  bool begin();
  void end();
  void beginPause();
  void endPause();
  std::vector<std::int64_t> findSome();

  BodyFiles& files_;
  Writer& writer_;
  Readers& readers_;
  Mutex mutex_;
  Condition ended_;
  bool runs_ JOBQ_GUARDED_BY(mutex_) = false;
  int pauses_ JOBQ_GUARDED_BY(mutex_) = 0;
};

}  // namespace jobq::sqlite
