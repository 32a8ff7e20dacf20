// Rules with a file of their own. Each rule adds a sentence to `faults` for every breach; the history is sorted by
// time.
#pragma once

#include <string>
#include <vector>

#include "history_rules.h"

namespace jobq::fault {

using Faults = std::vector<std::string>;

/// Returns " in life N", the start of the server named in a fault.
inline std::string inLife(int life) { return " in life " + std::to_string(life); }

/// Expects a reason for each 404: the retention, a purge of the queued job, or a short ttl. An absent job stays absent.
void absencesAreEarned(const JobHistory& job, const Rules& rules, Faults& faults);

/// Expects of /stream each chunk of an attempt once, in order, without chunks of other attempts, and all chunks with
/// the end.
void streamsAreWhole(const JobHistory& job, Faults& faults);

}  // namespace jobq::fault
