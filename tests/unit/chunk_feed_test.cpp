// Tests of the chunks of a job for one reader (core/jobs/chunk_feed.h).
#include "core/jobs/chunk_feed.h"

#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "job_service_fixture.h"
#include "jobq/error.h"

namespace jobq {
namespace {

using testing::ElementsAre;

class ChunkFeedTest : public JobServiceTest {
 protected:
  ChunkFeedTest() {
    submit("a");
    lease_ = claim();
  }
  void append(const std::string& output) {
    EXPECT_EQ(reports_.append(lease_, count_++, {{output, "", false}}), ReportResult::accepted);
  }
  std::optional<ChunkFeed::Result> poll(std::size_t bytes = 1'000) {
    return feed_->poll(storage_.clock.now() + Millis(1'000), caller_.waitingCaller(), bytes);
  }
  static std::vector<std::string> outputsOf(const std::optional<ChunkFeed::Result>& result) {
    std::vector<std::string> outputs;
    if (!result || !result->page) return {"none"};
    for (const Chunk& chunk : result->page->chunks) outputs.push_back(chunk.output);
    return outputs;
  }

  LeaseRef lease_;
  std::uint64_t count_ = 0;
  test::HeldCaller caller_;
  std::unique_ptr<ChunkFeed> feed_ = jobs_.followChunks(key("a"));
};

TEST_F(ChunkFeedTest, EachChunkComesAtOnceAndTheEndBehindTheLast) {
  EXPECT_FALSE(poll()) << "no chunk yet";
  append("1");
  append("2");
  EXPECT_THAT(outputsOf(poll()), ElementsAre("1", "2"));
  EXPECT_FALSE(poll());
  append("3");
  EXPECT_EQ(reports_.finish(lease_, Completed{"[]"}, false), ReportResult::accepted);
  EXPECT_THAT(outputsOf(poll()), ElementsAre("3"));
  for (int i = 0; i < 2; ++i) {
    const auto end = poll();
    ASSERT_TRUE(end && end->page);
    EXPECT_TRUE(end->page->chunks.empty());
    EXPECT_EQ(end->page->state, JobState::completed);
  }
  EXPECT_THAT(outputsOf(ChunkFeed::Result{jobs_.chunks({key("a"), {}, 1'000})}), ElementsAre("1", "2", "3"))
      << "a feed does not use up the chunks";
}

TEST_F(ChunkFeedTest, APageIsBoundedInBytes) {
  append("100");
  append("200");
  EXPECT_THAT(outputsOf(poll(3)), ElementsAre("100"));
  EXPECT_THAT(outputsOf(poll(3)), ElementsAre("200"));
  EXPECT_FALSE(poll(3));
}

TEST_F(ChunkFeedTest, ANewAttemptIsReported) {
  append("1");
  EXPECT_THAT(outputsOf(poll()), ElementsAre("1"));
  reports_.giveBack({&lease_, 1}, false);
  lease_ = claim();
  count_ = 0;
  append("2");
  const auto result = poll();
  ASSERT_TRUE(result);
  EXPECT_TRUE(result->hasRestarted);
  EXPECT_TRUE(result->page && result->page->chunks.empty());
  EXPECT_THAT(outputsOf(poll()), ElementsAre("2")) << "the feed begins anew";
  EXPECT_FALSE(poll());
}

TEST_F(ChunkFeedTest, AFeedBeginsAtAPosition) {
  for (const char* output : {"1", "2", "3"}) append(output);
  feed_ = jobs_.followChunks(key("a"), {lease_.attempt, 2});
  EXPECT_THAT(outputsOf(poll()), ElementsAre("3"));
  feed_ = jobs_.followChunks(key("a"), {0, 1});
  EXPECT_THAT(outputsOf(poll()), ElementsAre("2", "3"));
  feed_ = jobs_.followChunks(key("a"), {lease_.attempt, 9});
  EXPECT_FALSE(poll());
  feed_ = jobs_.followChunks(key("a"), {lease_.attempt + 1, 2});
  EXPECT_TRUE(poll()->hasRestarted) << "the position is of a different attempt";
  EXPECT_THAT(outputsOf(poll()), ElementsAre("1", "2", "3"));
}

TEST_F(ChunkFeedTest, AFailedReadingIsRepeatedOnDemand) {
  append("1");
  feed_ = jobs_.followChunks(key("a"));
  storage_.faults.failOperation("chunks.read");
  EXPECT_THROW((void)poll(), StorageError);
  storage_.faults.heal();
  EXPECT_FALSE(poll()) << "the poll after a failure waits";
  feed_->readAgain();
  EXPECT_THAT(outputsOf(poll()), ElementsAre("1"));
}

TEST_F(ChunkFeedTest, TheWaitEnds) {
  EXPECT_FALSE(poll());
  caller_.leave();
  const auto over = poll();
  ASSERT_TRUE(over);
  EXPECT_TRUE(over->isOver);
  EXPECT_FALSE(over->page);
}

TEST_F(ChunkFeedTest, AnAbsentJobIsSaid) {
  const auto feed = jobs_.followChunks(key("nobody"));
  const auto result = feed->poll(storage_.clock.now(), caller_.waitingCaller(), 1);
  ASSERT_TRUE(result);
  EXPECT_FALSE(result->page);
  EXPECT_FALSE(result->isOver);
}

}  // namespace
}  // namespace jobq
