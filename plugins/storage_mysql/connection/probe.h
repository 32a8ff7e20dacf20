// Checks of the database before the storage trusts it with jobs. Each function returns one result, and a result other
// than success has a sentence with the remedy.
#pragma once

#include <span>
#include <vector>

#include "connection/connection.h"
#include "jobq/log.h"
#include "jobq/plugin.h"
#include "jobq/time.h"

namespace jobq::mysql {

/// Checks the server's version and settings, and the server's clock against `host`. Needs no table. Throws MysqlError.
std::vector<CheckResult> checkServer(Connection& connection, const Clock& host);

/// Checks that the user may change rows, and that the server takes changes under the isolation of the connection. The
/// changes are rolled back. The schema exists.
CheckResult checkChanges(Connection& connection);

/// Checks whether two sessions of the node reach the same server of a Galera cluster: the locks of a server exclude
/// sessions of the same server only. Other databases pass. Throws MysqlError.
CheckResult checkSameServer(Connection& first, Connection& second);

/// Checks with two sessions and one row whether a locked row excludes another session, and whether SKIP LOCKED passes
/// over the row. A database that accepts the words without locking would give out each job several times. The schema
/// exists.
CheckResult checkLocks(Connection& first, Connection& second);

/// Compares the two clocks. `ahead` is the clock of the database minus the clock of this host.
CheckResult checkClocks(Millis ahead);

/// Makes all checks on the database of the settings, without a lasting change. An empty database gets a table for the
/// time of the checks. Throws nothing but ConfigError.
std::vector<CheckResult> probe(const Connector& connector, const Clock& host);

/// Throws StorageError with the text of the first failure. Writes each warning to the log, as the event
/// `storage.<name>`.
void enforce(std::span<const CheckResult> results, Log& log);

}  // namespace jobq::mysql
