// The checker collects the observations of clients and handlers over all lives. A job is forgotten when its end was
// seen in two lives, because no later observation could contradict its history. Its number, attempt and end are kept,
// so a later run is still noticed. Pure: the checker reads no clock and no file. Confined to one thread.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "history_rules.h"
#include "jobq/job.h"
#include "journal.h"
#include "totals.h"
#include "webhook_calls.h"

namespace jobq::fault {

struct Violation {
  std::string sentence;  ///< names the job
  std::string evidence;  ///< all known facts about the job
};

class History {
 public:
  explicit History(Rules rules) : rules_(std::move(rules)) {}

  /// Begins the next life, of the process `process`.
  void lifeBegins(int process);
  int life() const { return static_cast<int>(processes_.size()) - 1; }

  /// Adds a submission in the present life; `id` is empty without a whole answer. A submission with a key may come
  /// again.
  void sent(const Plan& plan, const Span& span, const std::string& id);
  void saw(std::uint64_t number, Sight sight);
  void ordered(std::uint64_t number, Order order);
  void missed(std::uint64_t number, Absence absence);
  void streamed(std::uint64_t number, Page page);
  /// Adds a /purge-queue of the endpoint `fleeting`.
  void purged(const Order& order);
  void called(const ReceivedCall& call) { webhooks_.called(call); }
  /// Adds a journal line of the present life.
  void noted(const JournalLine& line);

  /// Ends the present life after all its observations were added. Returns each violation once.
  std::vector<Violation> lifeEnds();

  /// Returns, after the last life, the existing jobs without an end.
  std::vector<Violation> unfinished() const;

  /// Returns the jobs for clients to ask about: existing and not checked yet. Oldest first.
  std::vector<const JobHistory*> open() const;

  /// Returns the submissions with a key but without an answer, to be sent again.
  std::vector<Plan> unanswered() const;

  const Totals& totals() const { return totals_; }
  const WebhookCalls& webhooks() const { return webhooks_; }

 private:
  /// The remains of a forgotten job; with state inQueue no job of this number was forgotten.
  struct Closed {
    std::uint32_t attempt = 0;
    JobState state = JobState::inQueue;
  };

  JobHistory* find(std::uint64_t number);
  void end(JobHistory& job, const JournalLine& line);
  /// Forgets a job; returns false if the job stays open.
  bool close(const JobHistory& job, bool accused);
  void addViolation(const std::string& who, const std::string& fault, const std::string& evidence);

  const Rules rules_;
  std::vector<int> processes_;                          ///< process of each life
  std::unordered_map<std::uint64_t, JobHistory> jobs_;  ///< by number; the open jobs
  std::vector<Closed> closed_;                          ///< by number
  std::vector<Violation> violations_;                   ///< since the last lifeEnds
  WebhookCalls webhooks_;
  Totals totals_;
};

}  // namespace jobq::fault
