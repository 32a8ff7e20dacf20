#include "nodes_findings.h"

namespace jobq::model {

Played& Played::operator+=(const Played& other) {
  runs += other.runs;
  results += other.results;
  lost += other.lost;
  timedOut += other.timedOut;
  released += other.released;
  fences += other.fences;
  pauses += other.pauses;
  crashes += other.crashes;
  faults += other.faults;
  excused += other.excused;
  answered += other.answered;
  answeredElsewhere += other.answeredElsewhere;
  return *this;
}

std::string text(const Played& played) {
  const auto number = [](std::uint64_t count, const char* what) { return std::to_string(count) + " " + what; };
  return number(played.runs, "runs, ") + number(played.results, "results, ") + number(played.lost, "lost, ") +
         number(played.timedOut, "timed out or expired, ") + number(played.released, "released; ") +
         number(played.answered, "callers answered, ") +
         number(played.answeredElsewhere, "of them from another node; ") + number(played.fences, "fences, ") +
         number(played.pauses, "pauses, ") + number(played.crashes, "crashes, ") +
         number(played.faults, "calls with a fault; ") + number(played.excused, "excused moments");
}

}  // namespace jobq::model
