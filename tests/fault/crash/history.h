// The checker: collects what clients and handlers of all lives have seen, and forgets a job once nothing can be said
// about it any more: its end was seen in two lives. Of such a job only its number, attempt and end are kept, so that a
// run after all of that is still noticed. Pure: it reads no clock and no file. One thread.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "history_rules.h"
#include "jobq/job.h"
#include "journal.h"
#include "post_book.h"

namespace jobq::fault {

struct Violation {
  std::string sentence;  ///< names the job
  std::string evidence;  ///< everything that is known about it
};

/// Of all lives so far.
struct Totals {
  std::uint64_t acknowledged = 0;
  std::uint64_t unknown = 0;        ///< submissions without a whole answer
  std::uint64_t sentAgain = 0;      ///< of these sent again under their key, and answered
  std::uint64_t answeredTwice = 0;  ///< answered ones that were sent again under their key
  std::uint64_t unknownFound = 0;   ///< those of them that exist after all: the journal has them
  std::uint64_t checked = 0;        ///< jobs whose end was seen in two lives
  std::uint64_t expired = 0;        ///< jobs whose results expired before that; see unproven
  std::uint64_t unproven = 0;       ///< those of them whose end was not seen once
  std::uint64_t runs = 0;
  std::uint64_t cutOff = 0;      ///< runs that a kill ended
  std::uint64_t repeated = 0;    ///< runs that had ended, but a kill came before that was stored
  std::uint64_t neverBegan = 0;  ///< claims that a kill ended before their handler began
  std::uint64_t completed = 0;   ///< ends of the checked
  std::uint64_t failed = 0;
  std::uint64_t lost = 0;        ///< were FAILED because their worker was lost too often; some were retried
  std::uint64_t lostUnseen = 0;  ///< those of them of which the journal has no run
  std::uint64_t cancelled = 0;
  std::uint64_t retries = 0;        ///< that the checked show
  std::uint64_t booked = 0;         ///< of completed, those whose endpoint's counters are compared
  std::uint64_t bookedRetries = 0;  ///< of retries
  std::uint64_t purges = 0;
  std::uint64_t purged = 0;    ///< jobs that are gone, and were purged or had a short ttl
  std::uint64_t ttls = 0;      ///< calls that set one
  std::uint64_t pages = 0;     ///< answers of /stream
  std::uint64_t pieces = 0;    ///< chunks in them
  std::uint64_t streamed = 0;  ///< reads of a COMPLETED job's whole stream
};

class History {
 public:
  explicit History(Rules rules) : rules_(std::move(rules)) {}

  /// The next life begins, with this process.
  void lifeBegins(int process);
  int life() const { return static_cast<int>(processes_.size()) - 1; }

  /// A submission in the present life; `id` is empty when its answer was not read whole. A keyed one may be told again.
  void sent(const Plan& plan, const Span& span, const std::string& id);
  void saw(std::uint64_t number, Sight sight);
  void ordered(std::uint64_t number, Order order);
  void missed(std::uint64_t number, Absence absence);
  void streamed(std::uint64_t number, Page page);
  /// A /purge-queue of the fleeting endpoint.
  void purged(const Order& order);
  void called(const Call& call) { post_.called(call); }
  /// A line that the present life wrote.
  void noted(const JournalLine& line);

  /// The present life is over, and all of it was told. Returns what is wrong, each thing once.
  std::vector<Violation> lifeEnds();

  /// After the last life: jobs that exist and have not ended.
  std::vector<Violation> unfinished() const;

  /// The jobs that clients should ask about: they exist and are not checked yet. Oldest first.
  std::vector<const JobHistory*> open() const;

  /// Keyed submissions that were not answered yet: to be sent again.
  std::vector<Plan> unanswered() const;

  const Totals& totals() const { return totals_; }
  const PostBook& post() const { return post_; }

 private:
  /// What is left of a job; inQueue: nothing was closed under this number.
  struct Closed {
    std::uint32_t attempt = 0;
    JobState state = JobState::inQueue;
  };

  JobHistory* find(std::uint64_t number);
  void begin(JobHistory& job, const JournalLine& line);
  void end(JobHistory& job, const JournalLine& line);
  /// False: it stays open.
  bool close(const JobHistory& job, bool accused);
  void count(const JobHistory& job, const Sight& end);
  void countAbsent(const JobHistory& job, const Sight* end);
  void accuse(const std::string& who, const std::string& fault, const std::string& evidence);

  const Rules rules_;
  std::vector<int> processes_;                          ///< of each life
  std::unordered_map<std::uint64_t, JobHistory> jobs_;  ///< by number; what is not closed
  std::vector<Closed> closed_;                          ///< by number
  std::vector<Violation> violations_;                   ///< since the last lifeEnds
  PostBook post_;
  Totals totals_;
};

}  // namespace jobq::fault
