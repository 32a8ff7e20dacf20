// Tests of templates, releases, pauses and scaling on the whole server: the rules that need a handler showing its env,
// or a clock moved by hand. The rules are in core/http/API.md, "Releases", and core/decisions/endpoints.md.
#include <algorithm>
#include <future>

#include "server_fixture.h"
#include "testkit/thrown_text.h"

namespace jobq {
namespace {

using testing::HasSubstr;

class ReleaseTest : public ServerTest {
 protected:
  void open(const std::string& settings = "") {
    ServerTest::open("plugins.path = " JOBQ_PLUGIN_DIR ":" JOBQ_FIXTURE_DIR "\nstorage = memory\n" + settings);
  }

  std::string makeTemplate(const std::string& name, const std::string& env) {
    const Answer made =
        call("POST", "/v1/templates", R"({"imageName":"plugin/scripted","name":")" + name + R"(","env":)" + env + "}");
    EXPECT_EQ(made.status, 200) << made.body;
    return made.field("id");
  }
  std::string makeEndpoint(const std::string& templateId, const std::string& more) {
    const Answer made = call("POST", "/v1/endpoints", R"({"templateId":")" + templateId + "\"" + more + "}");
    EXPECT_EQ(made.status, 200) << made.body;
    return made.field("id");
  }
  void update(const std::string& templateId, const std::string& body) {
    const Answer done = call("PATCH", "/v1/templates/" + templateId, body);
    ASSERT_EQ(done.status, 200) << done.body;
  }
  Answer endpoint(const std::string& id) const { return call("GET", "/v1/endpoints/" + id + "?includeWorkers=true"); }
  std::string releaseState(const std::string& id) const {
    const Answer release{200, endpoint(id).field("release"), {}};
    return release.field("state");
  }
  void awaitRelease(const std::string& id, const std::string& state) const {
    testkit::waitFor("the release of " + id + " to be " + state, [&] { return releaseState(id) == state; });
  }
  std::size_t workersOf(const std::string& id, const std::string& version) const {
    return count(endpoint(id).body, "\"slsVersion\":" + version + ",");
  }
  void awaitWorkers(const std::string& id, const std::string& version, std::size_t least) const {
    testkit::waitFor(std::to_string(least) + " workers of version " + version,
                     [&] { return workersOf(id, version) >= least; });
  }
  static std::size_t count(const std::string& text, const std::string& part) {
    std::size_t found = 0;
    for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
    return found;
  }
  std::string shown(const std::string& id, const std::string& variable) const {
    return call("POST", "/v2/" + id + "/runsync", R"({"input":{"show":")" + variable + "\"}}").field("output");
  }
  std::string witnessed() const {
    const auto text = readFile(dir_ / "witness");
    return text ? *text : "";
  }
  void awaitGone(const std::string& name, std::size_t least) const {
    testkit::waitFor(std::to_string(least) + " handlers of " + name + " to be destroyed",
                     [&] { return count(witnessed(), "gone " + name) >= least; });
  }
  /// Waits like waitFor, and moves the server's clock by `step` before each further check, if the sweeper has done its
  /// work for the present time. Threads of the server that do not wait for the clock have at least a millisecond for
  /// each step.
  template <class Predicate>
  void waitInTime(const std::string& what, Millis step, Predicate&& holds) {
    for (const testkit::WaitDeadline wait(what); !holds();) {
      wait.pause();
      clock_.awaitThread("sweeper");
      clock_.advance(step);
    }
  }
  std::string env(const std::string& name) const {
    return R"({"NAME":")" + name + R"(","WITNESS":")" + (dir_ / "witness").string() + "\"}";
  }
};

TEST_F(ReleaseTest, AnUpdateReachesNewHandlersAndDestroysTheOld) {
  open();
  const std::string made = makeTemplate("t", env("one"));
  const std::string id = makeEndpoint(made, R"(,"workersMin":2,"workersMax":3)");
  EXPECT_EQ(shown(id, "NAME"), "one");
  awaitWorkers(id, "1", 2);
  update(made, R"({"env":)" + env("two") + "}");
  awaitRelease(id, "complete");
  // A release is complete after the last old worker was told to stop. The worker stays listed until its thread has
  // ended, and its successor comes after that call.
  testkit::waitFor("the end of the workers of version 1", [&] { return workersOf(id, "1") == 0; });
  awaitWorkers(id, "2", 2);
  EXPECT_EQ(shown(id, "NAME"), "two");
  awaitGone("one", 2);
  EXPECT_EQ(count(witnessed(), "gone one"), count(witnessed(), "made one"));
  EXPECT_EQ(endpoint(id).field("version"), "2");
}

