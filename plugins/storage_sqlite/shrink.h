// The space of jobs that are gone, given back to the file system.
//
// SQLite keeps the pages of deleted rows for later rows. In a file with auto_vacuum=INCREMENTAL the writer can move the
// last pages of the file into such free pages and cut the file off; a checkpoint then makes it shorter. Files that were
// made before this rule cannot do so: a copy of them can (backup.h).
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>

#include "connection.h"
#include "jobq/log.h"
#include "jobq/time.h"
#include "readers.h"
#include "writer.h"

namespace jobq::sqlite {

/// Any thread. Everything that is lent to it outlives it.
class Shrinker {
 public:
  Shrinker(Writer& writer, Readers& readers, Clock& clock) : writer_(writer), readers_(readers), clock_(clock) {}

  /// Cuts free pages off while more than 1,000 pages and more than a tenth of the file are free: at most 512 pages
  /// (2 MB) a call, 64 pages a commit, and at most twice a second, so that no other write waits for more than one
  /// commit of 64 pages. Costs two reads of the file's first page when there is nothing to do. A storage that fails
  /// ends the call without a word: its next write says why.
  void run();

 private:
  bool isDue();
  bool cutSome(Step& step) const;

  Writer& writer_;
  Readers& readers_;
  Clock& clock_;
  std::atomic<std::int64_t> nextAt_ = 0;  // milliseconds since the epoch
};

/// Tells the operator once, at a start, when a file has much free space and cannot shrink, and how to convert it.
void adviseConversion(Connection& connection, const std::filesystem::path& file, Log& log);

}  // namespace jobq::sqlite
