#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>

#include "testkit/fake_job_context.h"
#include "testkit/loaded_plugin.h"
#include "testkit/wait_for.h"

namespace jobq::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class HandlerTrial : public testing::Test {
 protected:
  std::string run(std::string_view input) { return handler_->run(input, context_); }

  std::future<std::string> start(std::string input) {
    return std::async(std::launch::async, [this, input = std::move(input)] { return run(input); });
  }

  std::string failureOf(std::string_view input) {
    try {
      run(input);
    } catch (const JobFailed& failure) {
      return failure.what();
    }
    return "(it did not fail)";
  }

  static std::string failureOf(std::future<std::string>& running) {
    try {
      testkit::resultOf("the trial job", running);
    } catch (const JobFailed& failure) {
      return failure.what();
    }
    return "(it did not fail)";
  }

  void awaitWait(Millis length) { clock_.awaitWaiter(length, length); }

  testkit::ManualClock clock_;
  testkit::MapConfig config_;
  testkit::SilentLog log_;
  testkit::FakeJobContext context_;
  std::unique_ptr<HandlerFactory> factory_ = testkit::loadPlugin<HandlerFactory>(
      JOBQ_PLUGIN_DIR "/libjobq_handler_trial.so", "trial", PluginEnv{config_, clock_, log_, ".", false});
  std::unique_ptr<JobHandler> handler_ = factory_->make(HandlerEnv{"endpoint", "worker", {}});
};

TEST_F(HandlerTrial, ReturnsTheWholeInputByteForByte) {
  for (const char* input : {"{}", " { \"b\" : 1.0, \"a\":1e400,\"\\u0061\" : [ ] }\n", R"({"unknown":{"x":null}})"}) {
    EXPECT_EQ(run(input), input);
  }
}

TEST_F(HandlerTrial, ReturnsTheOutputOfItsInputByteForByte) {
  EXPECT_EQ(run(R"({"output": {"z":1, "a" : 1.50}})"), R"({"z":1, "a" : 1.50})");
  EXPECT_EQ(run(R"({"output":null})"), "null");
  EXPECT_EQ(run(R"({"output":"text"})"), "\"text\"");
}

TEST_F(HandlerTrial, ReportsProgressAndLogLinesInOrder) {
  run(R"({"progress":[{"p": 1},"half",3],"log":["first","second \u00e9"]})");
  EXPECT_THAT(context_.progressReports(), ElementsAre(R"({"p": 1})", "\"half\"", "3"));
  EXPECT_THAT(context_.lines(), ElementsAre("first", "second é"));
}

TEST_F(HandlerTrial, SleepsOnTheClockOfTheServer) {
  auto running = start(R"({"progress":[1],"sleepMs":604800000,"log":["woke"],"output":1})");
  awaitWait(Millis(604'800'000));
  EXPECT_THAT(context_.progressReports(), ElementsAre("1"));
  EXPECT_THAT(context_.lines(), IsEmpty());
  clock_.advance(Millis(604'800'000));
  EXPECT_EQ(testkit::resultOf("the end of the handler", running), "1");
  EXPECT_THAT(context_.lines(), ElementsAre("woke"));
}

TEST_F(HandlerTrial, StopsDuringASleep) {
  auto running = start(R"({"sleepMs":5000})");
  awaitWait(Millis(5000));
  context_.stop();
  EXPECT_EQ(failureOf(running), "the job was stopped while sleeping");
}

TEST_F(HandlerTrial, IsStoppedBeforeTheFirstWait) {
  context_.stop();
  EXPECT_EQ(failureOf(R"({"sleepMs":5000})"), "the job was stopped while sleeping");
  EXPECT_EQ(run(R"({"log":["no wait, no stop"]})"), R"({"log":["no wait, no stop"]})");
}

TEST_F(HandlerTrial, IgnoresAStopWhenToldTo) {
  auto running = start(R"({"ignoreStop":true,"sleepMs":5000,"burnMs":1,"chunks":1,"output":2})");
  awaitWait(Millis(5000));
  context_.stop();
  awaitWait(Millis(5000));
  clock_.advance(Millis(5000));
  EXPECT_EQ(testkit::resultOf("the end of the handler", running), "2");
}

TEST_F(HandlerTrial, BurnsProcessorTimeAndStops) {
  EXPECT_EQ(run(R"({"burnMs":20,"output":3})"), "3");
  auto running = start(R"({"burnMs":604800000})");
  context_.stop();
  EXPECT_EQ(failureOf(running), "the job was stopped while burning");
}

TEST_F(HandlerTrial, AllocatesMemory) {
  EXPECT_EQ(run(R"({"allocMb":8,"output":4})"), "4");
  context_.stop();
  EXPECT_EQ(failureOf(R"({"allocMb":65536})"), "the job was stopped while allocating");
}

