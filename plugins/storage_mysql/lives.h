// The lives of nodes inside a transaction. A claim locks the life of its holder in share mode until its commit. The end
// of a life locks the life exclusively: it waits for the claims under way, and the jobs of these claims are in the
// table of running jobs when a sweep takes back the jobs of the life. The same lock orders claimed() behind a claim
// whose answer was lost.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "connection/connection.h"
#include "jobq/holder.h"
#include "jobq/time.h"
#include "writes/writer.h"

namespace jobq::mysql {

/// Time for which a life lasts after its last beat.
inline constexpr Millis kLeaseLife{15'000};

/// The row of a node.
struct LifeRow {
  std::uint64_t epoch = 0;
  bool isAlive = false;
};

/// Locks the node exclusively. Returns an empty optional for an unknown node.
std::optional<LifeRow> lockNode(Step& step, std::string_view name);

/// Returns whether the life goes on, and keeps it from ending before the transaction has ended.
bool shareLife(Step& step, const Holder& holder);

/// Waits until each claim that was sent before has been committed or has failed. The connection has no transaction.
void awaitClaims(Connection& connection);

/// Ends a life whose node is locked. A sweep takes back its jobs.
void endLife(Step& step, std::uint64_t epoch);

/// Returns the moment of the last beat or join of any node, or an empty optional before the first.
std::optional<Instant> lastBeat(Step& step);

/// Ends the lives without a beat, unless no node could reach the storage.
void endSilentLives(Step& step);

}  // namespace jobq::mysql
