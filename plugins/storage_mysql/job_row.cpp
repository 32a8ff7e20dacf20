#include "job_row.h"

namespace jobq::mysql {

JobRow rowOf(const CurrentRow& columns) {
  JobRow row;
  row.num = columns.integer(0);
  row.id = columns.text(1);
  row.endpoint = columns.text(2);
  row.state = columns.state(3);
  row.attempt = columns.number(4);
  row.losses = columns.number(5);
  row.retries = columns.number(6);
  row.maxAttempts = columns.number(7);
  row.low = columns.flag(8);
  row.executionTimeout = columns.millis(9);
  row.ttl = columns.millis(10);
  row.retention = columns.millis(11);
  row.submittedAt = columns.instant(12);
  row.expiresAt = columns.instant(13);
  row.expiryFixed = columns.flag(14);
  row.owes = columns.flag(15);
  row.chunks = columns.integer(16);
  row.taken = columns.integer(17);
  row.logLines = columns.integer(18);
  row.takenBy = columns.count(19);
  row.takenFrom = columns.integer(20);
  row.rank = columns.integer(21);
  row.arrival = columns.integer(22) == 0 ? row.num : columns.integer(22);
  row.queuedAt = columns.instant(23);
  row.hasProgress = columns.flag(24);
  return row;
}

}  // namespace jobq::mysql
