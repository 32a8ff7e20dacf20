// Rows of jobs that the writer locks for several operations of a group with one statement.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string_view>
#include <vector>

#include "connection/connection.h"
#include "job_row.h"
#include "jobq/job.h"

namespace jobq::mysql {

/// Rows locked by the present transaction, each for the first operation on its job. A row is as it was before the
/// group: the writer runs the operations that take rows before all others. Not thread-safe.
class LockedRows {
 public:
  /// Locks the rows of the jobs with these ids. The ids are sorted, so that transactions lock rows in one order. Throws
  /// MysqlError.
  void lock(Connection& connection, std::vector<std::string_view> ids);

  /// Returns the row and forgets the row, or returns an empty optional.
  std::optional<JobRow> extract(std::string_view id);

 private:
  std::map<JobId, JobRow, std::less<>> rows_;
};

}  // namespace jobq::mysql
