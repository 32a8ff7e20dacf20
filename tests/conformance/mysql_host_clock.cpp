// The storage mysql with the clock of the host, in the place of plugins/storage_mysql/connection/database_offset.cpp:
// the conformance tests move the clock of the host by hand, and the storage follows. A test that moves the clock of the
// database writes the difference into the row `test_offset` of the table `counted`.
#include "connection/database_clock.h"

namespace jobq::mysql {

Millis measureOffset(Connection& connection, const Clock&) {
  try {
    Query query = connection.query("SELECT value FROM counted WHERE name = 'test_offset'");
    return Millis(query.next() ? query.integer(0) : 0);
  } catch (const MysqlError&) {  // before the first schema
    return Millis(0);
  }
}

}  // namespace jobq::mysql