TEST_F(HandlerTrial, EmitsChunks) {
  run(R"({"chunks":3,"chunkBytes":4})");
  EXPECT_THAT(context_.chunks(), ElementsAre(R"({"chunk":0,"data":"xxxx"})", R"({"chunk":1,"data":"xxxx"})",
                                             R"({"chunk":2,"data":"xxxx"})"));
}

TEST_F(HandlerTrial, WaitsBeforeEachChunk) {
  auto running = start(R"({"chunks":2,"chunkMs":100})");
  awaitWait(Millis(100));
  EXPECT_EQ(context_.chunks().size(), 0U);
  clock_.advance(Millis(100));
  awaitWait(Millis(100));
  EXPECT_EQ(context_.chunks().size(), 1U);
  clock_.advance(Millis(100));
  testkit::resultOf("the trial job", running);
  EXPECT_EQ(context_.chunks().size(), 2U);
}

TEST_F(HandlerTrial, StopsBetweenChunks) {
  auto running = start(R"({"chunks":1000000,"chunkMs":100})");
  awaitWait(Millis(100));
  context_.stop();
  EXPECT_EQ(failureOf(running), "the job was stopped while sending chunks");
}

TEST_F(HandlerTrial, FailsAndThrowsOnDemand) {
  EXPECT_EQ(failureOf(R"({"log":["before"],"fail":"as \"asked\"","throw":"not reached"})"), "as \"asked\"");
  EXPECT_THAT(context_.lines(), ElementsAre("before"));
  try {
    run(R"({"throw":"some bug","crash":"abort"})");
    FAIL() << "the handler did not throw";
  } catch (const Error&) {
    FAIL() << "the handler threw an exception of jobq";
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "some bug");
  }
}

TEST_F(HandlerTrial, HangsUntilTheStop) {
  auto running = start(R"({"crash":"hang"})");
  awaitWait(std::chrono::hours(1));
  clock_.advance(std::chrono::hours(1));
  awaitWait(std::chrono::hours(1));
  context_.stop();
  EXPECT_EQ(failureOf(running), "the job was stopped while hanging");
}

TEST_F(HandlerTrial, TakesTheProcessDown) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(run(R"({"crash":"exit"})"), testing::ExitedWithCode(3), "");
  EXPECT_DEATH(run(R"({"crash":"abort"})"), "");
  EXPECT_DEATH(run(R"({"crash":"segv"})"), "");
}

TEST_F(HandlerTrial, ServesAgainAfterAFailure) {
  EXPECT_EQ(failureOf(R"({"fail":"first"})"), "first");
  EXPECT_EQ(run("{}"), "{}");
}

TEST_F(HandlerTrial, RefusesWrongInputBeforeTheStart) {
  const std::pair<const char*, const char*> kCases[] = {
      {R"({"progress":1})", "progress of a trial must be an array of JSON values"},
      {R"({"sleepMs":-1})", "sleepMs of a trial must be a whole number from 0 to 604800000"},
      {R"({"sleepMs":604800001})", "sleepMs"},
      {R"({"sleepMs":1.5})", "sleepMs"},
      {R"({"burnMs":"5"})", "burnMs of a trial must be a whole number"},
      {R"({"allocMb":65537})", "allocMb of a trial must be a whole number from 0 to 65536"},
      {R"({"chunks":1000001})", "chunks of a trial must be a whole number from 0 to 1000000"},
      {R"({"chunkBytes":67108865})", "chunkBytes of a trial must be a whole number from 0 to 67108864"},
      {R"({"chunkMs":null})", "chunkMs"},
      {R"({"ignoreStop":1})", "ignoreStop of a trial must be true or false"},
      {R"({"log":"line"})", "log of a trial must be an array of strings"},
      {R"({"log":[1]})", "log of a trial must be an array of strings"},
      {R"({"fail":1})", "fail of a trial must be a string"},
      {R"({"throw":{}})", "throw of a trial must be a string"},
      {R"({"crash":"burn"})", "crash of a trial must be one of \"segv\", \"abort\", \"exit\", \"hang\""},
      {R"({"crash":1})", "crash of a trial must be one of"},
      {"[]", "input of a trial must be a JSON object"},
      {"{", "input of a trial must be a JSON object"},
  };
  for (const auto& [input, message] : kCases) {
    EXPECT_THAT(failureOf(input), HasSubstr(message)) << input;
  }
  EXPECT_THAT(failureOf(R"({"progress":[1],"chunks":5,"crash":"burn"})"), HasSubstr("crash"));
  EXPECT_THAT(context_.progressReports(), IsEmpty());
  EXPECT_THAT(context_.chunks(), IsEmpty());
}

}  // namespace
}  // namespace jobq::test
