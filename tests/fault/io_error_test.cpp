// I/O errors: each write, sync, truncation, opening and deletion of SQLite fails once, or from then on, while the whole
// server serves. The server answers no 200 for a job that is not stored and gives the reason of a 503 in /readyz. After
// a restart on a sound disk every acknowledged job is there and ends.
#include <iostream>
#include <ostream>
#include <string>
#include <tuple>

#include "../server/server_fixture.h"
#include "disk.h"
#include "testkit/wait_for.h"

namespace jobq::fault {
namespace {

using testing::HasSubstr;

constexpr auto kWaitLimit = testkit::kHangDeadline;

// An answer of the server to keep: the job is stored, and its outcome, if the answer told one.
struct Acknowledged {
  std::string endpoint;
  std::string id;
  std::string input;
  std::string ended;  // COMPLETED or CANCELLED; empty if no outcome was answered
};

class IoError : public ServerTest {
 protected:
  IoError() { Disk::instance(); }
  ~IoError() override {
    Disk::instance().fail({});
    close();
  }

  void start() {
    open(
        "storage = sqlite\nendpoint.e.image = plugin/echo\nendpoint.r.image = some/remote\n"
        "endpoint.k.image = plugin/trial\nendpoint.q.image = some/remote\nwebhook.transports = http, file\n"
        "storage.sqlite.log = 256KB\n");
  }

  // Waits in the server end by the clock, and only this function advances the clock: time passes 250 times as fast as
  // outside.
  void whileTimePasses(const std::function<void()>& act) {
    Mutex mutex;
    Condition changed;
    bool done = false;
    std::thread time([&] {
      Lock lock(mutex);
      while (!done) {
        changed.waitFor(mutex, Millis(1));
        lock.unlock();
        clock_.advance(Millis(250));
        lock.lock();
      }
    });
    act();
    {
      Lock lock(mutex);
      done = true;
      changed.notifyAll();
    }
    testkit::join("the thread of the clock", time);
  }

  void close() {
    if (application_) whileTimePasses([this] { application_->stop(); });
    application_.reset();
  }

  // Returns true for 200 and false for an honest 503.
  bool accepted(const Answer& answer) {
    EXPECT_TRUE(answer.status == 200 || answer.status == 503) << answer.status << " " << answer.body;
    if (answer.status == 503) {
      EXPECT_THAT(answer.body, HasSubstr("\"error\":\""));
      EXPECT_TRUE(answer.headers.contains("Retry-After"));
    }
    return answer.status == 200;
  }

  void submit(const std::string& endpoint, std::size_t filler) {
    const std::string input =
        "{\"n\":" + std::to_string(acknowledged_.size()) + ".0,\"x\":\"" + std::string(filler, 'x') + "\"}";
    const Answer answer = call("POST", "/v2/" + endpoint + "/run", "{\"input\":" + input + "}");
    if (!accepted(answer)) return;
    acknowledged_.push_back({endpoint, answer.field("id"), input, ""});
  }

  void checkStates() {
    for (Acknowledged& job : acknowledged_) {
      const Answer answer = status(job.endpoint, job.id);
      if (!accepted(answer)) continue;
      const std::string state = answer.field("status");
      if (!job.ended.empty()) {
        EXPECT_EQ(state, job.ended) << job.id;
      }
      if (state == "COMPLETED") job.ended = state;
    }
  }

