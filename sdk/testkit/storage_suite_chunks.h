// Conformance: ChunkStore (chunk_store.h).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "jobq/log.h"
#include "testkit/returned_jobs.h"
#include "testkit/storage_suite.h"

namespace jobq::testkit {

TEST_P(StorageSuite, ChunksAreHandedOutOnceInOrder) {
  submit("a");
  const JobKey key{"ep", "a"};
  const LeaseRef lease = claimOne();
  EXPECT_EQ(append(lease, {Chunk{"1.0", "{\"m\":1}", false}, Chunk{"\"two\"", "", true}}), ReportResult::accepted);
  auto page = consume(key, 1'000);
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
  EXPECT_TRUE(consume(key, 1'000)->chunks.empty());
  EXPECT_EQ(append(lease, {Chunk{"3", "", false}}), ReportResult::accepted);
  EXPECT_EQ(complete(lease), ReportResult::accepted);
  page = consume(key, 1'000);
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
  EXPECT_EQ(append(lease, chunks), ReportResult::accepted);
  auto page = consume(key, 25);
  EXPECT_EQ(page->chunks.size(), 2U);
  EXPECT_TRUE(page->more);
  page = consume(key, 1);
  EXPECT_EQ(page->chunks.size(), 1U);
  EXPECT_EQ(page->next, 3U);
  page = storage_->chunks().read(key, 1, 20);
  EXPECT_EQ(page->chunks.size(), 2U);
  EXPECT_TRUE(page->more);
  page = storage_->chunks().read(key, 99, 20);
  EXPECT_TRUE(page->chunks.empty());
  EXPECT_FALSE(page->more);
  page = consume(key, 1'000);
  EXPECT_EQ(page->chunks.size(), 2U) << "reading does not move the cursor";
}

TEST_P(StorageSuite, ANewAttemptStartsItsStreamAgain) {
  submit("a");
  const JobKey key{"ep", "a"};
  LeaseRef lease = claimOne();
  EXPECT_EQ(append(lease, {Chunk{"\"old\"", "", false}}), ReportResult::accepted);
  EXPECT_EQ(consume(key, 100)->chunks.size(), 1U);
  (void)testkit::release(storage_->leases(), std::vector{lease});
  EXPECT_TRUE(storage_->chunks().read(key, 0, 100)->chunks.empty());
  lease = claimOne();
  EXPECT_EQ(append(lease, {Chunk{"\"new\"", "", false}}), ReportResult::accepted);
  const auto page = consume(key, 100);
  ASSERT_EQ(page->chunks.size(), 1U);
  EXPECT_EQ(page->chunks[0].output, "\"new\"");
  EXPECT_EQ(page->attempt, lease.attempt);
}

TEST_P(StorageSuite, AJobKeepsItsLastLogLines) {
  submit("a");
  const LeaseRef lease = claimOne();
  std::vector<LogLine> lines;
  for (std::size_t i = 0; i < kMaxLogLines + 5; ++i) lines.push_back({{}, LogLevel::warning, std::to_string(i)});
  EXPECT_EQ(appendLog(lease, lines), ReportResult::accepted);
  const auto log = storage_->chunks().readLog({"ep", "a"}).value().lines;
  ASSERT_EQ(log.size(), kMaxLogLines);
  EXPECT_EQ(log.front().text, "5");
  EXPECT_EQ(log.front().level, LogLevel::warning);
  EXPECT_EQ(log.back().at, clock_.now());
  (void)testkit::release(storage_->leases(), std::vector{lease});
  EXPECT_EQ(storage_->chunks().readLog({"ep", "a"})->lines.size(), kMaxLogLines) << "over all attempts";
}

TEST_P(StorageSuite, AJobWithoutChunksHasAnEmptyPageWithItsState) {
  submit("a");
  for (const auto& page : {consume({"ep", "a"}, 100), chunks().read({"ep", "a"}, 0, 100)}) {
    ASSERT_TRUE(page);
    EXPECT_TRUE(page->chunks.empty());
    EXPECT_EQ(page->next, 0U);
    EXPECT_FALSE(page->more);
    EXPECT_EQ(page->state, JobState::inQueue);
    EXPECT_EQ(page->attempt, 0U);
  }
  EXPECT_FALSE(consume({"ep", "none"}, 100));
  EXPECT_FALSE(chunks().read({"ep", "none"}, 0, 100));
  EXPECT_EQ(append(claimOne(), {}), ReportResult::accepted) << "an empty append is accepted";
}

TEST_P(StorageSuite, MetricsCountTowardsTheBoundToo) {
  submit("a");
  const LeaseRef lease = claimOne();
  const Chunk chunk{"12345", "{\"m\":1}", false};  // 12 bytes
  EXPECT_EQ(append(lease, {chunk, chunk, chunk}), ReportResult::accepted);
  EXPECT_EQ(chunks().read({"ep", "a"}, 0, 23)->chunks.size(), 1U);
  EXPECT_EQ(chunks().read({"ep", "a"}, 0, 24)->chunks.size(), 2U) << "a page may be full";
  EXPECT_EQ(chunks().read({"ep", "a"}, 0, 0)->chunks.size(), 1U) << "a page has a chunk even without room";
  const auto page = consume({"ep", "a"}, 35);
  EXPECT_EQ(page->chunks.size(), 2U);
  EXPECT_EQ(page->next, 2U);
  EXPECT_TRUE(page->more);
}

TEST_P(StorageSuite, ChunksAreReadByTheirNumber) {
  submit("a");
  const LeaseRef lease = claimOne();
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(append(lease, {Chunk{std::to_string(2 * i), "", false}, Chunk{std::to_string(2 * i + 1), "", false}}),
              ReportResult::accepted);
  }
  EXPECT_EQ(taken("a").size(), 8U);
  for (std::uint64_t from = 0; from < 8; ++from) {
    const auto page = chunks().read({"ep", "a"}, from, 2);
    ASSERT_EQ(page->chunks.size(), std::min<std::size_t>(2, 8 - from));
    EXPECT_EQ(page->chunks[0].output, std::to_string(from));
    EXPECT_EQ(page->next, std::min<std::uint64_t>(from + 2, 8));
    EXPECT_EQ(page->more, from + 2 < 8);
  }
  EXPECT_EQ(chunks().read({"ep", "a"}, 8, 2)->next, 8U);
  EXPECT_TRUE(taken("a").empty());
  EXPECT_EQ(complete(lease), ReportResult::accepted);
  clock_.advance(Millis(1'799'999));
  EXPECT_EQ(chunks().read({"ep", "a"}, 0, 100)->chunks.size(), 8U) << "the chunks stay until the retention ends";
  clock_.advance(Millis(1));
  EXPECT_FALSE(chunks().read({"ep", "a"}, 0, 100));
}

TEST_P(StorageSuite, AStreamIsReadInOrderInPagesOfAnySize) {
  submit("a");
  const LeaseRef lease = claimOne();
  std::vector<std::string> got;
  for (int i = 0; i < 50; ++i) {
    EXPECT_EQ(append(lease, {Chunk{std::to_string(i), "", i % 2 == 0}}), ReportResult::accepted);
    if (i % 3 != 0) continue;
    const auto page = consume({"ep", "a"}, static_cast<std::size_t>(i % 5));
    for (const Chunk& chunk : page->chunks) got.push_back(chunk.output);
  }
  for (const Chunk& chunk : taken("a")) got.push_back(chunk.output);
  ASSERT_EQ(got.size(), 50U);
  for (int i = 0; i < 50; ++i) EXPECT_EQ(got[static_cast<std::size_t>(i)], std::to_string(i));
}

TEST_P(StorageSuite, ALogIsInOrderOverAllAttempts) {
  submit("a");
  ASSERT_TRUE(chunks().readLog({"ep", "a"}));
  EXPECT_TRUE(chunks().readLog({"ep", "a"})->lines.empty());
  EXPECT_FALSE(chunks().readLog({"ep", "none"}));
  const LeaseRef first = claimOne();
  const Instant then = clock_.now();
  EXPECT_EQ(appendLog(first, {LogLine{clock_.now() + Millis(99), LogLevel::debug, "one"},
                              LogLine{{}, LogLevel::error, "two\nlines"}}),
            ReportResult::accepted);
  (void)testkit::release(leases(), std::vector{first});
  clock_.advance(Millis(500));
  EXPECT_EQ(appendLog(first, {LogLine{{}, LogLevel::error, "late"}}), ReportResult::staleAttempt);
  EXPECT_EQ(appendLog(claimOne(), {LogLine{{}, LogLevel::information, ""}}), ReportResult::accepted);
  const auto log = chunks().readLog({"ep", "a"}).value().lines;
  ASSERT_EQ(log.size(), 3U);
  EXPECT_EQ(log.at(0).text, "one");
  EXPECT_EQ(log.at(0).at, then) << "the store sets the time";
  EXPECT_EQ(log.at(0).level, LogLevel::debug);
  EXPECT_EQ(log.at(1).text, "two\nlines");
  EXPECT_EQ(log.at(1).level, LogLevel::error);
  EXPECT_EQ(log.at(2).text, "");
  EXPECT_EQ(log.at(2).at, clock_.now());
}

TEST_P(StorageSuite, TheLogsCapCountsOverAllAppends) {
  submit("a");
  const LeaseRef lease = claimOne();
  int next = 0;
  for (std::size_t count : {std::size_t{600}, std::size_t{600}, std::size_t{1}}) {
    std::vector<LogLine> lines;
    for (std::size_t i = 0; i < count; ++i) lines.push_back({{}, LogLevel::information, std::to_string(next++)});
    EXPECT_EQ(appendLog(lease, std::move(lines)), ReportResult::accepted);
  }
  const auto log = chunks().readLog({"ep", "a"}).value().lines;
  ASSERT_EQ(log.size(), kMaxLogLines);
  EXPECT_EQ(log.front().text, "201");
  EXPECT_EQ(log.back().text, "1200");
}

}  // namespace jobq::testkit
