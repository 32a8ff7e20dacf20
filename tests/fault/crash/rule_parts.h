// The rules that have a file of their own. Each adds a sentence to `faults` for everything that breaks it; the history
// is sorted by time.
#pragma once

#include <string>
#include <vector>

#include "history_rules.h"

namespace jobq::fault {

using Faults = std::vector<std::string>;

/// Returns " in life N", for the sentence of a fault: which start of the server saw it.
inline std::string inLife(int life) { return " in life " + std::to_string(life); }

/// A 404 has a reason: the retention, a purge that found the job in line, or a short ttl. What is gone stays gone.
void absencesAreEarned(const JobHistory& job, const Rules& rules, Faults& faults);

/// /stream: each chunk of an attempt once, in order, no other's among them, and all of them with the end.
void streamsAreWhole(const JobHistory& job, Faults& faults);

}  // namespace jobq::fault
