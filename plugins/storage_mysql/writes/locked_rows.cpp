#include "writes/locked_rows.h"

#include <algorithm>
#include <utility>

namespace jobq::mysql {
namespace {

/// Number of ids in one statement. Places without an id repeat the last id.
constexpr std::size_t kLockedTogether = 16;
#define JOBQ_MYSQL_PLACES "?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?"

}  // namespace

void LockedRows::lock(Connection& connection, std::vector<std::string_view> ids) {
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  for (std::size_t from = 0; from < ids.size(); from += kLockedTogether) {
    Query query = connection.query("SELECT " JOBQ_MYSQL_ROW
                                   " FROM job FORCE INDEX (job_id) WHERE id IN (" JOBQ_MYSQL_PLACES ") FOR UPDATE");
    for (std::size_t i = 0; i < kLockedTogether; ++i) query.bind(ids[std::min(from + i, ids.size() - 1)]);
    while (query.next()) {
      JobRow row = rowOf(query);
      rows_.insert_or_assign(row.id, std::move(row));
    }
  }
}

std::optional<JobRow> LockedRows::extract(std::string_view id) {
  const auto found = rows_.find(id);
  if (found == rows_.end()) return std::nullopt;
  JobRow row = std::move(found->second);
  rows_.erase(found);
  return row;
}

}  // namespace jobq::mysql
