#include "job_row.h"

namespace jobq::mysql {

JobRow rowOf(const CurrentRow& columns) {
  JobRow row;
  sql::readJobRow(columns, row);
  constexpr int kFirst = sql::kJobRowColumns;
  row.rank = columns.integer(kFirst);
  row.arrival = columns.integer(kFirst + 1) == 0 ? row.num : columns.integer(kFirst + 1);
  row.queuedAt = columns.instant(kFirst + 2);
  row.hasProgress = columns.flag(kFirst + 3);
  return row;
}

}  // namespace jobq::mysql
