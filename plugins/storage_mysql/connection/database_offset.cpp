#include <algorithm>
#include <array>

#include "connection/database_clock.h"

namespace jobq::mysql {

// The median of three measurements ignores a single slow answer.
Millis measureOffset(Connection& connection, const Clock& host) {
  std::array<Millis, 3> offsets{};
  for (Millis& offset : offsets) {
    const Instant sent = host.now();
    Query query = connection.query("SELECT CAST(UNIX_TIMESTAMP(SYSDATE(3)) * 1000 AS SIGNED)");
    query.next();
    const Millis halfWay = (host.now() - sent) / 2;
    offset = query.instant(0) - (sent + halfWay);
  }
  std::sort(offsets.begin(), offsets.end());
  return offsets[1];
}

}  // namespace jobq::mysql
