// Tests of a handler's reports on their way to the storage (core/workers/run/run_context.h).
#include "core/workers/run/run_context.h"
#include "core/jobs/claimer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>

#include "core/jobs/completion_notifier.h"
#include "core/jobs/queue_signal.h"
#include "core/jobs/run_reports.h"
#include "core/model/handler_run.h"
#include "core/model/output_quota.h"
#include "tests/support/fakes.h"
#include "unit_storage.h"

namespace jobq {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::SizeIs;

class RunContextTest : public testing::Test {
 protected:
  static ClaimedJob claimed(const test::UnitStorage& storage) {
    storage.insert("a");
    return storage.claim();
  }

  std::vector<Chunk> chunks() { return storage_.real->chunks().read({"ep", "a"}, 0, 1UL << 30).value().chunks; }
  std::string progress() { return storage_.real->jobs().find({"ep", "a"}).value().progress; }

  test::UnitStorage storage_;
  QueueSignal queueSignal_{{"ep"}};
  ClaimerSlot claimer_{queueSignal_};
  CompletionNotifier watch_{storage_.clock};
  test::CountingDeliveries deliveries_;
  RunReports reports_{*storage_, queueSignal_, claimer_, watch_, deliveries_};
  std::stop_source stop_;
  const ClaimedJob job_ = claimed(storage_);
  RunContext run_{{reports_, storage_.clock, storage_.log}, job_,         nullptr,
                  storage_.clock.now() + job_.runsFor,      "{\"s3\":1}", stop_.get_token()};
  JobContext& context_ = run_;  // the context as seen by a handler
};

TEST_F(RunContextTest, ShowsTheHandlerTheJob) {
  EXPECT_EQ(context_.id(), "a");
  EXPECT_EQ(context_.attempt(), 1U);
  EXPECT_EQ(context_.deadline(), storage_.clock.now() + Millis(600'000));
  EXPECT_EQ(context_.s3Config(), "{\"s3\":1}");
  EXPECT_FALSE(context_.stopToken().stop_requested());
  stop_.request_stop();
  EXPECT_TRUE(context_.stopToken().stop_requested());
}

TEST_F(RunContextTest, ReportsAreStoredUnchanged) {
  context_.emit(R"({ "n" : 1.0 })", R"({"tokens":3})");
  context_.emit("2");
  context_.progress("50");
  context_.progress("\"half\"");
  context_.log(LogLevel::warning, "careful");
  ASSERT_THAT(chunks(), SizeIs(2));
  EXPECT_EQ(chunks()[0].output, R"({ "n" : 1.0 })");
  EXPECT_EQ(chunks()[0].metrics, R"({"tokens":3})");
  EXPECT_EQ(progress(), "\"half\"") << "the last progress counts";
  const auto lines = storage_.real->chunks().readLog({"ep", "a"}).value().lines;
  ASSERT_THAT(lines, SizeIs(1));
  EXPECT_EQ(lines[0].text, "careful");
  EXPECT_EQ(lines[0].level, LogLevel::warning);
}

TEST_F(RunContextTest, WrongJsonFailsTheJobAndIsNotStored) {
  EXPECT_THROW(context_.emit("{half"), JobFailed);
  EXPECT_THROW(context_.emit("1", "[]"), JobFailed);
  EXPECT_THROW(context_.progress("half"), JobFailed);
  EXPECT_THAT(chunks(), SizeIs(0));
  EXPECT_EQ(progress(), "");
}

TEST_F(RunContextTest, AProgressHasABound) {
  const std::string most = '"' + std::string(kMaxProgressBytes - 2, 'p') + '"';
  context_.progress(most);
  EXPECT_THROW(context_.progress(most + " "), JobFailed);
  EXPECT_EQ(progress(), most);
}

TEST_F(RunContextTest, ALargeChunkIsStoredInPieces) {
  context_.emit("\"" + std::string(3UL << 20, 'x') + "\"");
  EXPECT_GT(chunks().size(), 3U);
}

TEST_F(RunContextTest, EightKilobytesOfALongLineAreKept) {
  context_.log(LogLevel::information, std::string(kLongestLine + 1, 'x'));
  const auto lines = storage_.real->chunks().readLog({"ep", "a"}).value().lines;
  EXPECT_LE(lines.at(0).text.size(), kLongestLine + 3);
  EXPECT_TRUE(lines.at(0).text.starts_with(std::string(8'000, 'x')));
}

TEST_F(RunContextTest, AReportOfAnEndedJobIsDroppedWithoutAnError) {
  (void)storage_.real->jobs().cancel({"ep", "a"});
  EXPECT_NO_THROW(context_.emit("1"));
  EXPECT_NO_THROW(context_.progress("1"));
  EXPECT_NO_THROW(context_.log(LogLevel::information, "late"));
  EXPECT_THAT(chunks(), SizeIs(0));
}

TEST_F(RunContextTest, AfterAStopTheStorageIsNotAsked) {
  stop_.request_stop();
  const auto calls = storage_.faults.calls();
  context_.emit("1");
  context_.progress("1");
  context_.log(LogLevel::information, "late");
  EXPECT_EQ(storage_.faults.calls(), calls);
}

TEST_F(RunContextTest, AReportIsOfferedUntilTheStorageAccepts) {
  storage_.faults.failOperation("leases.progress");
  auto reporting = std::async(std::launch::async, [this] { context_.progress("50"); });
  storage_.clock.awaitWaiter(Millis(1), Millis(2'000));
  EXPECT_THAT(storage_.log.lines(), Contains(HasSubstr("job.unreported")));
  storage_.faults.heal();
  storage_.clock.advance(Millis(2'000));
  ASSERT_EQ(reporting.wait_for(test::kSoon), std::future_status::ready) << "the report was not stored";
  EXPECT_EQ(progress(), "50");
}

TEST_F(RunContextTest, AStopEndsTheOffer) {
  storage_.faults.failOperation("leases.progress");
  auto reporting = std::async(std::launch::async, [this] { context_.progress("50"); });
  storage_.clock.awaitWaiter(Millis(1), Millis(2'000));
  stop_.request_stop();
  ASSERT_EQ(reporting.wait_for(test::kSoon), std::future_status::ready) << "the report did not end";
  EXPECT_NO_THROW(reporting.get());
  EXPECT_EQ(progress(), "");
}

}  // namespace
}  // namespace jobq