TEST_F(ReleaseTest, ABusyWorkerIsReplacedAfterTheJob) {
  open();
  const std::string made = makeTemplate("t", env("one"));
  const std::string id = makeEndpoint(made, R"(,"workersMin":1,"workersMax":1)");
  const std::string job =
      run(id, R"({"input":{"pieces":{"0":{"chunk":{"a":1},"pauseMs":60000}},"show":"NAME"}})").field("id");
  awaitState(id, job, "IN_PROGRESS");
  update(made, R"({"env":)" + env("two") + "}");
  update(made, R"({"env":)" + env("three") + "}");
  EXPECT_EQ(releaseState(id), "rolling");
  EXPECT_EQ(workersOf(id, "1"), 1U) << "the busy worker goes on with the job";
  clock_.awaitWaiter(Millis(59'000), Millis(60'000));
  clock_.advance(Millis(60'000));
  awaitState(id, job, "COMPLETED");
  EXPECT_EQ(status(id, job).field("output"), "one");
  awaitRelease(id, "complete");
  awaitWorkers(id, "3", 1);
  EXPECT_EQ(workersOf(id, "3"), 1U);
  EXPECT_EQ(witnessed().find("made two"), std::string::npos) << "no worker starts for the version between";
}

TEST_F(ReleaseTest, AFailedReleaseHaltsAndTheOldWorkersServe) {
  open();
  const std::string made = makeTemplate("t", env("one"));
  const std::string id = makeEndpoint(made, R"(,"workersMin":1,"workersMax":1)");
  EXPECT_EQ(shown(id, "NAME"), "one");
  update(made, R"({"env":{"BROKEN":"the disk is gone"}})");
  awaitRelease(id, "halted");
  EXPECT_THAT(endpoint(id).field("release"), HasSubstr("the disk is gone"));
  EXPECT_EQ(shown(id, "NAME"), "one");
  update(made, R"({"env":)" + env("three") + "}");
  awaitRelease(id, "complete");
  EXPECT_EQ(shown(id, "NAME"), "three");
}

// The pool goes back to the release of the remote workers, and the view of these has no failed start.
TEST_F(ReleaseTest, FailedThreadsAfterRemoteWorkersHaltTheRelease) {
  open();
  const std::string made = makeTemplate("t", env("one"));
  const std::string id = makeEndpoint(made, R"(,"workersMax":1)");
  update(made, R"({"imageName":"me/worker:1"})");
  const std::string worker = call("POST", "/v1/keys", R"({"name":"w","scopes":["worker"]})").field("key");
  const std::string job = call("POST", "/v2/" + id + "/run", R"({"input":{}})").field("id");
  EXPECT_EQ(callWith(worker, "GET", "/v2/" + id + "/job-take/mine?job_in_progress=0").field("id"), job);
  EXPECT_EQ(callWith(worker, "POST", "/v2/" + id + "/job-done/mine/" + job, R"({"output":1})").status, 200);
  update(made, R"({"imageName":"plugin/scripted","env":{"BROKEN":"the disk is gone"}})");
  call("POST", "/v2/" + id + "/run", R"({"input":{}})");
  awaitRelease(id, "halted");
  EXPECT_THAT(endpoint(id).field("release"), HasSubstr("the disk is gone"));
  update(made, R"({"imageName":"me/worker:2"})");
  EXPECT_EQ(releaseState(id), "complete") << "the new release starts only remote workers";
}

TEST_F(ReleaseTest, AMissingImageHaltsToo) {
  open();
  const std::string made = makeTemplate("t", env("one"));
  const std::string id = makeEndpoint(made, R"(,"workersMin":1,"workersMax":2)");
  EXPECT_EQ(shown(id, "NAME"), "one");
  update(made, R"({"imageName":"plugin/nosuch"})");
  EXPECT_EQ(releaseState(id), "halted");
  EXPECT_THAT(endpoint(id).field("release"), HasSubstr("nosuch"));
  EXPECT_EQ(shown(id, "NAME"), "one");
  update(made, R"({"imageName":"lua/nosuch"})");
  EXPECT_THAT(endpoint(id).field("release"), HasSubstr("nosuch.lua cannot be read"));
  update(made, R"({"imageName":"plugin/scripted","env":)" + env("two") + "}");
  awaitRelease(id, "complete");
  EXPECT_EQ(shown(id, "NAME"), "two");
}

TEST_F(ReleaseTest, ATemplateReleasesEachEndpointWithTheTemplate) {
  open();
  const std::string made = makeTemplate("t", env("one"));
  const std::string other = makeTemplate("u", env("other"));
  const std::string a = makeEndpoint(made, "");
  const std::string b = makeEndpoint(made, "");
  const std::string c = makeEndpoint(other, "");
  update(made, R"({"env":)" + env("two") + "}");
  update(made, R"({"env":)" + env("two") + "}");
  EXPECT_EQ(endpoint(a).field("version"), "2") << "an equal update makes no new version";
  EXPECT_EQ(endpoint(b).field("version"), "2");
  EXPECT_EQ(endpoint(c).field("version"), "1");
  EXPECT_EQ(call("PATCH", "/v1/endpoints/" + a, R"({"workersMax":2})").field("version"), "2");
  EXPECT_EQ(call("PATCH", "/v1/endpoints/" + a, R"({"templateId":")" + other + "\"}").field("version"), "3");
  EXPECT_EQ(shown(a, "NAME"), "other");
}

TEST_F(ReleaseTest, APauseLetsJobsWaitAndRunningOnesGoOn) {
  open("endpoint.s.image = plugin/scripted\nendpoint.s.workersMax = 1\n");
  const std::string runs = run("s", R"({"input":{"pieces":{"0":{"chunk":{"a":1},"pauseMs":60000}}}})").field("id");
  awaitState("s", runs, "IN_PROGRESS");
  EXPECT_EQ(call("POST", "/v1/endpoints/s/pause").field("paused"), "true");
  const std::string waits = run("s", R"({"input":{}})").field("id");
  EXPECT_EQ(status("s", waits).field("queueReason"), "paused");
  clock_.awaitWaiter(Millis(59'000), Millis(60'000));
  clock_.advance(Millis(60'000));
  awaitState("s", runs, "COMPLETED");
  EXPECT_EQ(status("s", waits).field("status"), "IN_QUEUE");
  EXPECT_EQ(call("POST", "/v1/endpoints/s/resume").field("paused"), "false");
  awaitState("s", waits, "COMPLETED");
}

TEST_F(ReleaseTest, AJobShowsTheReasonAndThePlaceOfTheWait) {
  open(
      "endpoint.s.image = plugin/scripted\nendpoint.s.workersMax = 1\nendpoint.broken.image = plugin/scripted\n"
      "endpoint.broken.env.BROKEN = no licence\nendpoint.far.image = somebody/else\n");
  const std::string runs = run("s", R"({"input":{"pieces":{"0":{"chunk":{"a":1},"pauseMs":60000}}}})").field("id");
  awaitHealth("s", "\"running\":1");  // the storage has a job IN_PROGRESS before its worker counts as busy
  const std::string first = run("s", R"({"input":{}})").field("id");
  const std::string second = run("s", R"({"input":{}})").field("id");
  EXPECT_EQ(status("s", first).field("queueReason"), "workers_busy");
  EXPECT_EQ(status("s", first).field("queuePosition"), "1");
  EXPECT_EQ(status("s", second).field("queuePosition"), "2");
  EXPECT_EQ(status("s", runs).field("queueReason"), "absent");
  const std::string far = run("far", R"({"input":{}})").field("id");
  EXPECT_EQ(status("far", far).field("queueReason"), "no_workers");
  const std::string broken = run("broken", R"({"input":{}})").field("id");
  testkit::waitFor("the queue reason worker_crashing",
                   [&] { return status("broken", broken).field("queueReason") == "worker_crashing"; });
  const std::string low = run("s", R"({"input":{},"policy":{"lowPriority":true}})").field("id");
  EXPECT_EQ(status("s", low).field("queuePosition"), "3") << "a low-priority job waits for all normal jobs";
  call("POST", "/v2/s/cancel/" + runs);
}

TEST_F(ReleaseTest, ADeletedEndpointStopsAndRemovesTheJobs) {
  open();
  const std::string made = makeTemplate("t", env("one"));
  const std::string id = makeEndpoint(made, R"(,"workersMax":1)");
  const std::string runs = run(id, R"({"input":{"pieces":{"0":{"chunk":{"a":1},"pauseMs":60000}}}})").field("id");
  awaitState(id, runs, "IN_PROGRESS");
  // The removal waits for the thread of the stopped worker, in real time, and the sweeper looks for the thread's end
  // each second of the clock. The caller therefore waits as long as a caller may.
  auto waiter = std::async(std::launch::async,
                           [&] { return call("POST", "/v2/" + id + "/runsync?wait=300000", R"({"input":{}})"); });
  testkit::waitFor("the second job to be queued", [&] {
    return Answer{200, call("GET", "/v2/" + id + "/health").field("jobs"), {}}.field("inQueue") == "1";
  });
  EXPECT_EQ(call("DELETE", "/v1/endpoints/" + id).status, 204);
  EXPECT_EQ(status(id, runs).status, 404);
  EXPECT_EQ(call("DELETE", "/v1/endpoints/" + id).status, 404);
  awaitGone("one", 1);
  waitInTime("the answer of /runsync", Millis(250),
             [&] { return waiter.wait_for(std::chrono::seconds(0)) == std::future_status::ready; });
  const Answer answer = waiter.get();
  EXPECT_EQ(answer.status, 404) << answer.body;
  waitInTime("the template to be unused", Millis(1'000),
             [&] { return call("DELETE", "/v1/templates/" + made).status == 204; });
}

TEST_F(ReleaseTest, QueueDelayStartsASecondWorkerAfterTooLongAWait) {
  open();
  const std::string made = makeTemplate("t", env("one"));
  const std::string id = makeEndpoint(made, R"(,"workersMax":3,"scalerType":"QUEUE_DELAY","scalerValue":4)");
  const auto sleeper = R"({"input":{"pieces":{"0":{"chunk":{"a":1},"pauseMs":600000}}}})";
  const std::string first = run(id, sleeper).field("id");
  awaitState(id, first, "IN_PROGRESS");
  const std::string second = run(id, sleeper).field("id");
  const std::string low = run(id, R"({"input":{},"policy":{"lowPriority":true}})").field("id");
  clock_.awaitWaiter(Millis(3'900), Millis(4'100));  // the dispatcher
  EXPECT_EQ(status(id, second).field("queueReason"), "workers_busy");
  EXPECT_EQ(workersOf(id, "1"), 1U);
  clock_.advance(Millis(4'100));
  awaitState(id, second, "IN_PROGRESS");
  EXPECT_EQ(workersOf(id, "1"), 2U) << "a waiting low-priority job starts no worker";
  EXPECT_EQ(status(id, low).field("status"), "IN_QUEUE");
  for (const std::string& job : {first, second}) call("POST", "/v2/" + id + "/cancel/" + job);
}

TEST_F(ReleaseTest, ATemplateShowsTheRuntimeOfTheWorkers) {
  ServerTest::open("storage = sqlite\n");
  const std::string made = call("POST", "/v1/templates", R"({"imageName":"plugin/echo","name":"t"})").field("id");
  const std::string id = makeEndpoint(made, R"(,"workersMin":2)");
  awaitWorkers(id, "1", 2);
  const auto minutes = [&] { return std::stoi(call("GET", "/v1/templates/" + made).field("runtimeInMin")); };
  EXPECT_EQ(minutes(), 0);
  const Instant start = clock_.now();
  waitInTime("6 minutes of two workers", Millis(60'000), [&] { return minutes() >= 6; });
  EXPECT_GE(clock_.now() - start, Millis(180'000)) << "two workers";
  application_.reset();
  ServerTest::open("storage = sqlite\n");
  clock_.awaitThread("sweeper");
  clock_.advance(Millis(1'000));
  testkit::waitFor("the 6 minutes from before the restart", [&] { return minutes() >= 6; });
}

TEST_F(ReleaseTest, AnEndpointShowsTheRuntimeOfTheTemplate) {
  open();
  const std::string made = makeTemplate("t", env("one"));
  const std::string id = makeEndpoint(made, R"(,"workersMin":1)");
  awaitWorkers(id, "1", 1);
  const auto minutes = [&] { return call("GET", "/v1/templates/" + made).field("runtimeInMin"); };
  waitInTime("2 minutes of a worker", Millis(60'000), [&] { return std::stoi(minutes()) >= 2; });
  clock_.awaitThread("sweeper");
  const std::string told = "\"runtimeInMin\":" + minutes();
  EXPECT_EQ(count(call("GET", "/v1/endpoints?includeTemplate=true").body, told), 1U);
  EXPECT_EQ(count(call("GET", "/v1/endpoints/" + id + "?includeTemplate=true").body, told), 1U);
}

TEST_F(ReleaseTest, AStoredIdRepeatedInTheFileStopsTheStart) {
  ServerTest::open("storage = sqlite\nendpoint.s.image = plugin/echo\n");
  const std::string made = call("POST", "/v1/templates", R"({"imageName":"plugin/echo","name":"t"})").field("id");
  const std::string id = makeEndpoint(made, "");
  application_.reset();
  EXPECT_THAT(testkit::thrownText<ConfigError>(
                  [&] { return ServerTest::open("storage = sqlite\nendpoint." + id + ".image = plugin/echo\n"); }),
              HasSubstr("endpoint." + id));
  application_.reset();
  ServerTest::open("storage = sqlite\nendpoint.s.image = plugin/echo\n");
  EXPECT_EQ(call("POST", "/v2/" + id + "/runsync", R"({"input":{"a":1}})").field("status"), "COMPLETED")
      << "the created endpoint survives a restart";
}

}  // namespace
}  // namespace jobq
