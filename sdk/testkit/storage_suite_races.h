// Conformance: rules of the contract under sixteen threads at once. Records have
// sdk/testkit/storage_suite_record_races.h.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "jobq/mutex.h"
#include "testkit/returned_jobs.h"
#include "testkit/storage_suite.h"

namespace jobq::testkit {

inline constexpr int kRacers = 16;

TEST_P(StorageSuite, RacingClaimsHandOutEveryJobOnce) {
  constexpr int kJobs = 400;
  for (int i = 0; i < kJobs; ++i) submit("j" + std::to_string(i));
  Mutex mutex;
  std::multiset<JobId> claimed;
  race(kRacers, [&](int) {
    for (;;) {
      const auto jobs = claim(3);
      if (jobs.empty()) return;
      Lock lock(mutex);
      for (const ClaimedJob& job : jobs) claimed.insert(job.lease.job);
    }
  });
  EXPECT_EQ(claimed.size(), static_cast<std::size_t>(kJobs));
  EXPECT_EQ(std::set<JobId>(claimed.begin(), claimed.end()).size(), static_cast<std::size_t>(kJobs));
  EXPECT_EQ(counts().inProgress, static_cast<std::uint64_t>(kJobs));
}

TEST_P(StorageSuite, RacingFinishesAreAcceptedOnce) {
  for (int round = 0; round < 20; ++round) {
    submit("j" + std::to_string(round));
    const LeaseRef lease = claimOne();
    std::atomic<int> accepted = 0;
    race(kRacers, [&](int i) {
      if (complete(lease, std::to_string(i)) == ReportResult::accepted) ++accepted;
    });
    EXPECT_EQ(accepted, 1);
  }
  EXPECT_EQ(counts().completed, 20U);
}

TEST_P(StorageSuite, CancelFinishAndReleaseRaceToOneLegalEnd) {
  for (int round = 0; round < 20; ++round) {
    const JobId id = "j" + std::to_string(round);
    submit(id);
    const LeaseRef lease = claimOne();
    std::atomic<int> cancels = 0;
    std::atomic<int> finishes = 0;
    race(kRacers, [&](int i) {
      if (i % 3 == 0 && std::holds_alternative<Cancelled>(storage_->jobs().cancel({"ep", id}))) ++cancels;
      if (i % 3 == 1 && complete(lease, std::to_string(i)) == ReportResult::accepted) ++finishes;
      if (i % 3 == 2) (void)testkit::release(storage_->leases(), std::vector{lease});
    });
    const bool cancelled = stateOf(id) == JobState::cancelled;
    EXPECT_TRUE(cancelled || stateOf(id) == JobState::completed) << nameOf(stateOf(id));
    EXPECT_EQ(cancels, cancelled ? (kRacers + 2) / 3 : 0) << "all cancel calls succeed, or all fail";
    EXPECT_EQ(finishes, cancelled ? 0 : 1);
  }
  EXPECT_EQ(counts().inProgress, 0U);
  EXPECT_EQ(counts().inQueue, 0U);
}

TEST_P(StorageSuite, RacingClaimAndCancelAgree) {
  for (int round = 0; round < 20; ++round) {
    const JobId id = "j" + std::to_string(round);
    submit(id);
    std::atomic<int> claims = 0;
    std::atomic<int> cancels = 0;
    race(kRacers, [&](int i) {
      if (i % 2 == 0) claims += static_cast<int>(claim(1).size());
      if (i % 2 == 1 && std::holds_alternative<Cancelled>(storage_->jobs().cancel({"ep", id}))) ++cancels;
    });
    EXPECT_LE(claims, 1);
    EXPECT_EQ(cancels, kRacers / 2);
    EXPECT_EQ(stateOf(id), JobState::cancelled);
  }
}

TEST_P(StorageSuite, RacingInsertsWithOneIdempotencyKeyMakeOneJob) {
  std::atomic<int> inserted = 0;
  race(kRacers, [&](int i) {
    const auto result = storage_->jobs().insert(spec("j" + std::to_string(i)), policy_, {Idempotency{"k", "h"}});
    if (std::holds_alternative<Inserted>(result)) ++inserted;
  });
  EXPECT_EQ(inserted, 1);
  EXPECT_EQ(counts().inQueue, 1U);
}

TEST_P(StorageSuite, RacingTakersShareTheChunks) {
  submit("a");
  const LeaseRef lease = claimOne();
  std::vector<Chunk> chunks;
  for (int i = 0; i < 200; ++i) chunks.push_back({std::to_string(i), "", false});
  EXPECT_EQ(append(lease, chunks), ReportResult::accepted);
  Mutex mutex;
  std::multiset<std::string> taken;
  race(kRacers, [&](int) {
    for (;;) {
      const auto page = consume({"ep", "a"}, 10);
      if (!page || page->chunks.empty()) return;
      Lock lock(mutex);
      for (const Chunk& chunk : page->chunks) taken.insert(chunk.output);
    }
  });
  EXPECT_EQ(taken.size(), 200U);
  EXPECT_EQ(std::set<std::string>(taken.begin(), taken.end()).size(), 200U);
}

TEST_P(StorageSuite, RacingDispatchersShareTheOwedCalls) {
  for (int i = 0; i < 50; ++i) {
    JobSpec job = spec("j" + std::to_string(i));
    job.webhook = "http://example.com/";
    submit(std::move(job));
    (void)storage_->jobs().cancel({"ep", "j" + std::to_string(i)});
  }
  Mutex mutex;
  std::multiset<std::string> claimed;
  race(kRacers, [&](int) {
    for (;;) {
      const auto due = claimAllDue(outbox(), Millis(30'000), 3);
      if (due.empty()) return;
      Lock lock(mutex);
      for (const Delivery& delivery : due) claimed.insert(delivery.id);
    }
  });
  EXPECT_EQ(claimed.size(), 50U);
  EXPECT_EQ(std::set<std::string>(claimed.begin(), claimed.end()).size(), 50U);
}

TEST_P(StorageSuite, RacingSubmittersAndWorkersLoseNoJob) {
  constexpr int kEach = 40;
  std::atomic<int> finished = 0;
  race(kRacers, [&](int i) {
    if (i % 2 == 0) {
      for (int n = 0; n < kEach; ++n) submit("j" + std::to_string(i) + "-" + std::to_string(n));
      return;
    }
    while (finished < kRacers / 2 * kEach) {
      for (const ClaimedJob& job : claim(4)) {
        if (complete(job.lease) == ReportResult::accepted) ++finished;
      }
      std::this_thread::yield();
    }
  });
  EXPECT_EQ(counts().completed, static_cast<std::uint64_t>(kRacers / 2 * kEach));
  EXPECT_EQ(counts().inQueue + counts().inProgress, 0U);
}

TEST_P(StorageSuite, RacingClaimsCancelsAndFinishesEndEachJobOnce) {
  constexpr int kJobs = 120;
  for (int i = 0; i < kJobs; ++i) {
    JobSpec job = spec("j" + std::to_string(i));
    job.webhook = "http://example.com/";
    submit(std::move(job));
  }
  Mutex mutex;
  std::set<JobId> cancelled;
  std::atomic<int> completed = 0;
  race(kRacers, [&](int i) {
    if (i % 2 == 0) {
      for (auto jobs = claim(2); !jobs.empty(); jobs = claim(2)) {
        for (const ClaimedJob& job : jobs) {
          if (complete(job.lease) == ReportResult::accepted) ++completed;
        }
      }
      return;
    }
    for (int n = i; n < kJobs; n += 3) {
      const JobId id = "j" + std::to_string(n);
      if (!std::holds_alternative<Cancelled>(jobs().cancel({"ep", id}))) continue;
      Lock lock(mutex);
      cancelled.insert(id);
    }
  });
  EXPECT_EQ(static_cast<std::size_t>(completed) + cancelled.size(), static_cast<std::size_t>(kJobs));
  EXPECT_EQ(jobs().list({"ep", JobState::cancelled}, {}).total, cancelled.size());
  EXPECT_EQ(jobs().list({"ep", JobState::completed}, {}).total, static_cast<std::size_t>(completed));
  EXPECT_EQ(outbox().list("ep", "", 1'000).size(), static_cast<std::size_t>(kJobs)) << "each end has a single delivery";
}

TEST_P(StorageSuite, RacingRetriesPutAJobInTheQueueOnce) {
  const LeaseRef failed = bring("a", JobState::failed);
  race(kRacers, [&](int) {
    EXPECT_TRUE(std::holds_alternative<Requeued>(jobs().requeue({"ep", "a"}, failed.attempt, policy_)));
  });
  EXPECT_EQ(find("a")->retries, 1U);
  EXPECT_EQ(claim(9).size(), 1U);
}

TEST_P(StorageSuite, RacingSweepsDoEachTaskOnce) {
  constexpr int kJobs = 90;
  for (int i = 0; i < kJobs; ++i) submit("j" + std::to_string(i));
  ASSERT_EQ(claim(kJobs).size(), static_cast<std::size_t>(kJobs));
  newLife();
  Mutex mutex;
  std::multiset<JobId> stopped;
  race(kRacers, [&](int) {
    for (bool more = true; more;) {
      const SweepResult swept = leases().sweep(7);
      more = swept.more;
      Lock lock(mutex);
      for (const LeaseRef& lease : swept.stopped) stopped.insert(lease.job);
    }
  });
  EXPECT_EQ(stopped.size(), static_cast<std::size_t>(kJobs));
  EXPECT_EQ(std::set<JobId>(stopped.begin(), stopped.end()).size(), static_cast<std::size_t>(kJobs));
  EXPECT_EQ(counts().retried, static_cast<std::uint64_t>(kJobs));
  EXPECT_EQ(counts().inQueue, static_cast<std::uint64_t>(kJobs));
}

TEST_P(StorageSuite, ChunksAreTakenOnceDuringAppends) {
  submit("a");
  const LeaseRef lease = claimOne();
  constexpr int kChunks = 150;
  Mutex mutex;
  std::multiset<std::string> got;
  race(kRacers, [&](int i) {
    if (i == 0) {
      for (int n = 0; n < kChunks; n += 3) {
        const auto chunk = [n](int k) { return Chunk{std::to_string(n + k), "", false}; };
        EXPECT_EQ(append(lease, {chunk(0), chunk(1), chunk(2)}), ReportResult::accepted);
      }
      EXPECT_EQ(complete(lease), ReportResult::accepted);
      return;
    }
    for (;;) {
      const auto page = consume({"ep", "a"}, 4);
      ASSERT_TRUE(page);
      {
        Lock lock(mutex);
        for (const Chunk& chunk : page->chunks) got.insert(chunk.output);
      }
      if (terminal(page->state) && !page->more) return;
      std::this_thread::yield();
    }
  });
  EXPECT_EQ(got.size(), static_cast<std::size_t>(kChunks));
  EXPECT_EQ(std::set<std::string>(got.begin(), got.end()).size(), static_cast<std::size_t>(kChunks));
}

TEST_P(StorageSuite, RacingDispatchersEndADeliveryOnce) {
  JobSpec job = spec("a");
  job.webhook = "http://example.com/";
  submit(std::move(job));
  (void)jobs().cancel({"ep", "a"});
  const DeliveryClaim claim = last("a.0");
  std::atomic<int> delivered = 0;
  std::atomic<int> abandoned = 0;
  race(kRacers, [&](int i) {
    const DeliveryState state = i % 2 == 0 ? DeliveryState::delivered : DeliveryState::abandoned;
    if (outbox().finishDelivery(claim, state)) ++(i % 2 == 0 ? delivered : abandoned);
  });
  const bool isDelivered = outbox().list("ep", "a", 9).at(0).state == DeliveryState::delivered;
  EXPECT_EQ(delivered, isDelivered ? kRacers / 2 : 0) << "only calls with the recorded end succeed";
  EXPECT_EQ(abandoned, isDelivered ? 0 : kRacers / 2);
}

}  // namespace jobq::testkit
