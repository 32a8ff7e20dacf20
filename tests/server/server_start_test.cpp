// Tests of the start of the server: the order of its steps and the lines of the log.
#include <atomic>

#include "jobq/mutex.h"
#include "jobq/queue_policy.h"
#include "server_fixture.h"
#include "testkit/forwarding_storage.h"

namespace {

using namespace jobq;
using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

// More than four batches of the sweeper.
constexpr std::size_t kExpired = 2'500;

/// Serves the jobs of an endpoint in the order of their arrival.
class ArrivalOrder final : public QueuePolicy {
 public:
  std::string group(const JobSpec&) const override { return {}; }
  std::int64_t rank(const JobSpec&, Instant, const GroupState&) const override { return 0; }
};

/// Keeps the lines, each as `<level> <event>: <text>`. Any thread.
class LevelLog final : public Log {
 public:
  void write(LogLevel level, std::string_view event, std::string_view text) noexcept override {
    Lock lock(mutex_);
    lines_.push_back(std::string(nameOf(level)) + " " + std::string(event) + ": " + std::string(text));
  }
  std::vector<std::string> lines() const {
    Lock lock(mutex_);
    return lines_;
  }

 private:
  static std::string_view nameOf(LogLevel level) {
    if (level == LogLevel::warning) return "warning";
    return level == LogLevel::information ? "information" : "other";
  }

  mutable Mutex mutex_;
  std::vector<std::string> lines_ JOBQ_GUARDED_BY(mutex_);
};

/// Sweeps of all storages of a test. Any thread.
struct SweepCount {
  std::atomic<std::size_t> calls = 0;
  std::atomic<std::size_t> expired = 0;  ///< queued jobs that the sweeps removed
};

class CountedLeases final : public testkit::ForwardingLeases {
 public:
  CountedLeases(LeaseStore& inner, SweepCount& count) : ForwardingLeases(inner), count_(count) {}

  SweepResult sweep(std::size_t max) override {
    SweepResult swept = inner_.sweep(max);
    ++count_.calls;
    count_.expired += swept.expired.size();
    return swept;
  }

 private:
  SweepCount& count_;
};

/// A storage that counts its sweeps.
class CountedStorage final : public testkit::ForwardingStorage {
 public:
  CountedStorage(std::unique_ptr<Storage> inner, SweepCount& count)
      : ForwardingStorage(*inner), owned_(std::move(inner)), leases_(inner_.leases(), count) {}

  LeaseStore& leases() override { return leases_; }

 private:
  const std::unique_ptr<Storage> owned_;
  CountedLeases leases_;
};

/// Time stands still unless a test moves the clock, so the sweeper of every second has not run when a start ends.
class ServerStartTest : public ServerTest {
 protected:
  // The server writes into the log of this class, so the server ends first.
  ~ServerStartTest() override {
    const testkit::HangGuard guard("the server of the test to stop");
    application_.reset();
  }

  /// Starts a server on the memory storage. The storage holds `expired` queued jobs past their ttl before the start.
  void start(const std::string& settings, std::size_t expired = 0) {
    std::ofstream(dir_ / "jobq.properties") << withDefaults("storage = memory\n" + settings);
    application_ = std::make_unique<Application>(loadConfig(dir_ / "jobq.properties", {}), clock_, lines_,
                                                 [&](std::unique_ptr<Storage> storage) {
                                                   insertExpired(*storage, expired);
                                                   return std::make_unique<CountedStorage>(std::move(storage), sweeps_);
                                                 });
    application_->start();
    key_ = *readFile(dir_ / "jobq-data/admin.key");
    key_.pop_back();
  }

  void insertExpired(Storage& storage, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      JobSpec job;
      job.id = "expired-" + std::to_string(i);
      job.endpoint = "r";
      job.input = "{}";
      job.policy.ttl = Millis(10'000);
      ASSERT_TRUE(std::holds_alternative<Inserted>(storage.jobs().insert(std::move(job), order_)));
    }
    clock_.advance(Millis(10'000));
  }

  const ArrivalOrder order_{};
  LevelLog lines_;
  SweepCount sweeps_;
};

TEST_F(ServerStartTest, AServerAnswersBeforeTheExpiredStoredJobsAreRemoved) {
  start("endpoint.r.image = some/remote\n", kExpired);
  EXPECT_EQ(call("GET", "/readyz").status, 200);
  EXPECT_EQ(status("r", "expired-0").status, 404);
  EXPECT_EQ(run("r", R"({"input":{}})").status, 200);
  EXPECT_LT(sweeps_.expired, kExpired) << "the start removed all expired jobs first";
  EXPECT_EQ(sweeps_.calls, 1U) << "the first sweep ended no job, so the start needs no second sweep";
  EXPECT_THAT(lines_.lines(), Contains("information start.expired: the storage holds expired jobs, which are removed "
                                       "while the server runs"));
  clock_.awaitWaiter(Millis(1'000), Millis(1'000));
  clock_.advance(Millis(1'000));
  testkit::waitFor("the sweeper to remove the expired jobs", [&] { return sweeps_.expired == kExpired; });
}

TEST_F(ServerStartTest, AStartRemovesFewExpiredJobsWithoutALogLine) {
  start("endpoint.r.image = some/remote\n", 10);
  EXPECT_EQ(sweeps_.expired, 10U);
  EXPECT_THAT(lines_.lines(), Not(Contains(HasSubstr("start.expired"))));
}

TEST_F(ServerStartTest, PrivateAddressesOnAPublicHostAreAWarningInTheLog) {
  start("net.allowPrivate = true\nserver.host = 0.0.0.0\n");
  EXPECT_THAT(lines_.lines(),
              Contains(AllOf(StartsWith("warning net.allowPrivate: "), HasSubstr("server.host = 0.0.0.0"),
                             HasSubstr("set net.allowPrivate = false in production")))
                  .Times(1));
}

TEST_F(ServerStartTest, PrivateAddressesOnLoopbackAreNoWarning) {
  start("net.allowPrivate = true\nserver.host = 127.0.0.1\n");
  EXPECT_THAT(lines_.lines(), Not(Contains(HasSubstr("net.allowPrivate"))));
}

TEST_F(ServerStartTest, APublicHostWithoutPrivateAddressesIsNoWarning) {
  start("net.allowPrivate = false\nserver.host = 0.0.0.0\n");
  EXPECT_THAT(lines_.lines(), Not(Contains(HasSubstr("net.allowPrivate"))));
}

}  // namespace
