// Tests of handlers in processes (core/handler_process/handler_process.h). This program, started again by
// HandlerProcess, plays the process of the handler.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <fstream>
#include <future>
#include <iterator>
#include <optional>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/base/clock.h"
#include "core/handler_process/child_process.h"
#include "core/handler_process/handler_messages.h"
#include "core/handler_process/handler_process.h"
#include "core/handler_process/parent_link.h"
#include "testkit/fake_job_context.h"
#include "testkit/recording_log.h"
#include "testkit/thrown_text.h"
#include "testkit/wait_for.h"

namespace jobq::worker {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;

/// Does what the input of a job says. An unknown input is the output, behind a report of each kind.
void playJob(ParentLink& link, const HandedJob& job) {
  const auto report = [&link](MessageKind kind, const std::vector<std::string_view>& fields) {
    link.send(encodeMessage(kind, fields));
    const Message answer = link.awaitAnswer();
    return answer.kind == MessageKind::noted ? "noted" : answer.fields.at(0);
  };
  if (job.input == "die") ::raise(SIGKILL);
  if (job.input == "garbage") link.send(std::string(8, '\xff'));
  if (job.input == "refused") return link.send(writeOutcome(Failed{report(MessageKind::chunk, {"{", ""}), ""}));
  if (job.input == "stop") {
    std::promise<void> stopped;
    const std::stop_callback note(link.stopToken(), [&stopped] { stopped.set_value(); });
    report(MessageKind::progress, {"1"});
    auto end = stopped.get_future();
    testkit::resultOf("the stop", end);
    return link.send(writeOutcome(Failed{"stopped", ""}));
  }
  report(MessageKind::chunk, {"[1]", R"({"a":1})"});
  report(MessageKind::progress, {"50"});
  link.send(writeLine(LogLevel::warning, "a line"));
  link.send(writeOutcome(Completed{job.input}));
}

/// The name of the plugin tells how the process begins.
void playProcess() {
  ParentLink link(kHandlerSocket);
  const HandlerSetup setup = readSetup(link.awaitWork().value());
  if (setup.plugin == "dying") ::_exit(7);
  if (setup.plugin == "faulty") return link.send(encodeMessage(MessageKind::fault, {"the model is missing"}));
  link.send(encodeMessage(MessageKind::ready));
  while (auto job = link.awaitWork()) playJob(link, readJob(*std::move(job)));
}

/// Runs before the tests.
const bool kIsTest = [] {
  std::ifstream file("/proc/self/cmdline");
  const std::string words{std::istreambuf_iterator<char>(file), {}};
  if (words.find(kHandlerArgument) == std::string::npos) return true;
  playProcess();
  ::_exit(0);
}();

class HandlerProcessTest : public testing::Test {
 protected:
  std::optional<Outcome> run(HandlerProcess& handler, const std::string& input) {
    EXPECT_TRUE(handler.prepare(end_.get_token()));
    return handler.run(input, context_);
  }
  static HandlerSetup setupOf(const std::string& plugin) { return {plugin, {"ep", "w", {}, ""}, "/scripts"}; }

  SystemClock clock_;
  testkit::RecordingLog log_;
  testkit::FakeJobContext context_;
  std::stop_source end_;
  const HandlerSetup setup_ = setupOf("played");
};

TEST_F(HandlerProcessTest, ReportsAndTheOutcomePass) {
  ASSERT_TRUE(kIsTest);
  HandlerProcess handler(setup_, clock_, log_);
  const auto outcome = run(handler, "[1.0]");
  EXPECT_EQ(std::get<Completed>(outcome.value()).output, "[1.0]");
  EXPECT_THAT(context_.chunks(), ElementsAre("[1]"));
  EXPECT_THAT(context_.progressReports(), ElementsAre("50"));
  EXPECT_THAT(context_.lines(), ElementsAre("a line"));
}

TEST_F(HandlerProcessTest, ARefusedReportIsTheHandlers) {
  HandlerProcess handler(setup_, clock_, log_);
  EXPECT_THAT(std::get<Failed>(run(handler, "refused").value()).error, HasSubstr("is not JSON"));
}

TEST_F(HandlerProcessTest, ANewProcessFollowsADeadProcess) {
  HandlerProcess handler(setup_, clock_, log_);
  EXPECT_FALSE(run(handler, "die"));
  EXPECT_THAT(log_.text(), HasSubstr("ended with SIGKILL\n"));
  EXPECT_FALSE(run(handler, "garbage"));
  EXPECT_THAT(log_.text(), HasSubstr("sent a message of a wrong size and was killed\n"));
  EXPECT_TRUE(run(handler, "1"));
}

TEST_F(HandlerProcessTest, AStopReachesTheProcess) {
  HandlerProcess handler(setup_, clock_, log_);
  context_.observe([this](const auto&) { context_.stop(); });
  EXPECT_EQ(std::get<Failed>(run(handler, "stop").value()).error, "stopped");
}

TEST_F(HandlerProcessTest, AFaultOfTheFirstProcessIsThrown) {
  const HandlerSetup faulty = setupOf("faulty");
  HandlerProcess handler(faulty, clock_, log_);
  EXPECT_EQ(testkit::thrownText<std::runtime_error>([&] { return handler.prepare(end_.get_token()); }),
            "the model is missing");
}

TEST_F(HandlerProcessTest, AProcessDyingAtTheStartIsReplacedUntilTheEnd) {
  const HandlerSetup dying = setupOf("dying");
  auto prepared = std::async(std::launch::async, [&] {
    HandlerProcess handler(dying, clock_, log_);
    return handler.prepare(end_.get_token());
  });
  testkit::waitFor("two starts", [this] { return log_.lines().size() >= 2; });
  end_.request_stop();
  EXPECT_FALSE(testkit::resultOf("the end", prepared));
  EXPECT_THAT(log_.lines(), Each(HasSubstr("ended with exit code 7 before it was ready")));
}

}  // namespace
}  // namespace jobq::worker
