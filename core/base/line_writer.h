// Lines to a descriptor, usually standard error, with a reader that may be slow or may have stopped: a full pipe stops
// no thread that logs.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "jobq/mutex.h"

namespace jobq {

/// Names lost lines. Any thread.
class LossReport {
 public:
  virtual ~LossReport() = default;
  /// Returns the line that tells the number of lost lines.
  virtual std::string lossLine(std::uint64_t lost) const = 0;
};

/// Any thread.
class LineWriter {
 public:
  /// The descriptor stays open. Descriptor and report outlive the object.
  LineWriter(int descriptor, const LossReport& losses) : descriptor_(descriptor), losses_(losses) {}

  /// Writes `line` and a line feed. Waits 200 ms for a reader, once: while the descriptor takes nothing, later lines
  /// are lost at once. The report of the loss comes before the next line that can be written. A loss may cut a line of
  /// more than 4,096 bytes. Throws std::bad_alloc, and the exceptions of the report.
  void write(std::string_view line);

 private:
  bool isReady() JOBQ_REQUIRES(mutex_);
  bool writeLine(std::string_view line) JOBQ_REQUIRES(mutex_);
  bool writeBytes(std::string_view bytes) JOBQ_REQUIRES(mutex_);

  const int descriptor_;
  const LossReport& losses_;
  Mutex mutex_;
  std::uint64_t lost_ JOBQ_GUARDED_BY(mutex_) = 0;  // lines since the last line written
  bool isStalled_ JOBQ_GUARDED_BY(mutex_) = false;  // the last wait was in vain
  bool isCut_ JOBQ_GUARDED_BY(mutex_) = false;      // the last line written has no end
};

}  // namespace jobq
