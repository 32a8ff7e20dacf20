// Tests of the output of launched workers in memory (core/workers/launched/output_log.h), and of the buffer of a
// launcher (sdk/include/jobq/worker_output.h).
#include "core/workers/launched/output_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "jobq/worker_output.h"

namespace jobq {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

class OutputLogTest : public testing::Test {
 protected:
  OutputLogTest() { logs_.beginWorker("ep", "w"); }

  void add(std::string_view bytes) { logs_.addOutput("w", bytes, now_); }
  std::vector<OutputLine> linesAfter(std::uint64_t after = 0) const {
    return logs_.readAfter("ep", "w", after, SIZE_MAX).value().lines;
  }
  std::vector<std::string> texts(std::uint64_t after = 0) const {
    std::vector<std::string> texts;
    for (const OutputLine& line : linesAfter(after)) texts.push_back(line.text);
    return texts;
  }
  bool isKnown(const WorkerId& worker) const { return logs_.readAfter("ep", worker, 0, 1).has_value(); }
  void endWorker(const WorkerId& worker) {
    logs_.beginWorker("ep", worker);
    logs_.endWorker(worker, "it ended", now_);
  }

  OutputLog logs_;
  Instant now_{Millis(1'000'000)};
};

TEST_F(OutputLogTest, LinesAreNumberedAndHaveATime) {
  add("one\n");
  now_ += Millis(5);
  add("two\nthr");
  const auto lines = linesAfter();
  ASSERT_THAT(lines, SizeIs(2));
  EXPECT_EQ(lines[0].number, 1U);
  EXPECT_EQ(lines[1].number, 2U);
  EXPECT_EQ(lines[1].at, now_);
  EXPECT_EQ(lines[1].text, "two") << "the third line has no end so far";
  add("ee\n");
  EXPECT_THAT(texts(1), ElementsAre("two", "three"));
}

TEST_F(OutputLogTest, ACarriageReturnEndsALine) {
  add("10 %\r20 %\r\n\n\r\ndone\n");
  EXPECT_THAT(texts(), ElementsAre("10 %", "20 %", "done"));
}

TEST_F(OutputLogTest, ALongLineIsSplit) {
  add(std::string(kLongestOutputLine + 1, 'a'));
  add("b\n" + std::string(kLongestOutputLine, 'c') + "\nd\n");
  EXPECT_THAT(texts(),
              ElementsAre(std::string(kLongestOutputLine, 'a'), "ab", std::string(kLongestOutputLine, 'c'), "d"));
}

TEST_F(OutputLogTest, TheNewestLinesStay) {
  for (std::size_t i = 0; i < kMostOutputLines + 10; ++i) add("line\n");
  EXPECT_THAT(linesAfter(), SizeIs(kMostOutputLines));
  EXPECT_EQ(linesAfter().front().number, 11U);
  for (int i = 0; i < 100; ++i) add(std::string(kLongestOutputLine, 'x'));
  EXPECT_THAT(linesAfter(), SizeIs(kMostOutputBytes / kLongestOutputLine));
}

TEST_F(OutputLogTest, APartHasAtMostTheWantedLines) {
  add("one\ntwo\nthree\n");
  const auto part = logs_.readAfter("ep", "w", 0, 2);
  EXPECT_THAT(part->lines, SizeIs(2));
  EXPECT_TRUE(part->hasMore);
  EXPECT_FALSE(logs_.readAfter("ep", "w", 1, 2)->hasMore);
}

TEST_F(OutputLogTest, ATailBeginsBeforeTheNewestLines) {
  EXPECT_EQ(logs_.startOfTail("w", 2), 0U);
  add("one\ntwo\nthree\n");
  EXPECT_EQ(logs_.startOfTail("w", 2), 1U);
  EXPECT_EQ(logs_.startOfTail("w", 9), 0U);
  EXPECT_EQ(logs_.startOfTail("none", 9), 0U);
}

TEST_F(OutputLogTest, AnEndHasAReasonAndTheBegunLine) {
  add("Killed");
  EXPECT_EQ(logs_.readAfter("ep", "w", 0, 9)->reason, std::nullopt);
  logs_.endWorker("w", "it ended with exit code 137", now_);
  EXPECT_THAT(texts(), ElementsAre("Killed"));
  EXPECT_EQ(logs_.readAfter("ep", "w", 0, 9)->reason, "it ended with exit code 137");
}

TEST_F(OutputLogTest, AnotherEndpointOrWorkerHasNoLog) {
  EXPECT_FALSE(logs_.readAfter("other", "w", 0, 9).has_value());
  logs_.addOutput("none", "text\n", now_);
  EXPECT_FALSE(isKnown("none"));
}

TEST_F(OutputLogTest, AnEndedWorkerIsForgottenLater) {
  endWorker("old");
  now_ += OutputLog::kKeptAfterEnd - Millis(1);
  endWorker("new");
  logs_.removeOldLogs(now_);
  EXPECT_TRUE(isKnown("old"));
  now_ += Millis(1);
  logs_.removeOldLogs(now_);
  EXPECT_FALSE(isKnown("old"));
  EXPECT_TRUE(isKnown("new"));
  EXPECT_TRUE(isKnown("w")) << "the worker is running";
}

TEST_F(OutputLogTest, FewEndedWorkersAreKept) {
  for (std::size_t i = 0; i <= OutputLog::kMostEnded; ++i) {
    now_ += Millis(1);
    endWorker("w" + std::to_string(i));
  }
  EXPECT_FALSE(isKnown("w0"));
  EXPECT_TRUE(isKnown("w1"));
  EXPECT_TRUE(isKnown("w"));
}

TEST(OutputBufferTest, KeepsTheNewestBytesOfEachWorker) {
  OutputBuffer buffer;
  EXPECT_THAT(buffer.drain(), IsEmpty());
  buffer.add("a", std::string(OutputBuffer::kMostBytes, 'x'));
  buffer.add("b", "small");
  buffer.add("a", "end");
  const auto outputs = buffer.drain();
  ASSERT_THAT(outputs, SizeIs(2));
  EXPECT_EQ(outputs[0].bytes.size(), OutputBuffer::kMostBytes);
  EXPECT_TRUE(outputs[0].bytes.ends_with("xend"));
  EXPECT_EQ(outputs[1].worker + " " + outputs[1].bytes, "b small");
  buffer.add("a", std::string(OutputBuffer::kMostBytes, 'y') + "z");
  EXPECT_TRUE(buffer.drain().front().bytes.ends_with("yz"));
  EXPECT_THAT(buffer.drain(), IsEmpty());
}

}  // namespace
}  // namespace jobq
