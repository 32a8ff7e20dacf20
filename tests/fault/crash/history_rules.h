// What is known about one job, from its clients' logs and the handlers' journal, and the rules it has to keep. Pure:
// the same history gives the same faults. Times are CLOCK_MONOTONIC nanoseconds; a life is one server process, numbered
// from 0, and every life but the present one has ended in a kill.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "jobq/job.h"

namespace jobq::fault {

using Nanos = std::int64_t;

/// When a client asked, and when it had read the whole answer or knew that none would come. What the server did for
/// it, it did in between.
struct Span {
  Nanos asked = 0;
  Nanos answered = 0;
};

/// What was submitted.
struct Plan {
  std::uint64_t number = 0;  ///< no other job has it
  std::string endpoint;
  std::uint32_t workMs = 0;
  std::uint32_t failBelow = 0;  ///< attempts below it fail
  bool sync = false;            ///< by /runsync
  bool keyed = false;           ///< with an Idempotency-Key of its own: asked again when there was no answer
  bool webhook = false;
  std::uint32_t chunks = 0;  ///< that each of its runs emits, numbered from 0
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

/// An answer that showed the job's state.
struct Sight {
  Span span;
  int life = 0;
  JobState state = JobState::inQueue;
  bool whole = true;  ///< false: id and status only, as /cancel answers
  std::uint32_t retries = 0;
  std::string output;
  std::string error;
};

/// A /cancel, a /retry, a /purge-queue of the job's endpoint, or a /status?ttl=.
struct Order {
  enum class Command { cancel, retry, purge, ttl };
  enum class Effect { done, refused, unknown };
  Command verb = Command::cancel;
  Effect effect = Effect::done;
  Span span;
  int life = 0;
  Nanos ttl = 0;  ///< of Verb::ttl
};

/// A 404.
struct Absence {
  Span span;
  int life = 0;
};

/// A chunk, as the witness emits it: it names its job, the attempt that said it, and its place.
struct Piece {
  std::uint64_t number = 0;
  std::uint32_t attempt = 0;
  std::uint32_t place = 0;
};

/// An answer of /stream. In one life a job's stream has one consumer.
struct Page {
  Span span;
  int life = 0;
  bool read = true;      ///< false: no whole answer; chunks may have gone with it
  bool consumes = true;  ///< false: by ?offset=0
  std::uint32_t attempt = 0;
  JobState state = JobState::inQueue;
  std::vector<Piece> pieces{};
};

struct JobHistory {
  Plan plan;
  std::string id;             ///< empty: neither an answer nor the journal has named it yet
  bool acknowledged = false;  ///< false: its submission was not answered; it may or may not exist
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

/// A sentence for each rule that the history breaks; none for a clean one. Sorts the history by time first.
std::vector<std::string> faultsOf(JobHistory& job, const Rules& rules);

/// The number's own output, as the witness is to return it.
std::string outputOf(std::uint64_t number);

/// Everything that is known about the job, a line each, in the order of time: what a human needs to judge a fault.
std::string describe(const JobHistory& job);

/// The number in "its worker was lost N times"; nothing for another error.
std::optional<std::uint32_t> lossesIn(const std::string& error);

/// Calls of /retry that may have had an effect by then.
std::uint32_t retriesAsked(const JobHistory& job, Nanos until);

/// Whether a /retry may have taken effect between two moments.
bool mayHaveBeenRetried(const JobHistory& job, Nanos from, Nanos to);

}  // namespace jobq::fault
