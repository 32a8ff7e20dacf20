// Rows of jobs, locked by the writer with one statement for several operations of a group.
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

/// Rows locked by the current transaction, each for the first operation on its job. A row has the values from before
/// the group: the writer runs the operations with locked rows before all others. Not thread-safe.
class LockedRows {
 public:
  /// Locks the rows of the jobs with the ids. The ids are sorted, so all transactions lock rows in the same order.
  /// Throws MysqlError.
  void lock(Connection& connection, std::vector<std::string_view> ids);

  /// Returns the row and forgets the row, or returns an empty optional.
  std::optional<JobRow> extract(std::string_view id);

 private:
  std::map<JobId, JobRow, std::less<>> rows_;
};

}  // namespace jobq::mysql
