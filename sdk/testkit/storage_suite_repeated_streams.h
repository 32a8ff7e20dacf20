// Conformance: repeated calls for the chunks and the log of a job (sdk/include/jobq/chunk_store.h).
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "jobq/call_id.h"
#include "jobq/chunk_store.h"
#include "jobq/error.h"
#include "jobq/job.h"
#include "jobq/job_store.h"
#include "jobq/lease_store.h"
#include "jobq/log.h"
#include "jobq/time.h"
#include "testkit/returned_jobs.h"
#include "testkit/storage_suite_repeated_calls.h"

namespace jobq::testkit {

class RepeatedStreamCalls : public RepeatedCalls {
 protected:
  ReportResult addLines(const LeaseRef& lease, std::uint64_t first, const std::vector<std::string>& texts) {
    std::vector<LogLine> lines;
    lines.reserve(texts.size());
    for (const std::string& text : texts) lines.push_back({{}, LogLevel::information, text});
    return chunks().appendLog(lease, first, std::move(lines));
  }
  std::string logOf(const JobId& id) {
    std::string texts;
    const std::vector<LogLine> lines = chunks().readLog({"ep", id}).value().lines;
    for (const LogLine& line : lines) texts += line.text;
    return texts;
  }
  void addChunks(const LeaseRef& lease, const std::vector<std::string>& outputs) {
    for (const std::string& output : outputs)
      EXPECT_EQ(append(lease, {Chunk{output, "", false}}), ReportResult::accepted);
  }
  /// Returns the outputs of the page, and "+" behind them if the store has more.
  std::string consumed(CallId id, std::size_t maxBytes = 2) {
    const ChunkPage page = chunks().consume({"ep", "a"}, maxBytes, id).value();
    return outputsOf(page) + (page.more ? "+" : "");
  }
};

TEST_P(RepeatedStreamCalls, RepeatedLogLinesAreStoredOnce) {
  submit("a");
  const LeaseRef first = claimOne();
  EXPECT_THROW((void)addLines(first, 1, {"gap"}), Error) << "the first line is missing";
  EXPECT_EQ(addLines(first, 0, {"0", "1"}), ReportResult::accepted);
  EXPECT_EQ(addLines(first, 0, {"0", "1"}), ReportResult::accepted);
  EXPECT_EQ(addLines(first, 1, {"1", "2", "3"}), ReportResult::accepted) << "the rest is stored";
  EXPECT_EQ(addLines(first, 2, {}), ReportResult::accepted);
  EXPECT_THROW((void)addLines(first, 5, {}), Error);
  EXPECT_EQ(logOf("a"), "0123");
  EXPECT_EQ(testkit::release(leases(), std::vector{first}), 1U);
  EXPECT_EQ(addLines(first, 4, {"4"}), ReportResult::staleAttempt);
  const ClaimedJob second = claim(1).at(0);
  EXPECT_EQ(second.logLines, 4U);
  EXPECT_EQ(addLines(second.lease, second.logLines, {"4"}), ReportResult::accepted);
  EXPECT_EQ(logOf("a"), "01234");
}

// The numbers go on when the oldest lines are dropped.
TEST_P(RepeatedStreamCalls, ARepeatedCallBeyondTheCapDropsNoFurtherLine) {
  submit("a");
  const LeaseRef lease = claimOne();
  const std::vector<std::string> lines(kMaxLogLines, "x");
  EXPECT_EQ(addLines(lease, 0, lines), ReportResult::accepted);
  const std::vector<std::string> more(10, "y");
  EXPECT_EQ(addLines(lease, kMaxLogLines, more), ReportResult::accepted);
  const std::string log = logOf("a");
  EXPECT_EQ(addLines(lease, kMaxLogLines, more), ReportResult::accepted);
  EXPECT_EQ(addLines(lease, 0, lines), ReportResult::accepted);
  EXPECT_EQ(logOf("a"), log);
  EXPECT_EQ(log, std::string(kMaxLogLines - 10, 'x') + std::string(10, 'y'));
}

TEST_P(RepeatedStreamCalls, TheLastPageIsReturnedAgain) {
  submit("a");
  const LeaseRef lease = claimOne();
  EXPECT_EQ(consumed(70), "");
  addChunks(lease, {"0", "1", "2"});
  EXPECT_EQ(consumed(70), "01+") << "the empty page left no trace";
  EXPECT_EQ(consumed(70), "01+");
  EXPECT_EQ(consumed(70, 100), "01+") << "the same chunks, whatever the bound";
  EXPECT_EQ(consumed(71), "2");
  addChunks(lease, {"3"});
  EXPECT_EQ(consumed(71), "2+") << "the repeated page omits the later chunk";
  EXPECT_EQ(complete(lease), ReportResult::accepted);
  EXPECT_EQ(consumed(71), "2+") << "the page is repeated after the job's end, too";
  EXPECT_EQ(consumed(72), "3");
  EXPECT_EQ(consumed(72), "3") << "all chunks are consumed";
  EXPECT_EQ(consumed(73), "");
  EXPECT_EQ(consumed(72), "3") << "the empty page left no trace";
}

TEST_P(RepeatedStreamCalls, TheIdOfTheLastCallIsStoredWithTheChunks) {
  if (!GetParam().durable) GTEST_SKIP() << GetParam().name << " does not promise to keep anything";
  constexpr CallId kLargest = ~CallId{0};
  submit("a");
  const LeaseRef lease = claimOne();
  addChunks(lease, {"0", "1", "2"});
  EXPECT_EQ(consumed(kLargest), "01+");
  reopen();
  EXPECT_EQ(consumed(kLargest), "01+");
  EXPECT_EQ(consumed(kLargest - 1), "2");
}

// The store keeps one id. A chunk is not returned twice: the page of the earlier call is lost.
TEST_P(RepeatedStreamCalls, AnEarlierCallGetsTheNextChunks) {
  submit("a");
  addChunks(claimOne(), {"0", "1", "2", "3", "4"});
  EXPECT_EQ(consumed(70), "01+");
  EXPECT_EQ(consumed(71), "23+");
  EXPECT_EQ(consumed(70), "4");
}

TEST_P(RepeatedStreamCalls, ANewAttemptKnowsNoEarlierCall) {
  submit("a");
  const LeaseRef first = claimOne();
  addChunks(first, {"old"});
  EXPECT_EQ(consumed(70), "old");
  EXPECT_EQ(testkit::release(leases(), std::vector{first}), 1U);
  EXPECT_EQ(consumed(70), "");
  const LeaseRef second = claimOne();
  addChunks(second, {"new"});
  EXPECT_EQ(consumed(70), "new");
  EXPECT_EQ(fail(second), ReportResult::accepted);
  EXPECT_TRUE(std::holds_alternative<Requeued>(requeue({"ep", "a"}, policy_)));
  EXPECT_EQ(consumed(70), "");
}

}  // namespace jobq::testkit
