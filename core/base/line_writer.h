// Lines to a descriptor, usually standard error, with a slow or missing reader: a full pipe or terminal stops no
// logging thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "jobq/mutex.h"

namespace jobq {

/// Names lost lines.
class LossReport {
 public:
  virtual ~LossReport() = default;
  /// Returns a line with the number of lost lines. Called with the lock of the writer: the function writes no line.
  virtual std::string lossLine(std::uint64_t lost) const = 0;
};

/// Any thread.
class LineWriter {
 public:
  /// The descriptor stays open. Descriptor and report outlive the object. A pipe or a terminal is opened a second time,
  /// without waits; where that is refused, a terminal may stop the writer.
  LineWriter(int descriptor, const LossReport& losses);
  ~LineWriter();
  LineWriter(const LineWriter&) = delete;
  LineWriter& operator=(const LineWriter&) = delete;

  /// Writes `line` and a line feed. Waits up to 200 ms for a reader, and within 5 s not again: lines meanwhile are lost
  /// at once. The report of a loss comes with the next written line. A part of a lost line may have been written; a
  /// line feed then ends the part. Throws std::bad_alloc, and the exceptions of the report: the line is lost without a
  /// report.
  void write(std::string_view line);
  /// Reports lost lines, if the descriptor takes the report.
  void reportLosses();

 private:
  /// Writes the report of earlier losses, if there are any, and the lines. Returns false if a part was not written.
  bool writeLines(std::string_view lines) JOBQ_REQUIRES(mutex_);
  /// Returns false if a part was not written.
  bool writeBytes(std::string_view bytes) JOBQ_REQUIRES(mutex_);
  /// Returns true when the descriptor takes bytes, and false at `end`.
  bool waitForReader(std::chrono::steady_clock::time_point end) const;

  const int own_;  // the descriptor that was opened a second time, or -1
  const int descriptor_;
  const bool isSocket_;
  const LossReport& losses_;
  Mutex mutex_;
  std::uint64_t lost_ JOBQ_GUARDED_BY(mutex_) = 0;  // lines since the last report
  bool isCut_ JOBQ_GUARDED_BY(mutex_) = false;      // the last line written has no end
  // No wait begins earlier.
  std::chrono::steady_clock::time_point nextWait_ JOBQ_GUARDED_BY(mutex_){};
};

}  // namespace jobq
