// The sums of the checker, for its report and for the question whether the proof did enough.
#pragma once

#include <cstdint>

#include "history_rules.h"

namespace jobq::fault {

/// Sums over all lives so far.
struct Totals {
  std::uint64_t acknowledged = 0;
  std::uint64_t unknown = 0;        ///< submissions without a whole answer
  std::uint64_t sentAgain = 0;      ///< unknown submissions sent again under their key, and answered
  std::uint64_t answeredTwice = 0;  ///< answered submissions sent again under their key
  std::uint64_t unknownFound = 0;   ///< unknown submissions with an existing job, found in the journal
  std::uint64_t checked = 0;        ///< jobs whose end was seen in two lives
  std::uint64_t expired = 0;        ///< jobs whose results expired before two sights of their end; see unproven
  std::uint64_t unproven = 0;       ///< expired jobs without any sight of their end
  std::uint64_t runs = 0;
  std::uint64_t cutOff = 0;      ///< runs ended by a kill
  std::uint64_t repeated = 0;    ///< ended runs whose end was not stored before a kill
  std::uint64_t neverBegan = 0;  ///< claims ended by a kill before their handler began
  std::uint64_t completed = 0;   ///< ends of the checked jobs
  std::uint64_t failed = 0;
  std::uint64_t lost = 0;        ///< jobs FAILED because their worker was lost too often; some were retried
  std::uint64_t lostUnseen = 0;  ///< lost jobs without a run in the journal
  std::uint64_t cancelled = 0;
  std::uint64_t retries = 0;         ///< retries shown by the checked jobs
  std::uint64_t counted = 0;         ///< completed jobs of endpoints with compared counters
  std::uint64_t countedRetries = 0;  ///< retries of endpoints with compared counters
  std::uint64_t purges = 0;
  std::uint64_t purged = 0;    ///< absent jobs with a purge or a short ttl
  std::uint64_t ttls = 0;      ///< calls with a ttl
  std::uint64_t pages = 0;     ///< answers of /stream
  std::uint64_t pieces = 0;    ///< chunks in the answers of /stream
  std::uint64_t streamed = 0;  ///< reads of a COMPLETED job's whole stream

  /// Adds the known end of a checked job.
  void addEnd(const JobHistory& job, const Sight& end, const Rules& rules);
  /// Adds a job that is absent; `end` is null without any sight of its end.
  void addAbsent(const JobHistory& job, const Sight* end, const Rules& rules);
};

}  // namespace jobq::fault
