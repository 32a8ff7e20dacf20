// Tests of the small tools in core: ids, secrets, times, files, pauses, queue signals and waiting callers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <regex>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "core/base/backoff.h"
#include "core/base/data_dir.h"
#include "core/base/ids.h"
#include "core/base/json_object.h"
#include "core/base/periodic.h"
#include "core/base/secret_box.h"
#include "core/base/semaphore.h"
#include "core/base/sha256.h"
#include "core/base/words.h"
#include "core/jobs/queue_signal.h"
#include "core/process/descriptors.h"
#include "core/workers/run/running_jobs.h"
#include "jobq/error.h"
#include "testkit/loaded_plugin.h"
#include "testkit/manual_clock.h"
#include "testkit/temporary_folder.h"
#include "testkit/thrown_text.h"
#include "testkit/wait_for.h"

namespace {

using namespace jobq;

mode_t modeOf(const std::filesystem::path& path) {
  struct stat status {};
  stat(path.c_str(), &status);
  return status.st_mode & 0777;
}

TEST(Ids, AJobIdIsAUuidWithTags) {
  const std::regex shape("[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}-u1");
  std::set<std::string> seen;
  for (int i = 0; i < 1'000; ++i) {
    const JobId id = newJobId(false);
    EXPECT_TRUE(std::regex_match(id, shape)) << id;
    seen.insert(id);
  }
  EXPECT_EQ(seen.size(), 1'000U);
  EXPECT_TRUE(newJobId(true).starts_with("sync-"));
  EXPECT_EQ(newName(14).size(), 14U);
  EXPECT_TRUE(isIdentifier("aZ09_-"));
  for (const char* bad : {"", "a b", "a/b", "ä"}) EXPECT_FALSE(isIdentifier(bad));
}

// Each thread has random bytes of its own.
TEST(Ids, ThreadsMakeDifferentIds) {
  constexpr std::size_t kEach = 500;
  std::array<std::vector<std::string>, 4> made;
  std::vector<std::thread> threads;
  for (auto& ids : made) {
    threads.emplace_back([&ids] {
      for (std::size_t i = 0; i < kEach; ++i) ids.push_back(newJobId(false).substr(8));  // behind the millisecond
    });
  }
  testkit::joinAll("the threads", threads);
  std::set<std::string> seen;
  for (const auto& ids : made) seen.insert(ids.begin(), ids.end());
  EXPECT_EQ(seen.size(), made.size() * kEach);
}

// Ids made one after the other are neighbours in the index of a storage.
TEST(Ids, AJobIdBeginsWithTheMillisecond) {
  const auto wall = [] {
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    return static_cast<std::uint32_t>(std::chrono::duration_cast<std::chrono::milliseconds>(now).count());
  };
  const std::uint32_t before = wall();
  const auto made = static_cast<std::uint32_t>(std::stoul(newJobId(false).substr(0, 8), nullptr, 16));
  EXPECT_LE(made - before, wall() - before) << "the differences of unsigned numbers survive a new beginning";
}

TEST(SecretBox, ServesManyThreadsAtOnce) {
  // Threads that start and end at the same time break the shared state of Poco::Crypto. The box must work nevertheless.
  const testkit::TemporaryFolder dir;
  const SecretBox box(dir / "secret.key");
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&box] {
      for (int n = 0; n < 2'000; ++n) EXPECT_EQ(box.open(box.seal("secret")), "secret");
    });
  }
  testkit::joinAll("the threads that seal", threads);
}

TEST(SecretBox, OpensOnlyTextsSealedByTheSameBox) {
  const testkit::TemporaryFolder dir;
  const SecretBox box(dir / "secret.key");
  EXPECT_EQ(modeOf(dir / "secret.key"), 0600U);
  const std::string text = "{\"accessSecret\":\"s3cr3t\"}";
  const std::string sealed = box.seal(text);
  EXPECT_EQ(sealed.find("s3cr3t"), std::string::npos);
  EXPECT_NE(box.seal(text), sealed) << "a fresh nonce each time";
  EXPECT_EQ(box.open(sealed), text);
  EXPECT_EQ(box.open(""), "");
  EXPECT_EQ(SecretBox(dir / "secret.key").open(sealed), text) << "the key stays";
  for (std::size_t i = 0; i < sealed.size(); ++i) {
    std::string changed = sealed;
    changed[i] = static_cast<char>(changed[i] ^ 1);
    EXPECT_THROW((void)box.open(changed), Error) << i;
  }
  EXPECT_THROW((void)box.open("short"), Error);
  EXPECT_THROW((void)SecretBox(dir / "other.key").open(sealed), Error);
  writePrivateFile(dir / "marked.key", "\xEF\xBB\xBF" + readFile(dir / "secret.key").value() + "\r\n");
  EXPECT_EQ(SecretBox(dir / "marked.key").open(sealed), text) << "a byte order mark and a line end are ignored";
  writePrivateFile(dir / "bad.key", "not a key");
  EXPECT_THROW(SecretBox(dir / "bad.key"), ConfigError);
}

