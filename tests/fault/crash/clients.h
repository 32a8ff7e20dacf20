// The clients of one life: threads that submit, wait, ask, cancel, retry, purge and read streams, each with a
// connection and a log of its own, until their server is gone. Nothing is checked here: what they saw is told to the
// History when the life is over.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <variant>
#include <vector>

#include "board.h"
#include "history.h"
#include "history_rules.h"
#include "http_client.h"
#include "jobq/job.h"

namespace jobq::fault {

enum class WorkerState { run, runsync, ask, cancel, retry, stream, purge };

/// What a client saw, in its own order.
struct Submission {
  Plan plan;
  Span span;
  std::string id;  ///< empty: no whole answer
};
struct Seen {
  std::uint64_t number;
  Sight sight;
};
struct Ordered {
  std::uint64_t number;
  Order order;
};
struct Missed {
  std::uint64_t number;
  Absence absence;
};
struct Streamed {
  std::uint64_t number;
  Page page;
};
struct Purged {
  Order order;
};
using Entry = std::variant<Submission, Seen, Ordered, Missed, Streamed, Purged>;

/// The endpoint whose line is purged and whose jobs may have short ttls.
inline constexpr const char* kFleeting = "fleeting";
/// Where all webhooks go: lines in <data>/webhooks/post.
inline constexpr const char* kPost = "file:///post";

/// What the clients share.
struct Life {
  int number = 0;
  Address address;
  std::string key;
  Board& board;
  std::atomic<std::uint64_t>& nextNumber;  ///< of the jobs of all lives
  std::size_t mostWaiting = 0;             ///< with more on the board, those who submit ask instead
};

/// One thread.
class Client {
 public:
  Client(const Life& life, WorkerState duty, std::uint64_t seed);

  /// Until the server or the board is gone.
  void work();

  std::vector<Entry>& log() { return log_; }
  /// An answer that no correct server gives; empty for none.
  const std::string& trouble() const { return trouble_; }

 private:
  bool step();
  bool submit(Plan plan, bool andCancel);
  bool submitAgain(const Plan& plan);
  bool askNext(bool waitForOne);
  bool ask(Target target);
  bool setTtl(const Target& target);
  bool stream(const Target& target);
  /// The page that was read; nothing when the client has to go home or the job is gone.
  std::optional<Page> readPage(const Target& target, bool consumes);
  bool purge();
  bool cancel(const Target& target);
  bool retry(const Target& target);
  Plan newPlan(bool sync);
  Plan fleetingPlan();
  bool chance(double part) { return std::uniform_real_distribution<>(0, 1)(random_) < part; }
  std::uint32_t upTo(std::uint32_t most) { return std::uniform_int_distribution<std::uint32_t>(0, most)(random_); }

  /// The same for every answer: false when the client has to go home.
  bool isUsable(const Reply& reply, const std::string& request, std::initializer_list<int> expected);
  /// Writes down the state that an answer shows, and returns it.
  std::optional<JobState> note(std::uint64_t number, const Reply& reply, bool whole);

  const Life& life_;
  const WorkerState duty_;
  std::mt19937_64 random_;
  HttpClient http_;
  std::vector<Entry> log_;
  std::string trouble_;
};

/// The clients of a life as one thing. Made when the server is ready.
class WorkerPool {
 public:
  WorkerPool(const Life& life, const std::vector<WorkerState>& duties, std::uint64_t seed);
  ~WorkerPool();

  /// After the server's death: waits for all of them, and tells what they saw. Returns their troubles.
  std::vector<std::string> tell(History& history);

 private:
  const Life life_;
  std::vector<std::unique_ptr<Client>> clients_;
  std::vector<std::thread> threads_;
};

}  // namespace jobq::fault
