// The known facts about one job, from its clients' logs and the handlers' journal, and the rules for its history. Pure:
// the same history gives the same faults. Times are CLOCK_MONOTONIC nanoseconds. A life is one server process, numbered
// from 0. Every life but the present one has ended in a kill.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "jobq/job.h"

namespace jobq::fault {

using Nanos = std::int64_t;

/// The time from a client's request to its whole answer, or to the certainty that no answer would come. The server
/// acted within this span.
struct Span {
  Nanos asked = 0;
  Nanos answered = 0;
};

/// The content of a submission.
struct Plan {
  std::uint64_t number = 0;  ///< unique among all jobs
  std::string endpoint;
  std::uint32_t workMs = 0;
  std::uint32_t failBelow = 0;  ///< lower attempts fail
  bool sync = false;            ///< by /runsync
  bool keyed = false;           ///< with an Idempotency-Key of its own; sent again when no answer came
  bool webhook = false;
  std::uint32_t chunks = 0;  ///< number of chunks of each run, numbered from 0
};

/// A run of the handler, from the journal.
struct Run {
  enum class End { none, output, failed, stopped };
  std::uint32_t attempt = 0;
  int life = 0;
  Nanos began = 0;
  Nanos ended = 0;  ///< when `end` is not none
  End end = End::none;
};

/// An answer with the job's state.
struct Sight {
  Span span;
  int life = 0;
  JobState state = JobState::inQueue;
  bool whole = true;  ///< false: id and status only, as in answers of /cancel
  std::uint32_t retries = 0;
  std::string output;
  std::string error;
};

/// A /cancel, a /retry, a /purge-queue of the job's endpoint, or a /status?ttl=.
struct Order {
  enum class Command { cancel, retry, purge, ttl };
  enum class Effect { done, refused, unknown };
  Command command = Command::cancel;
  Effect effect = Effect::done;
  Span span;
  int life = 0;
  Nanos ttl = 0;  ///< for Command::ttl
};

/// A 404.
struct Absence {
  Span span;
  int life = 0;
};

/// A chunk of the witness handler: the number of its job, its attempt and its place.
struct Piece {
  std::uint64_t number = 0;
  std::uint32_t attempt = 0;
  std::uint32_t place = 0;
};

/// An answer of /stream. In one life a job's stream has one consumer.
struct Page {
  Span span;
  int life = 0;
  bool read = true;      ///< false: no whole answer; chunks may have been lost
  bool consumes = true;  ///< false: by ?offset=0
  std::uint32_t attempt = 0;
  JobState state = JobState::inQueue;
  std::vector<Piece> pieces{};
};

struct JobHistory {
  Plan plan;
  std::string id;             ///< empty: neither an answer nor the journal has named the id yet
  bool acknowledged = false;  ///< false: the submission has no answer, and the job may or may not exist
  Span sent;
  int life = 0;
  std::vector<Run> runs;
  std::vector<Sight> sights;
  std::vector<Order> orders;
  std::vector<Absence> absences;
  std::vector<Page> pages;
};

struct Rules {
  std::map<std::string, std::uint32_t> maxAttempts{};  ///< by endpoint
  Nanos runRetention = 1'800'000'000'000;
  Nanos syncRetention = 60'000'000'000;
  std::string fleeting{};  ///< the endpoint whose jobs may be purged or have short ttls; its counters are not compared
};

/// Returns a sentence for each broken rule; empty for a clean history. Sorts the history by time first.
std::vector<std::string> faultsOf(JobHistory& job, const Rules& rules);

/// Returns the only correct output of job `number`.
std::string outputOf(std::uint64_t number);

/// Returns all known facts about the job, a line each, in the order of time, for a human who judges a fault.
std::string describe(const JobHistory& job);

/// Returns N of "its worker was lost N times"; empty for another error.
std::optional<std::uint32_t> lossesIn(const std::string& error);

/// Returns the number of /retry calls with a possible effect until `until`.
std::uint32_t retriesAsked(const JobHistory& job, Nanos until);

/// Returns true if a /retry may have taken effect between two moments.
bool mayHaveBeenRetried(const JobHistory& job, Nanos from, Nanos to);

}  // namespace jobq::fault
