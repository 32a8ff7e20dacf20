// The clients of one life: threads that submit, wait, ask, cancel, retry, purge and read streams, each with a
// connection and a log of its own, until the server is gone. No client checks an answer: all logs go to the History
// when the life is over.
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

enum class ClientRole { run, runsync, ask, cancel, retry, stream, purge };

/// The entries of a client's log, in the order of the client.
struct Submission {
  Plan plan;
  Span span;
  std::string id;  ///< empty without a whole answer
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

/// The endpoint whose queue is purged and whose jobs may have short ttls.
inline constexpr const char* kFleeting = "fleeting";
/// The target of all webhooks: lines in <data>/webhooks/post.
inline constexpr const char* kWebhook = "file:///post";

/// State shared by the clients.
struct Life {
  int number = 0;
  Address address;
  std::string key;
  Board& board;
  std::atomic<std::uint64_t>& nextNumber;  ///< number of the next job over all lives
  std::size_t mostWaiting = 0;             ///< with more jobs on the board, submitting clients ask instead
};

/// A client on a thread of its own.
class Client {
 public:
  Client(const Life& life, ClientRole role, std::uint64_t seed);

  /// Runs until the server or the board is gone.
  void work();

  std::vector<Entry>& log() { return log_; }
  /// Returns an answer impossible for a correct server; empty if all answers were possible.
  const std::string& trouble() const { return trouble_; }

 private:
  bool step();
  bool submit(Plan plan, bool andCancel);
  bool submitAgain(const Plan& plan);
  bool askNext(bool waitForOne);
  bool ask(Target target);
  bool setTtl(const Target& target);
  bool stream(const Target& target);
  /// Returns the next page; empty if the client has to stop or the job is gone.
  std::optional<Page> readPage(const Target& target, bool consumes);
  bool purge();
  bool cancel(const Target& target);
  bool retry(const Target& target);
  Plan newPlan(bool sync);
  Plan fleetingPlan();
  bool chance(double part) { return std::uniform_real_distribution<>(0, 1)(random_) < part; }
  std::uint32_t upTo(std::uint32_t most) { return std::uniform_int_distribution<std::uint32_t>(0, most)(random_); }

  /// Checks an answer; returns false if the client has to stop.
  bool isUsable(const HttpResponse& response, const std::string& request, std::initializer_list<int> expected);
  /// Logs the state shown by an answer, and returns the state.
  std::optional<JobState> note(std::uint64_t number, const HttpResponse& response, bool whole);

  const Life& life_;
  const ClientRole role_;
  std::mt19937_64 random_;
  HttpClient http_;
  std::vector<Entry> log_;
  std::string trouble_;
};

/// All clients of a life. Created when the server is ready.
class ClientPool {
 public:
  ClientPool(const Life& life, const std::vector<ClientRole>& roles, std::uint64_t seed);
  ~ClientPool();

  /// Waits for all clients after the death of the server, and gives their logs to `history`. Returns the troubles of
  /// the clients.
  std::vector<std::string> reportTo(History& history);

 private:
  const Life life_;
  std::vector<std::unique_ptr<Client>> clients_;
  std::vector<std::thread> threads_;
};

}  // namespace jobq::fault