// Examples of FIPS 180-2.
TEST(Words, EachLineOfATextIsVisited) {
  const auto linesOf = [](std::string_view text) {
    std::vector<std::string> lines;
    eachLine(text, [&lines](std::string_view line) { lines.emplace_back(line); });
    return lines;
  };
  EXPECT_EQ(linesOf("one"), std::vector<std::string>{"one"});
  EXPECT_EQ(linesOf("one\n\ntwo\n"), (std::vector<std::string>{"one", "", "two", ""}));
}

TEST(Sha256, MatchesThePublicExamples) {
  EXPECT_EQ(sha256("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

TEST(Descriptors, TheLimitIsTheHardLimit) {
  rlimit limit{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
  EXPECT_EQ(raiseDescriptorLimit(), limit.rlim_max);
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
  EXPECT_EQ(limit.rlim_cur, limit.rlim_max);
}

TEST(DataDir, IsPrivateAndHasASingleOwner) {
  const testkit::TemporaryFolder dir;
  {
    const DataDir data(dir / "d");
    EXPECT_EQ(modeOf(dir / "d"), 0700U);
    EXPECT_THROW(DataDir(dir / "d"), ConfigError);
  }
  EXPECT_NO_THROW(DataDir(dir / "d")) << "the lock ends with the owner";
}

TEST(DataDir, IsClosedToOtherUsersWithAllFiles) {
  const testkit::TemporaryFolder dir;
  const DataDir data(dir / "d");
  EXPECT_THAT(data.restrictToOwner(), testing::IsEmpty());
  const std::filesystem::path file = dir / "d" / "secret.key";
  writePrivateFile(file, "x");
  ASSERT_EQ(::chmod(file.c_str(), 0644), 0);
  ASSERT_EQ(::chmod((dir / "d").c_str(), 0755), 0);
  EXPECT_THAT(data.restrictToOwner(), testing::ElementsAre(testing::HasSubstr((dir / "d").string() + " was open"),
                                                           testing::HasSubstr("secret.key was open to other users")));
  EXPECT_EQ(modeOf(dir / "d"), 0700U);
  EXPECT_EQ(modeOf(file), 0600U);
  EXPECT_EQ(restrictToOwner(dir / "none"), std::nullopt);
}

class FailingTask final : public PeriodicTask {
 public:
  void run() override {
    ++runs;
    throw StorageError("gone");
  }
  std::atomic<int> runs = 0;
};

TEST(Periodic, AFailedTaskDoesNotDelayTheOtherTasks) {
  std::string done;
  EXPECT_EQ(testkit::thrownText<Error>([&] {
              performAll([&] { done += "1"; }, [] { throw Error("the second"); }, [&] { done += "3"; },
                         [] { throw Error("the fourth"); });
            }),
            "the second");
  EXPECT_EQ(done, "13");
}

TEST(Periodic, RunsOnTheClockAndSurvivesAFailingTask) {
  testkit::ManualClock clock;
  testkit::SilentLog log;
  FailingTask task;
  Periodic periodic("test", clock, log, Millis(1'000), task);
  periodic.start();
  for (int i = 1; i <= 3; ++i) {
    clock.awaitWaiter(Millis(1), Millis(1'000));
    clock.advance(Millis(1'000));
  }
  clock.awaitWaiter(Millis(1), Millis(1'000));
  periodic.stop();
  EXPECT_EQ(task.runs, 3);
}

/// A clock without waiting: each wait sets the time to its deadline and returns at once.
class SwiftClock final : public Clock {
 public:
  Instant now() const override { return now_; }
  void waitUntil(Mutex&, Condition&, Instant deadline) override { now_ = deadline; }

 private:
  Instant now_ = fromEpochMillis(1'000'000);
};

TEST(Backoff, RestsTwiceAsLongEachTimeWithinTheBounds) {
  SwiftClock clock;
  Backoff backoff(clock, {});
  for (const int millis : {50, 100, 200, 400, 800, 1'600, 2'000, 2'000}) {
    const Instant began = clock.now();
    EXPECT_TRUE(backoff.pause());
    EXPECT_EQ(clock.now() - began, Millis(millis));
  }
  const Instant latest = clock.now() + Millis(30);
  EXPECT_TRUE(backoff.pause(latest));
  EXPECT_EQ(clock.now(), latest);
  EXPECT_TRUE(backoff.pause(latest - Millis(1)));
  EXPECT_EQ(clock.now(), latest) << "the deadline has passed";
}

TEST(Backoff, AStopEndsTheCurrentRestAndAllFurtherRests) {
  testkit::ManualClock clock;
  std::stop_source stop;
  Backoff backoff(clock, stop.get_token());
  std::thread resting([&] {
    EXPECT_FALSE(backoff.pause());
    EXPECT_FALSE(backoff.pause());
  });
  clock.awaitWaiter(Backoff::kFirstPause, Backoff::kFirstPause);
  stop.request_stop();
  testkit::join("the stopped rest", resting);  // the test moves no time
}

TEST(QueueSignal, ANotificationBeforeTheWaitIsNotLost) {
  const testkit::HangGuard guard("the waits of a notified signal to end");
  testkit::ManualClock clock;
  QueueSignal queueSignal({"a", "b"});
  for (const char* id : {"a", "b"}) {
    EXPECT_TRUE(queueSignal.isSet(id)) << "no thread has consumed the signal yet";
    queueSignal.clear(id);
  }
  queueSignal.notify("a", false);
  queueSignal.wait(clock, Instant::max());
  EXPECT_TRUE(queueSignal.isSet("a"));
  EXPECT_FALSE(queueSignal.isSet("b"));
  queueSignal.wake();
  queueSignal.wait(clock, Instant::max());
  std::thread notifier([&] { queueSignal.notify("b", true); });
  queueSignal.wait(clock, Instant::max());
  EXPECT_TRUE(queueSignal.isSet("b"));
  testkit::join("the notifier", notifier);
}

TEST(QueueSignal, AllSignalsAreSetAtOnce) {
  QueueSignal queueSignal({"a", "b"});
  queueSignal.clear("a");
  queueSignal.clear("b");
  (void)queueSignal.consume();
  queueSignal.notifyAll();
  EXPECT_TRUE(queueSignal.isSet("a") && queueSignal.isSet("b"));
  EXPECT_TRUE(queueSignal.consume()) << "the dispatcher is woken";
}

TEST(QueueSignal, ASetSignalWakesNoThreadTwice) {
  testkit::ManualClock clock;
  QueueSignal queueSignal({"a"});
  queueSignal.notify("a", false);
  queueSignal.notify("unknown", false);
  queueSignal.wait(clock, clock.now());
  std::thread listener([&] { queueSignal.wait(clock, clock.now() + Millis(1'000)); });
  clock.awaitWaiter(Millis(1'000), Millis(1'000));
  queueSignal.notify("a", false);
  clock.awaitWaiter(Millis(1'000), Millis(1'000));
  queueSignal.clear("a");
  queueSignal.notify("a", true);
  testkit::join("the listener", listener);
  std::thread again([&] { queueSignal.wait(clock, clock.now() + Millis(1'000)); });
  clock.awaitWaiter(Millis(1'000), Millis(1'000));
  queueSignal.notify("a", false);  // a waiting low-priority job does not hide a normal job
  testkit::join("the second listener", again);
}

TEST(RunningJobs, AStopBetweenTheClaimAndTheRunIsNotLost) {
  RunningJobs running;
  {
    const RunningJobs::Claiming claiming(running);
    running.stop({"a", 1});
    EXPECT_FALSE(RunningJobs::Entry(running, {"a", 2}).token().stop_requested())
        << "the stop is for a different attempt";
    EXPECT_TRUE(RunningJobs::Entry(running, {"a", 1}).token().stop_requested());
  }
  running.stop({"b", 1});
  EXPECT_FALSE(RunningJobs::Entry(running, {"b", 1}).token().stop_requested())
      << "a stop without a claim has no effect";
}

// Claims of a busy server overlap without a gap, and a stop must not be kept for ever.
TEST(RunningJobs, AStopIsKeptForTheClaimsBegunBefore) {
  RunningJobs running;
  auto first = std::make_unique<RunningJobs::Claiming>(running);
  running.stop({"a", 1});
  const RunningJobs::Claiming second(running);
  running.stop({"b", 1});
  first.reset();
  EXPECT_FALSE(RunningJobs::Entry(running, {"a", 1}).token().stop_requested());
  EXPECT_TRUE(RunningJobs::Entry(running, {"b", 1}).token().stop_requested());
}

// A wake looks at all waiting threads of a place of this table, so 10,000 idle workers need many places.
TEST(Semaphore, TheTableOfWaitingThreadsIsWide) {
  constexpr int kFutexHash = 78;
  constexpr unsigned long kGetSlots = 2;
  const auto slots = [] { return ::prctl(kFutexHash, kGetSlots, 0UL, 0UL, 0UL); };
  if (slots() < 0) GTEST_SKIP() << "this kernel has one table for all processes";
  widenWaitTable();
  EXPECT_EQ(slots(), 4'096);
}

TEST(JsonObject, IsAWholeObjectWithoutFurtherText) {
  for (const char* text : {"{}", " \t\r\n{\"a\":[1]} ", R"({"{":"}"})"}) EXPECT_TRUE(isJsonObject(text)) << text;
  for (const char* text : {"", "  ", "[]", "null", "\"{}\"", "{", "{} {}", "{}x", "{\"a\"}", "\v{}"}) {
    EXPECT_FALSE(isJsonObject(text)) << text;
  }
}

}  // namespace