  // The calls of the test while the disk fails.
  void work() {
    for (int i = 0; i < 3; ++i) submit("e", 10);
    submit("r", 40'000);  // a checkpoint will follow
    submit("r", 10);
    submit("e", 20'000);
    submit("e", 300'000);  // input and output are files
    if (acknowledged_.empty()) return;
    const Acknowledged& awaited = acknowledged_.back();
    whileTimePasses(
        [&] { (void)accepted(call("GET", "/v2/" + awaited.endpoint + "/status-sync/" + awaited.id + "?wait=1000")); });
    checkStates();
    Acknowledged& last = acknowledged_.back();
    const Answer answer = call("POST", "/v2/" + last.endpoint + "/cancel/" + last.id);
    if (accepted(answer) && answer.field("status") == "CANCELLED") last.ended = "CANCELLED";
    checkStates();
  }

  // An idempotency key, a stream and a webhook; a purge and a ttl.
  void callTheOtherOperations() {
    (void)accepted(submitKeyed());
    for (int i = 0; i < 2; ++i) {
      const Answer answer = run("q", R"({"input":{}})");
      if (accepted(answer)) waiting_.push_back(answer.field("id"));
    }
    isPurged_ = accepted(call("POST", "/v2/q/purge-queue"));
    (void)accepted(call("GET", "/v2/q/requests"));
    const Answer brief = run("q", R"({"input":{}})");
    if (accepted(brief) && accepted(call("GET", "/v2/q/status/" + brief.field("id") + "?ttl=3600000"))) {
      brief_ = brief.field("id");
    }
    if (keyed_.empty()) return;
    whileTimePasses([this] { (void)accepted(call("GET", "/v2/k/stream/" + keyed_ + "?wait=1000")); });
  }

  Answer submitKeyed() {
    extra_ = {{"Idempotency-Key", "once"}};
    Answer answer = run("k", R"({"input":{"chunks":2,"output":1},"webhook":"file:///post"})");
    extra_.clear();
    if (answer.status == 200 && keyed_.empty()) keyed_ = answer.field("id");
    if (answer.status == 200) {
      EXPECT_EQ(answer.field("id"), keyed_) << "a key belongs to a single job";
    }
    return answer;
  }

  // A call without an answer may have been done, but never in part.
  void verifyTheOtherOperations() {
    ASSERT_EQ(submitKeyed().status, 200);
    EXPECT_EQ(call("GET", "/v2/k/requests").field("total"), "1");
    const auto end = std::chrono::steady_clock::now() + kWaitLimit;
    whileTimePasses([&] {
      while (status("k", keyed_).field("status") != "COMPLETED" || !isPosted(keyed_)) {
        ASSERT_LT(std::chrono::steady_clock::now(), end)
            << status("k", keyed_).body << " is stuck, or the webhook was not sent";
        std::this_thread::yield();
      }
    });
    EXPECT_THAT(call("GET", "/v2/k/stream/" + keyed_ + "?offset=0").body,
                testing::MatchesRegex(".*chunk.:0.*chunk.:1.*"));
    std::size_t left = 0;
    for (const std::string& id : waiting_) left += status("q", id).status == 200 ? 1U : 0U;
    EXPECT_TRUE(left == 0 || (left == waiting_.size() && !isPurged_)) << left << " of " << waiting_.size();
    if (brief_.empty()) return;
    EXPECT_EQ(status("q", brief_).status, 200);
    clock_.advance(Millis(3'600'000));
    EXPECT_EQ(status("q", brief_).status, 404) << "the ttl of the job was set";
  }

  bool isPosted(const std::string& id) const {
    const auto lines = readFile(dir_ / "jobq-data" / "webhooks" / "post");
    return lines && lines->find("\"webhook-id\":\"" + id + ".") != std::string::npos;
  }

  // Checks that every acknowledged job is there and ends.
  void verify() {
    for (const Acknowledged& job : acknowledged_) {
      const auto end = std::chrono::steady_clock::now() + kWaitLimit;
      Answer answer = status(job.endpoint, job.id);
      while (job.endpoint == "e" && answer.field("status") != "COMPLETED" && answer.field("status") != "CANCELLED") {
        ASSERT_EQ(answer.status, 200) << job.id << " is lost: " << answer.body;
        ASSERT_LT(std::chrono::steady_clock::now(), end) << job.id << " is stuck: " << answer.body;
        answer = status(job.endpoint, job.id);
      }
      ASSERT_EQ(answer.status, 200) << job.id << " is lost: " << answer.body;
      const std::string state = answer.field("status");
      if (!job.ended.empty()) {
        EXPECT_EQ(state, job.ended) << job.id;
      }
      if (state == "COMPLETED") {
        EXPECT_EQ(answer.field("output"), job.input) << job.id;
      }
    }
  }

  // Runs the server once on the failing disk and once on a sound disk. Returns false if the fault never hadFailed.
  bool survives(const DiskFault& fault) {
    SCOPED_TRACE(nameOf(fault.call) + " " + std::to_string(fault.number) + (fault.forever ? " and after" : "") +
                 " answers " + std::to_string(fault.answer));
    close();
    std::filesystem::remove_all(dir_ / "jobq-data");
    acknowledged_.clear();
    waiting_.clear();
    keyed_.clear();
    brief_.clear();
    isPurged_ = false;
    Disk& disk = Disk::instance();
    disk.fail(fault);
    try {
      start();
      work();
      callTheOtherOperations();
      judgeReadiness(fault);
      close();
    } catch (const Error& refusal) {
      EXPECT_GT(std::string(refusal.what()).size(), 20U) << "a refused start names the reason";
      EXPECT_TRUE(disk.hasFailed()) << refusal.what();
    }
    application_.reset();
    const bool hadFailed = std::exchange(hadFailed_, false) || disk.hasFailed();
    disk.fail({});
    start();
    verify();
    verifyTheOtherOperations();
    EXPECT_EQ(call("GET", "/readyz").status, 200);
    return hadFailed;
  }

  // After an error of the disk every write is refused with the reason; a full disk heals.
  void judgeReadiness(const DiskFault& fault) {
    const Answer ready = call("GET", "/readyz");
    if (ready.status == 200) {
      submit("r", 10);
      return;
    }
    EXPECT_EQ(ready.status, 503);
    EXPECT_THAT(ready.body,
                HasSubstr(fault.answer == SQLITE_FULL ? "full" : "read-only until the server is restarted"));
    if (fault.answer == SQLITE_FULL) {
      hadFailed_ = Disk::instance().hasFailed();
      if (fault.forever) Disk::instance().fail({});  // otherwise the readiness check itself met the full disk
      const std::size_t before = acknowledged_.size();
      submit("e", 10);
      EXPECT_EQ(acknowledged_.size(), before + 1) << "there is space again";
      EXPECT_EQ(call("GET", "/readyz").status, 200);
    }
  }

  // Strikes with fault `first`, and with each fault `step` calls further, until a fault never hadFailed.
  void failEach(DiskCall call, int answer, bool forever, std::uint64_t first, std::uint64_t step) {
    std::uint64_t number = first;
    while (survives({call, number, forever, answer}) && !HasFatalFailure()) number += step;
    std::cout << nameOf(call) << (forever ? " and all after it" : "") << ": " << (number - first) / step << " faults"
              << std::endl;
    EXPECT_GT(number, first) << "such a call was never made";
  }

  void failEveryCall(DiskCall call, int answer) {
    for (const bool forever : {false, true}) failEach(call, answer, forever, 1, 1);
  }

  std::vector<Acknowledged> acknowledged_;
  std::vector<std::string> waiting_;  // to be purged
  bool isPurged_ = false;             // the purge was answered
  std::string keyed_;
  std::string brief_;  // job with a changed ttl
  bool hadFailed_ = false;
};

constexpr unsigned kShares = 4;

/// Writes are many: each share of the writes is a test of its own, so the shares run at the same time. The parameters:
/// whether all later writes fail as well, and the first write of the share.
class IoErrorOfWrites : public IoError, public testing::WithParamInterface<std::tuple<bool, unsigned>> {
 protected:
  void failShare(int answer) {
    failEach(DiskCall::write, answer, std::get<0>(GetParam()), std::get<1>(GetParam()), kShares);
  }
};

TEST_P(IoErrorOfWrites, OfEachWrite) { failShare(SQLITE_IOERR); }
TEST_P(IoErrorOfWrites, OfEachWriteOnAFullDisk) { failShare(SQLITE_FULL); }

INSTANTIATE_TEST_SUITE_P(Every, IoErrorOfWrites, testing::Combine(testing::Bool(), testing::Range(1U, kShares + 1)),
                         [](const testing::TestParamInfo<std::tuple<bool, unsigned>>& info) {
                           return std::string(std::get<0>(info.param) ? "forever_" : "once_") +
                                  std::to_string(std::get<1>(info.param));
                         });

TEST_F(IoError, OfEachSync) { failEveryCall(DiskCall::sync, SQLITE_IOERR); }
TEST_F(IoError, OfEachTruncation) { failEveryCall(DiskCall::truncate, SQLITE_IOERR); }
TEST_F(IoError, OfEachOpening) { failEveryCall(DiskCall::open, SQLITE_IOERR); }
TEST_F(IoError, OfEachDeletion) { failEveryCall(DiskCall::remove, SQLITE_IOERR); }

}  // namespace
}  // namespace jobq::fault
