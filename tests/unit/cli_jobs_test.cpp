// Tests of the commands of jobqctl about jobs and queues: requests sent, texts printed, exit codes
// (core/cli/commands/job_commands.cpp, queue_commands.cpp, stream_command.cpp, log_command.cpp, top_command.cpp).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "cli_fixture.h"

namespace jobq::cli {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::StartsWith;

class CliJobsTest : public testing::Test, protected CliFixture {};

TEST_F(CliJobsTest, RunSendsTheBytesOfTheInput) {
  expectEnd(runWith(R"({"id":"j","status":"IN_QUEUE"})", {"run", "ep", R"({"a" : 1.50})"}), 0,
            "id      j\nstatus  IN_QUEUE\n");
  expectEnd(runWith("{\"id\":\"j\"}", {"run", "e/p", "{}", "--json"}), 0, "{\"id\":\"j\"}\n");
  EXPECT_THAT(server_.calls(),
              ElementsAre(R"(POST /v2/ep/run {"input":{"a" : 1.50}})", R"(POST /v2/e%2Fp/run {"input":{}})"));
}

TEST_F(CliJobsTest, RunWithSyncTellsTheEndOfTheJob) {
  expectEnd(
      runWith(R"({"id":"j","status":"COMPLETED","delayTime":2,"executionTime":30,"workerId":"w","output":{"b" : 1}})",
              {"run", "ep", "{}", "--sync"}),
      0, "id         j\nstatus     COMPLETED\nworker     w\ndelay      2 ms\nexecution  30 ms\noutput:\n{\"b\" : 1}\n");
  expectEnd(runWith(R"({"id":"j","status":"FAILED","error":"no\u001bluck"})",
                    {"run", "ep", "{}", "--sync", "--wait", "5000"}),
            4, "id      j\nstatus  FAILED\nerror   no?luck\n");
  expectEnd(runWith(R"({"id":"j","status":"IN_QUEUE"})", {"run", "ep", "{}", "--sync", "--json"}), 4,
            "{\"id\":\"j\",\"status\":\"IN_QUEUE\"}\n");
  EXPECT_THAT(server_.calls(), ElementsAre(R"(POST /v2/ep/runsync?wait=90000 {"input":{}})",
                                           R"(POST /v2/ep/runsync?wait=5000 {"input":{}})",
                                           R"(POST /v2/ep/runsync?wait=90000 {"input":{}})"));
}

TEST_F(CliJobsTest, AWrongCommandLineSendsNothing) {
  expectEnd(run({"run", "ep", "{}", "--wait", "5000"}), 2, "--wait has a meaning only with --sync");
  expectEnd(run({"run", "ep", "{}", "--sync", "--wait", "5s"}), 2, "--wait takes whole milliseconds, not '5s'");
  EXPECT_THAT(run({"run", "ep", "[]"}).text, StartsWith("the input"));
  EXPECT_EQ(run({"run", "ep", "{"}).code, 2);
  EXPECT_EQ(run({"run", "ep", "@/nowhere"}).code, 2);
  EXPECT_THAT(server_.calls(), IsEmpty());
}

TEST_F(CliJobsTest, AnAnswerOfAForeignServerIsNamed) {
  const std::string other = "the answer does not come from a jobq server: check the address";
  expectEnd(runWith("<html>", {"job", "show", "ep", "j"}), 3, other);
  expectEnd(runWith("{}", {"job", "show", "ep", "j"}), 3, other);
  expectEnd(runWith("{}", {"job", "stream", "ep", "j"}), 3, other);
  expectEnd(runWith("[]", {"job", "logs", "ep", "j"}), 3, other);
  expectEnd(runWith(R"({"lines":7})", {"job", "logs", "ep", "j"}), 3, other);
  server_.answer(R"({"error":"there is no job j here"})", "404 Not Found");
  expectEnd(run({"job", "show", "ep", "j"}), 1, "there is no job j here");
}

TEST_F(CliJobsTest, ShowCancelAndRetryPrintTheJob) {
  const std::string queued = R"({"id":"j","status":"IN_QUEUE","queueReason":"no_workers","queuePosition":)";
  expectEnd(runWith(queued + "7}", {"job", "show", "ep", "j/1"}), 0,
            "id        j\nstatus    IN_QUEUE\nreason    no_workers\nposition  7\n");
  expectEnd(runWith(queued + "101}", {"status", "ep", "j"}), 0,
            "id        j\nstatus    IN_QUEUE\nreason    no_workers\nposition  100+\n");
  expectEnd(runWith(R"({"id":"j","status":"CANCELLED"})", {"job", "cancel", "ep", "j"}), 0,
            "id      j\nstatus  CANCELLED\n");
  expectEnd(runWith(R"({"id":"j","status":"IN_QUEUE"})", {"job", "retry", "ep", "j"}), 0,
            "id      j\nstatus  IN_QUEUE\n");
  EXPECT_THAT(server_.calls(), ElementsAre("GET /v2/ep/status/j%2F1?include=times", "GET /v2/ep/status/j?include=times",
                                           "POST /v2/ep/cancel/j", "POST /v2/ep/retry/j"));
}

TEST_F(CliJobsTest, JobsAreListedWithTheRest) {
  expectEnd(runWith(R"({"requests":[{"id":"b","status":"IN_QUEUE"},{"id":"a","status":"FAILED","delayTime":1,)"
                    R"("executionTime":2,"retries":3,"workerId":"w","error":"no luck"}],)"
                    R"("total":9,"offset":4,"limit":2,"hasMore":true,"cursor":5})",
                    {"job", "list", "ep", "--limit", "2", "--offset", "4", "--status", "A&B"}),
            0,
            "JOB  STATUS    AGE  DELAY MS  EXECUTION MS  RETRIES  WORKER  KEY  ERROR\n"
            "b    IN_QUEUE  -    -         -             -        -       -    -\n"
            "a    FAILED    -    1         2             3        w       -    no luck\n"
            "\n2 of 9 jobs; --offset 6 shows the next ones.\n");
  expectEnd(runWith(R"({"requests":[],"total":0,"hasMore":false})", {"requests", "ep"}), 0,
            "JOB  STATUS  AGE  DELAY MS  EXECUTION MS  RETRIES  WORKER  KEY  ERROR\n");
  EXPECT_THAT(server_.calls(), ElementsAre("GET /v2/ep/requests?status=A%26B&limit=2&offset=4", "GET /v2/ep/requests"));
}

TEST_F(CliJobsTest, AnIdAloneIsForScripts) {
  expectEnd(runWith(R"({"id":"j1","status":"IN_QUEUE"})", {"run", "ep", "{}", "-q"}), 0, "j1\n");
  expectEnd(
      runWith(R"({"requests":[{"id":"b"},{"id":"a"}],"total":2,"hasMore":false})", {"job", "list", "ep", "--quiet"}), 0,
      "b\na\n");
  expectEnd(runWith(R"({"id":"k1","key":"the secret"})", {"key", "create", "ci", "-q"}), 0, "the secret\n");
  expectEnd(runWith(R"({"id":"t1","name":"n"})", {"template", "create", "--name", "n", "--image", "i", "-q"}), 0,
            "t1\n");
  expectEnd(runWith(R"({"id":"e1","name":"n"})", {"endpoint", "create", "--template", "t1", "-q"}), 0, "e1\n");
  for (const char* kind : {"key", "template", "endpoint"}) {
    expectEnd(runWith(R"([{"id":"x"},{"id":"y"}])", {kind, "list", "-q"}), 0, "x\ny\n");
  }
  expectEnd(run({"health", "ep", "-q"}), 2, "there is no option --q; --help lists the options");
}

TEST_F(CliJobsTest, HealthWithoutAnEndpointIsATableOfAll) {
  const std::string all =
      R"([{"id":"a","name":"","jobs":{"inQueue":1,"inProgress":2,"completed":3,"failed":4},)"
      R"("workers":{"idle":5,"running":6,"unhealthy":7},"webhooks":{"owed":8},"advice":"start one"}])";
  EXPECT_THAT(runWith(all, {"health"}).text, testing::ContainsRegex("a +- +1 +2 +3 +4 +5 +6 +7 +8 +start one"));
  EXPECT_EQ(runWith(all, {"health", "--json"}).text, all + "\n");
  EXPECT_THAT(server_.calls(), ElementsAre("GET /v1/health?limit=1000", "GET /v1/health?limit=1000"));
}

TEST_F(CliJobsTest, TheErrorOfAJobHasItsLines) {
  expectEnd(runWith(R"({"id":"a","status":"FAILED","error":"one\ntwo \u001b[31m"})", {"job", "show", "ep", "a"}), 0,
            "id      a\nstatus  FAILED\nerror:\n  one\n  two ?[31m\n");
  expectEnd(
      runWith(
          R"({"id":"a","status":"FAILED","error":"{\"error_type\":\"ValueError\",\"n\":7,\"error_traceback\":\"x\\n  y\"}"})",
          {"job", "show", "ep", "a"}),
      0, "id      a\nstatus  FAILED\nerror:\n  error_type: ValueError\n  n: 7\n  error_traceback:\n  x\n    y\n");
  expectEnd(runWith(R"({"id":"a","status":"FAILED","error":"{no object"})", {"job", "show", "ep", "a"}), 0,
            "id      a\nstatus  FAILED\nerror:\n  {no object\n");
}

TEST_F(CliJobsTest, AdviceIsShown) {
  expectEnd(runWith(R"({"id":"a","status":"IN_QUEUE","queueReason":"no_worker","queueAdvice":"start one"})",
                    {"job", "show", "ep", "a"}),
            0, "id      a\nstatus  IN_QUEUE\nreason  no_worker\nadvice  start one\n");
  EXPECT_THAT(runWith(R"({"advice":"start one"})", {"health", "ep"}).text, testing::EndsWith("\nadvice: start one\n"));
}

TEST_F(CliJobsTest, PurgeAndHealthCount) {
  expectEnd(runWith(R"({"removed":3,"status":"completed"})", {"purge", "ep", "--yes"}), 0,
            "3 waiting jobs are deleted; running jobs continue.\n");
  expectEnd(runWith(R"({"jobs":{"completed":1,"failed":2,"inProgress":3,"inQueue":4,"retried":5},)"
                    R"("webhooks":{"owed":6,"oldestMs":7},)"
                    R"("workers":{"idle":1,"initializing":2,"ready":3,"running":4,"throttled":5}})",
                    {"health", "ep"}),
            0,
            "jobs  inQueue  inProgress  completed  failed  retried\n"
            "      4        3           1          2       5\n\n"
            "workers  idle  initializing  ready  running  throttled  unhealthy\n"
            "         1     2             3      4        5          -\n\n"
            "webhooks  owed  oldestMs\n"
            "          6     7\n");
  EXPECT_THAT(server_.calls(), ElementsAre("POST /v2/ep/purge-queue", "GET /v2/ep/health"));
}

TEST_F(CliJobsTest, AStreamIsReadByOffsetUntilTheEnd) {
  server_.answer(R"([{"output":1},{"output":{"a" : 2}}])", "200 OK",
                 "X-Job-Status: IN_PROGRESS\r\nX-Job-Attempt: 1\r\n");
  server_.answer(R"([{"output":3}])", "200 OK", "X-Job-Status: COMPLETED\r\nX-Job-Attempt: 1\r\n");
  expectEnd(run({"job", "stream", "ep", "j"}), 0, "1\n{\"a\" : 2}\n3\n");
  server_.answer(R"([{"output":1,"metrics":{"t":1}}])", "200 OK", "X-Job-Status: COMPLETED\r\nX-Job-Attempt: 1\r\n");
  expectEnd(run({"job", "stream", "ep", "j", "--json"}), 0, "{\"output\":1,\"metrics\":{\"t\":1}}\n");
  EXPECT_THAT(server_.calls(),
              ElementsAre("GET /v2/ep/stream/j?wait=20000&offset=0", "GET /v2/ep/stream/j?wait=20000&offset=2",
                          "GET /v2/ep/stream/j?wait=20000&offset=0"));
}

TEST_F(CliJobsTest, AStreamBeginsAgainWithTheJob) {
  const CapturedErrors errors;
  server_.answer(R"([{"output":1}])", "200 OK", "X-Job-Status: IN_PROGRESS\r\nX-Job-Attempt: 1\r\n");
  server_.answer("[]", "200 OK", "X-Job-Status: IN_PROGRESS\r\nX-Job-Attempt: 2\r\n");
  server_.answer(R"([{"output":7}])", "200 OK", "X-Job-Status: FAILED\r\nX-Job-Attempt: 2\r\n");
  server_.answer(R"({"id":"j","status":"FAILED","error":"no luck"})");
  expectEnd(run({"job", "stream", "ep", "j"}), 4, "1\n7\n");
  EXPECT_EQ(errors.text(),
            "jobqctl: the job started again, and so does its stream\njobqctl: the job is FAILED: no luck\n");
  EXPECT_THAT(server_.calls(),
              ElementsAre("GET /v2/ep/stream/j?wait=20000&offset=0", "GET /v2/ep/stream/j?wait=20000&offset=1",
                          "GET /v2/ep/stream/j?wait=20000&offset=0", "GET /v2/ep/status/j"));
}

TEST_F(CliJobsTest, ALogIsReadPageByPage) {
  server_.answer(
      R"({"lines":[{"at":"T1","level":"warning","text":"one\u001b[2J"}],"next":"5-1","more":true,"status":"IN_PROGRESS"})");
  server_.answer(
      R"({"lines":[{"at":"T2","level":"error","text":"two"}],"next":"6-1","more":false,"status":"IN_PROGRESS"})");
  expectEnd(run({"job", "logs", "ep", "j"}), 0, "T1 warning one?[2J\nT2 error two\n");
  server_.answer(R"({"lines":[{"at" : "T1"}],"next":"5-1","more":false,"status":"CANCELLED"})");
  expectEnd(run({"job", "logs", "ep", "j", "--follow", "--json"}), 4, "{\"at\" : \"T1\"}\n");
  server_.answer(R"({"lines":[],"next":"0-0","more":false,"status":"COMPLETED"})");
  expectEnd(run({"job", "logs", "ep", "j", "--follow"}), 0, "");
  EXPECT_THAT(server_.calls(), ElementsAre("GET /v2/ep/logs/j", "GET /v2/ep/logs/j?after=5-1", "GET /v2/ep/logs/j",
                                           "GET /v2/ep/logs/j"));
}

TEST_F(CliJobsTest, TheOutputOfAWorkerIsFollowedToItsEnd) {
  server_.answer(R"({"lines":[{"at":"T1","text":"one\u001b[2J"}],"next":"1","state":"running"})");
  expectEnd(run({"worker", "logs", "ep", "w"}), 0, "T1 one?[2J\n");
  server_.answer(R"({"lines":[{"at":"T1","text":"one"}],"next":"1","state":"running"})");
  server_.answer(
      R"({"lines":[{"at":"T2","text":"two"}],"next":"2","state":"ended","reason":"it ended with exit code 1"})");
  expectEnd(run({"worker", "logs", "ep", "w", "--follow", "--tail", "5"}), 0,
            "T1 one\nT2 two\nthe worker has ended: it ended with exit code 1\n");
  server_.answer(R"({"lines":[{"at" : "T1"}],"next":"1","state":"ended","reason":"it ended"})");
  expectEnd(run({"worker", "logs", "ep", "w", "--json"}), 0, "{\"at\" : \"T1\"}\n");
  const std::string path = "GET /v1/endpoints/ep/workers/w/logs";
  EXPECT_THAT(server_.calls(), ElementsAre(path, path + "?tail=5", path + "?after=1", path));
}

TEST_F(CliJobsTest, TopSortsTheBusiestFirst) {
  server_.answer(
      R"([{"id":"a","name":"","release":{"version":1,"state":"complete"}},)"
      R"({"id":"gone"},)"
      R"({"id":"b","name":"busy","paused":true,"release":{"version":2,"state":"halted","reason":"no memory"}}])");
  server_.answer(R"({"jobs":{"inQueue":1,"inProgress":0,"completed":5,"failed":0},"workers":{"running":1}})");
  server_.answer(R"({"error":"there is no endpoint gone"})", "404 Not Found");
  server_.answer(
      R"({"jobs":{"inQueue":9,"inProgress":3},"workers":{"running":3,"idle":1,"initializing":2,"unhealthy":1}})");
  expectEnd(
      run({"top", "--once"}), 0,
      "ENDPOINT  NAME  RUNNING  IDLE  STARTING  STUCK  IN QUEUE  IN PROGRESS  FINISHED/S  QUEUE         RELEASE\n"
      "b         busy  3        1     2         1      9         3            -           paused        2 halted: no "
      "memory\n"
      "a         -     1        0     0         0      1         0            -           workers_busy  1 complete\n");
  EXPECT_THAT(server_.calls(), ElementsAre("GET /v1/endpoints?limit=1000", "GET /v2/a/health", "GET /v2/gone/health",
                                           "GET /v2/b/health"));
}

TEST_F(CliJobsTest, TopOfAnEndpointAsJson) {
  server_.answer(R"({"id":"a","release":{"version":1,"state":"complete"}})");
  server_.answer(R"({"jobs":{"inQueue":1},"workers":{"idle":2}})");
  expectEnd(run({"top", "a", "--once", "--json"}), 0,
            R"({"endpoints":[{"id":"a","name":"","workers":{"idle":2,"initializing":0,"running":0,"unhealthy":0},)"
            R"("jobs":{"completed":0,"failed":0,"inProgress":0,"inQueue":1},"finishedPerSecond":null,"queue":"moving",)"
            R"("release":{"version":1,"state":"complete"}}]})"
            "\n");
  EXPECT_THAT(server_.calls(), ElementsAre("GET /v1/endpoints/a", "GET /v2/a/health"));
  expectEnd(run({"top", "--once", "--interval", "2s"}), 2, "--interval has a meaning only without --once");
}

}  // namespace
}  // namespace jobq::cli
