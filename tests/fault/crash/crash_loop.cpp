// The crash proof: clients use every operation of the queue API, workers run, a kill -9 comes at a random moment, and
// the server restarts on the same data, again and again. `tests/fault/crash/history_rules.h` has the rules. A few lives
// follow the last cycle: every acknowledged job comes to its end, and the end is seen once more after another kill. The
// last line is `1 passed, 0 failed` or `0 passed, 1 failed`; the exit code agrees.
#include <algorithm>
#include <cstdio>
#include <ctime>
#include <exception>
#include <iostream>
#include <stdexcept>

#include "call_file.h"
#include "clients.h"
#include "jobq/json.h"
#include "journal.h"
#include "options.h"
#include "server_process.h"

namespace jobq::fault {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr auto kStartDeadline = seconds(60);
constexpr auto kLongestLife = seconds(3);       // on any machine
constexpr auto kEndDeadline = seconds(300);     // limit for the ends of all acknowledged jobs
constexpr int kMostSettling = 5;                // lives; three are enough
constexpr auto kWebhookDeadline = seconds(60);  // limit for webhooks without a claim
constexpr auto kClaimedWebhooks =
    seconds(180);  // limit for webhooks claimed by a killed server, with a lease of a minute
constexpr std::size_t kShownViolations = 5;
constexpr int kEnoughCycles = 25;  // enough for every operation to occur
const Rules kRules = [] {
  Rules rules{{{"fast", 1000}, {"slow", 1000}, {"brittle", 2}, {kFleeting, 1000}}};
  rules.fleeting = kFleeting;
  return rules;
}();

const std::vector<ClientRole> kLoad = [] {
  std::vector<ClientRole> roles(6, ClientRole::run);
  roles.insert(roles.end(), 8, ClientRole::runsync);
  roles.insert(roles.end(), 3, ClientRole::ask);
  roles.insert(roles.end(), {ClientRole::cancel, ClientRole::cancel, ClientRole::retry, ClientRole::stream,
                             ClientRole::stream, ClientRole::purge});
  return roles;
}();
const std::vector<ClientRole> kQuestions = [] {
  std::vector<ClientRole> roles(6, ClientRole::ask);
  roles.insert(roles.end(), 2, ClientRole::stream);
  return roles;
}();

std::string settingsFor(const Options& options, const std::filesystem::path& folder) {
  std::string text = "limits.enabled = false\nlimits.queue = false\nwebhook.transports = http, file\nplugins.path = ";
  if (!options.plugins.empty()) text += options.plugins.string() + ":";
  text += JOBQ_PLUGIN_DIR ":" JOBQ_WITNESS_DIR "\n";
  const std::pair<const char*, int> workers[] = {{"fast", 8}, {"slow", 12}, {"brittle", 4}, {kFleeting, 2}};
  for (const auto& [endpoint, most] : workers) {
    const std::string key = "endpoint." + std::string(endpoint) + ".";
    text += key + "image = plugin/witness\n" + key + "workersMin = 2\n" + key + "workersMax = " + std::to_string(most) +
            "\n" + key + "maxAttempts = " + std::to_string(kRules.maxAttempts.at(endpoint)) + "\n" + key +
            "env.JOURNAL = " + (folder / "journal").string() + "\n";
  }
  return text;
}

std::filesystem::path makeFolder() {
  std::string pattern = std::filesystem::temp_directory_path() / "jobq-crash-XXXXXX";
  if (::mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("cannot make the folder " + pattern);
  return pattern;
}

class CrashLoop {
 public:
  explicit CrashLoop(const Options& options)
      : options_(options),
        random_(options.seed),
        folder_(makeFolder()),
        server_(JOBQ_BINARY_DIR "/jobqd", folder_, settingsFor(options, folder_)),
        journal_(folder_ / "journal"),
        callFile_(folder_ / "data" / "webhooks" / "post") {}

  /// Returns true if every rule held; or, with an expected violation, if a violation was found.
  bool run() {
    const auto start = Clock::now();
    try {
      while (clean() && lives_ < options_.cycles) cycle();
      for (int more = 0; clean() && more < kMostSettling && !history_.open().empty(); ++more) runToTheEnd();
      if (clean()) compareBooks();
      if (clean()) judgeTotals();
    } catch (const std::exception& error) {
      broken_.push_back(error.what());
    }
    const bool passed = options_.expectViolation ? broken_.empty() && !violations_.empty() : clean();
    report(std::chrono::duration<double>(Clock::now() - start).count());
    if (passed && !options_.keep) {
      std::filesystem::remove_all(folder_);
    } else {
      std::printf("the server's folder is kept: %s\n", folder_.c_str());
    }
    return passed;
  }

 private:
  double random() { return std::uniform_real_distribution<>(0, 1)(random_); }

  /// Runs a life with a kill at its end: during the start of the server, right after the start, or under load.
  void cycle() {
    const auto start = beginLife();
    const double kind = random();
    if (kind < 0.12) {
      server_.awaitReady(start + duration(random() * 1.2 * startSeconds_));
      return endLife(nullptr);
    }
    awaitReady(start);
    Board board;
    fill(board);
    ClientPool clientPool(lifeOver(board), kLoad, random_());
    if (kind < 0.2) {
      board.awaitAcknowledged(UINT64_MAX, Clock::now() + duration(random() * 0.02));
    } else if (kind < 0.3) {
      board.awaitAcknowledged(UINT64_MAX, Clock::now() + duration(random() * 1.2));
    } else {
      const auto target = static_cast<std::uint64_t>(random() * 2 * static_cast<double>(options_.jobsPerCycle));
      board.awaitAcknowledged(target, Clock::now() + kLongestLife);
    }
    endLife(&clientPool);
  }

  /// Runs a life until every job has ended, unknown jobs too, and the queues are empty; then comes another kill.
  void runToTheEnd() {
    awaitReady(beginLife());
    Board board;
    fill(board);
    ClientPool clientPool(lifeOver(board), kQuestions, random_());
    const auto deadline = Clock::now() + kEndDeadline;
    HttpClient http(server_.address(), server_.key());
    const bool ended = board.awaitEmpty(deadline);
    std::uint64_t left = ended ? sum(http, {"inQueue", "inProgress"}) : 0;
    while (left > 0 && Clock::now() < deadline) {
      std::this_thread::sleep_for(milliseconds(10));
      left = sum(http, {"inQueue", "inProgress"});
    }
    endLife(&clientPool);
    if (left > 0) {
      violations_.push_back({"waited " + std::to_string(kEndDeadline.count()) +
                                 " s for empty queues, and inQueue + inProgress is " + std::to_string(left),
                             ""});
    }
    if (!ended) addViolations(history_.unfinished());
  }

  /// Compares the counters of the server with the history.
  void compareBooks() {
    awaitReady(beginLife());
    HttpClient http(server_.address(), server_.key());
    judgePost(http);
    const std::uint64_t completed = sum(http, {"completed"}, true);
    const std::uint64_t retried = sum(http, {"retried"}, true);
    server_.stop();
    closeBooks();
    addViolations(history_.unfinished());
    const Totals& totals = history_.totals();
    if (totals.expired > 0) return;  // some ends are unknown then
    expectEqual("completed jobs", completed, totals.counted);
    expectEqual("retries", retried, totals.countedRetries);
  }

  /// Expects a webhook call for every ended job, or a later one: a delivery claimed by a killed server is due after a
  /// minute.
  void judgePost(HttpClient& http) {
    const auto deadline = Clock::now() + (options_.allWebhooks ? kClaimedWebhooks : kWebhookDeadline);
    std::vector<std::string> missing;
    for (;;) {
      for (const ReceivedCall& call : callFile_.read()) history_.called(call);
      missing = history_.webhooks().missing();
      const bool claimed =
          std::all_of(missing.begin(), missing.end(), [&](const std::string& job) { return isClaimed(http, job); });
      claimedWebhooks_ = missing.size();
      if (missing.empty() || (claimed && !options_.allWebhooks)) break;
      if (Clock::now() > deadline) {
        for (const std::string& job : missing) violations_.push_back({"job " + job + ": no webhook came", ""});
        break;
      }
      std::this_thread::sleep_for(milliseconds(50));
    }
    for (const std::string& fault : history_.webhooks().faults()) violations_.push_back({fault, ""});
    if (callFile_.torn() > static_cast<std::uint64_t>(lives_)) {
      violations_.push_back({std::to_string(callFile_.torn()) + " webhooks are cut off", ""});
    }
  }

  /// Returns true if a delivery of the job is owed at a later moment.
  static bool isClaimed(HttpClient& http, const std::string& job) {
    const HttpResponse response = http.call("GET", "/v1/webhooks?jobId=" + job);
    const std::time_t now = std::time(nullptr);
    char text[32];
    std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", std::gmtime(&now));
    constexpr std::string_view kDue = "\"dueAt\":\"";
    const std::size_t at = response.body.rfind(kDue);
    return at != std::string::npos && response.body.compare(at + kDue.size(), 19, text) > 0;
  }

  void expectEqual(const std::string& what, std::uint64_t health, std::uint64_t seen) {
    if (health == seen) return;
    violations_.push_back(
        {"/health counts " + std::to_string(health) + " " + what + ", clients have seen " + std::to_string(seen), ""});
  }

  void fill(Board& board) const {
    for (const JobHistory* job : history_.open()) {
      board.add({job->plan.number, job->plan.endpoint, job->id, false});
      if (job->plan.chunks > 0) board.addStreaming({job->plan.number, job->plan.endpoint, job->id, false});
    }
    for (Plan& plan : history_.unanswered()) board.addUnanswered(std::move(plan));
  }

  static Clock::duration duration(double s) {
    return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(s));
  }

  Clock::time_point beginLife() {
    const auto start = Clock::now();
    history_.lifeBegins(server_.start());
    ++lives_;
    return start;
  }

  void awaitReady(Clock::time_point start) {
    if (!server_.awaitReady(start + kStartDeadline)) throw std::runtime_error("jobqd is not ready after a minute");
    startSeconds_ = std::chrono::duration<double>(Clock::now() - start).count();
    longestStart_ = std::max(longestStart_, startSeconds_);
  }

  Life lifeOver(Board& board) {
    return {history_.life(), server_.address(), server_.key(), board, nextNumber_, 3 * options_.jobsPerCycle};
  }

  /// `clientPool` are the clients of this life, or null.
  void endLife(ClientPool* clientPool) {
    server_.kill();
    if (clientPool != nullptr) {
      for (const std::string& trouble : clientPool->reportTo(history_)) broken_.push_back(trouble);
    }
    closeBooks();
    if (!options_.keep) journal_.truncate();
  }

  /// Reads the journal, which is whole after the death of the server.
  void closeBooks() {
    for (const JournalLine& line : journal_.read()) history_.noted(line);
    addViolations(history_.lifeEnds());
  }

  void addViolations(std::vector<Violation> found) {
    for (Violation& violation : found) violations_.push_back(std::move(violation));
  }

  /// Returns the sum of these counters of /health, over all endpoints, or over the endpoints with compared counters.
  static std::uint64_t sum(HttpClient& http, const std::vector<std::string>& counters, bool counted = false) {
    std::uint64_t sum = 0;
    for (const auto& [endpoint, limit] : kRules.maxAttempts) {
      if (counted && endpoint == kFleeting) continue;
      const HttpResponse response = http.call("GET", "/v2/" + endpoint + "/health");
      const auto read = json::read(response.body);
      const auto* health = std::get_if<json::Document>(&read);
      const auto jobs = health == nullptr ? std::nullopt : health->find("jobs");
      if (!jobs) throw std::runtime_error("/health answered " + response.body);
      const auto fields = std::get<json::Document>(json::read(jobs->raw));
      for (const std::string& counter : counters) {
        const auto value = fields.find(counter);
        sum += value ? static_cast<std::uint64_t>(json::toInteger(*value).value_or(0)) : 0;
      }
    }
    return sum;
  }

  /// Checks the sums that the history of a single job cannot show.
  void judgeTotals() {
    const Totals& totals = history_.totals();
    // Few claims are cut off before their handler begins; a server counting false losses has many.
    if (totals.lostUnseen > 2 + totals.lost / 5) {
      violations_.push_back({std::to_string(totals.lostUnseen) + " of " + std::to_string(totals.lost) +
                                 " jobs are FAILED because of lost workers, and the journal has no run of them",
                             ""});
    }
    if (totals.unproven > totals.acknowledged / 100) {
      broken_.push_back("too many results expired before anybody asked: the machine is too slow for this proof");
    }
    // An operation that never occurred is not proved.
    const std::pair<const char*, std::uint64_t> met[] = {
        {"keys were used again after a kill", totals.sentAgain},
        {"jobs were purged", totals.purged},
        {"ttls were set", totals.ttls},
        {"streams were read to their end", totals.streamed},
        {"webhooks arrived", history_.webhooks().calls()},
    };
    for (const auto& [what, count] : met) {
      if (options_.cycles >= kEnoughCycles && count == 0) broken_.push_back(std::string("no ") + what);
    }
  }

  bool clean() const { return violations_.empty() && broken_.empty(); }

  void report(double seconds) const;

  const Options options_;
  std::mt19937_64 random_;
  const std::filesystem::path folder_;
  ServerProcess server_;
  JournalReader journal_;
  CallFile callFile_;
  History history_{kRules};
  std::atomic<std::uint64_t> nextNumber_{0};
  std::vector<Violation> violations_;  ///< found by the checker
  std::vector<std::string> broken_;    ///< other failures: no start, no answer, a crash of the server by itself
  int lives_ = 0;
  std::size_t claimedWebhooks_ = 0;  ///< webhooks not waited for
  double startSeconds_ = 0.2;
  double longestStart_ = 0;
};

void CrashLoop::report(double seconds) const {
  const Totals& t = history_.totals();
  std::printf("seed %llu, %d lives, %.1f s; longest start %.3f s\n", static_cast<unsigned long long>(options_.seed),
              lives_, seconds, longestStart_);
  const std::pair<const char*, std::uint64_t> figures[] = {
      {"jobs acknowledged", t.acknowledged},
      {"submissions without an answer", t.unknown},
      {"  of these found in the journal", t.unknownFound},
      {"jobs whose end was seen in two lives", t.checked},
      {"  COMPLETED", t.completed},
      {"  FAILED", t.failed},
      {"  CANCELLED", t.cancelled},
      {"  once FAILED: lost maxAttempts times", t.lost},
      {"    of these without a run", t.lostUnseen},
      {"jobs that expired before that", t.expired},
      {"  of these never seen to end", t.unproven},
      {"runs", t.runs},
      {"  cut off by a kill", t.cutOff},
      {"  ended, but killed before that was stored", t.repeated},
      {"claims cut off before their run began", t.neverBegan},
      {"submissions sent again under their key", t.sentAgain + t.answeredTwice},
      {"  after a kill", t.sentAgain},
      {"/purge-queue", t.purges},
      {"short ttls", t.ttls},
      {"  jobs gone by these", t.purged},
      {"answers of /stream", t.pages},
      {"  chunks in them", t.pieces},
      {"  whole streams of COMPLETED jobs", t.streamed},
      {"webhooks that arrived", history_.webhooks().calls()},
      {"  again", history_.webhooks().repeated()},
      {"  cut off by a kill", callFile_.torn()},
      {"webhooks owed, claimed by dead servers", claimedWebhooks_},
      {"violations", violations_.size()},
  };
  for (const auto& [name, value] : figures) std::printf("%-42s %10llu\n", name, static_cast<unsigned long long>(value));
  for (std::size_t i = 0; i < std::min(kShownViolations, violations_.size()); ++i) {
    std::printf("VIOLATION %s\n%s", violations_[i].sentence.c_str(), violations_[i].evidence.c_str());
  }
  for (const std::string& fault : broken_) std::printf("BROKEN %s\n", fault.c_str());
}

}  // namespace
}  // namespace jobq::fault

int main(int argc, char** argv) {
  const jobq::fault::Options options = jobq::fault::readOptions(argc, argv);
  const bool passed = jobq::fault::CrashLoop(options).run();
  std::printf("%d passed, %d failed\n", passed ? 1 : 0, passed ? 0 : 1);
  return passed ? 0 : 1;
}
