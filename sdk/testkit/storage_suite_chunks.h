// Conformance: ChunkStore (chunk_store.h).
#pragma once

#include "testkit/storage_suite.h"

namespace jobq::testkit {

TEST_P(StorageSuite, ChunksAreHandedOutOnceInOrder) {
  submit("a");
  const JobKey key{"ep", "a"};
  const LeaseRef lease = claimOne();
  EXPECT_EQ(storage_->chunks().append(lease, {Chunk{"1.0", "{\"m\":1}", false}, Chunk{"\"two\"", "", true}}),
            Fenced::accepted);
  auto page = storage_->chunks().take(key, 1'000);
  ASSERT_TRUE(page);
  ASSERT_EQ(page->chunks.size(), 2U);
  EXPECT_EQ(page->chunks[0].output, "1.0");
  EXPECT_EQ(page->chunks[0].metrics, "{\"m\":1}");
  EXPECT_FALSE(page->chunks[0].partial);
  EXPECT_TRUE(page->chunks[1].partial);
  EXPECT_EQ(page->next, 2U);
  EXPECT_FALSE(page->more);
  EXPECT_EQ(page->state, JobState::inProgress);
  EXPECT_EQ(page->attempt, lease.attempt);
  EXPECT_TRUE(storage_->chunks().take(key, 1'000)->chunks.empty());
  EXPECT_EQ(storage_->chunks().append(lease, {Chunk{"3", "", false}}), Fenced::accepted);
  EXPECT_EQ(complete(lease), Fenced::accepted);
  page = storage_->chunks().take(key, 1'000);
  ASSERT_EQ(page->chunks.size(), 1U);
  EXPECT_EQ(page->chunks[0].output, "3");
  EXPECT_EQ(page->state, JobState::completed) << "the final state comes with the last chunks";
  EXPECT_EQ(storage_->chunks().read(key, 0, 1'000)->chunks.size(), 3U) << "kept until the job expires";
}

TEST_P(StorageSuite, APageOfChunksIsBoundedButNeverEmpty) {
  submit("a");
  const JobKey key{"ep", "a"};
  const LeaseRef lease = claimOne();
  std::vector<Chunk> chunks(5, Chunk{std::string(10, '1'), "", false});
  EXPECT_EQ(storage_->chunks().append(lease, chunks), Fenced::accepted);
  auto page = storage_->chunks().take(key, 25);
  EXPECT_EQ(page->chunks.size(), 2U);
  EXPECT_TRUE(page->more);
  page = storage_->chunks().take(key, 1);
  EXPECT_EQ(page->chunks.size(), 1U);
  EXPECT_EQ(page->next, 3U);
  page = storage_->chunks().read(key, 1, 20);
  EXPECT_EQ(page->chunks.size(), 2U);
  EXPECT_TRUE(page->more);
  page = storage_->chunks().read(key, 99, 20);
  EXPECT_TRUE(page->chunks.empty());
  EXPECT_FALSE(page->more);
  page = storage_->chunks().take(key, 1'000);
  EXPECT_EQ(page->chunks.size(), 2U) << "reading does not move the cursor";
}

TEST_P(StorageSuite, ANewAttemptStartsItsStreamAgain) {
  submit("a");
  const JobKey key{"ep", "a"};
  LeaseRef lease = claimOne();
  EXPECT_EQ(storage_->chunks().append(lease, {Chunk{"\"old\"", "", false}}), Fenced::accepted);
  EXPECT_EQ(storage_->chunks().take(key, 100)->chunks.size(), 1U);
  (void)storage_->leases().release(std::vector{lease});
  EXPECT_TRUE(storage_->chunks().read(key, 0, 100)->chunks.empty());
  lease = claimOne();
  EXPECT_EQ(storage_->chunks().append(lease, {Chunk{"\"new\"", "", false}}), Fenced::accepted);
  const auto page = storage_->chunks().take(key, 100);
  ASSERT_EQ(page->chunks.size(), 1U);
  EXPECT_EQ(page->chunks[0].output, "\"new\"");
  EXPECT_EQ(page->attempt, lease.attempt);
}

TEST_P(StorageSuite, AJobKeepsItsLastLogLines) {
  submit("a");
  const LeaseRef lease = claimOne();
  std::vector<LogLine> lines;
  for (std::size_t i = 0; i < kMaxLogLines + 5; ++i) lines.push_back({{}, LogLevel::warning, std::to_string(i)});
  EXPECT_EQ(storage_->chunks().appendLog(lease, lines), Fenced::accepted);
  const auto log = storage_->chunks().readLog({"ep", "a"});
  ASSERT_TRUE(log);
  ASSERT_EQ(log->size(), kMaxLogLines);
  EXPECT_EQ(log->front().text, "5");
  EXPECT_EQ(log->front().level, LogLevel::warning);
  EXPECT_EQ(log->back().at, clock_.now());
  (void)storage_->leases().release(std::vector{lease});
  EXPECT_EQ(storage_->chunks().readLog({"ep", "a"})->size(), kMaxLogLines) << "over all attempts";
}

}  // namespace jobq::testkit
