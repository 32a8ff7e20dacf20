// Conformance: RecordStore under sixteen threads at once. Several threads write the same record or the same name, and
// readers follow the changes.
#pragma once

#include <algorithm>
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
#include "jobq/record_store.h"
#include "testkit/storage_suite.h"
#include "testkit/storage_suite_races.h"
#include "testkit/storage_suite_record_changes.h"
#include "testkit/storage_suite_records.h"

namespace jobq::testkit {

inline constexpr int kRecordRounds = 10;

TEST_P(StorageSuite, RacingUpdatesOfARecordHaveOneWinner) {
  auto version = versionOf(records().create(record("t", "", "none")));
  for (int round = 0; round < kRecordRounds; ++round) {
    std::atomic<int> winners = 0;
    std::atomic<int> conflicts = 0;
    std::atomic<int> winner = -1;
    std::atomic<std::uint64_t> now = 0;
    race(kRacers, [&](int i) {
      const auto result = records().update(record("t", "", std::to_string(i)), version);
      if (std::holds_alternative<Conflict>(result)) ++conflicts;
      if (!stored(result)) return;
      ++winners;
      winner = i;
      now = std::get<Stored>(result).version;
    });
    EXPECT_EQ(winners, 1);
    EXPECT_EQ(conflicts, kRacers - 1);
    EXPECT_EQ(records().find("template", "t")->body, std::to_string(winner)) << "the stored body is the winner's";
    EXPECT_EQ(records().find("template", "t")->version, now);
    version = now;
  }
}

TEST_P(StorageSuite, RacingCreationsOfARecordHaveOneWinner) {
  for (int round = 0; round < kRecordRounds; ++round) {
    const std::string same = "same" + std::to_string(round);
    Mutex mutex;
    std::vector<std::string> winners;  // ids of the records that received the name
    std::multiset<std::string> losers;
    std::atomic<int> byId = 0;
    race(kRacers, [&](int i) {
      const std::string own = same + "-" + std::to_string(i);
      if (stored(records().create({"key", same, own, "{}", 0, {}}))) ++byId;
      const auto result = records().create(record(own, same));
      Lock lock(mutex);
      if (stored(result)) {
        winners.push_back(own);
      } else {
        losers.insert(holderOf(result));
      }
    });
    EXPECT_EQ(byId, 1);
    ASSERT_EQ(winners.size(), 1U) << "a name has a single record";
    EXPECT_EQ(losers.count(winners[0]), static_cast<std::size_t>(kRacers - 1)) << "each loser reads the winner's id";
  }
  EXPECT_EQ(records().list("key").size(), static_cast<std::size_t>(kRecordRounds));
  EXPECT_EQ(records().list("template").size(), static_cast<std::size_t>(kRecordRounds));
}

TEST_P(StorageSuite, RacingRenamesToOneNameHaveOneWinner) {
  std::vector<std::uint64_t> versions;
  for (int i = 0; i < kRacers; ++i) {
    versions.push_back(versionOf(records().create(record("t" + std::to_string(i), "name" + std::to_string(i)))));
  }
  std::atomic<int> winners = 0;
  std::atomic<int> taken = 0;
  race(kRacers, [&](int i) {
    const auto at = static_cast<std::size_t>(i);
    const auto result = records().update(record("t" + std::to_string(i), "wanted"), versions[at]);
    if (stored(result)) ++winners;
    if (std::holds_alternative<NameTaken>(result)) ++taken;
  });
  EXPECT_EQ(winners, 1);
  EXPECT_EQ(taken, kRacers - 1);
  std::set<std::string> names;
  for (const Record& each : records().list("template")) names.insert(each.name);
  EXPECT_EQ(names.size(), static_cast<std::size_t>(kRacers)) << "the losing records keep the old names";
  EXPECT_EQ(names.count("wanted"), 1U);
}

TEST_P(StorageSuite, RacingUpdatersEachWinARoundAfterReadingAgain) {
  (void)records().create({"key", "k", "", "0", 0, {}});
  race(kRacers, [&](int) {
    for (int round = 0; round < kRecordRounds;) {
      Record now = *records().find("key", "k");
      const auto version = now.version;
      now.body = std::to_string(std::stoi(now.body) + 1);
      if (stored(records().update(std::move(now), version))) ++round;
    }
  });
  EXPECT_EQ(records().find("key", "k")->body, std::to_string(kRecordRounds * kRacers)) << "no update was lost";
}

TEST_P(StorageSuite, RacingWritersOfAllKindsNeverGetTheSameVersion) {
  Mutex mutex;
  std::multiset<std::uint64_t> given;
  race(kRacers, [&](int i) {
    const std::string kind = "kind" + std::to_string(i % 3);
    const std::string id = std::to_string(i);
    std::vector<std::uint64_t> own;
    for (int round = 0; round < kRecordRounds; ++round) {
      own.push_back(versionOf(records().create({kind, id, "", "1", 0, {}})));
      own.push_back(versionOf(records().update({kind, id, "", "2", 0, {}}, own.back())));
      EXPECT_TRUE(records().remove(kind, id));
    }
    EXPECT_TRUE(std::is_sorted(own.begin(), own.end()));
    Lock lock(mutex);
    given.insert(own.begin(), own.end());
  });
  EXPECT_EQ(given.size(), static_cast<std::size_t>(2 * kRacers * kRecordRounds));
  EXPECT_EQ(std::set<std::uint64_t>(given.begin(), given.end()).size(), given.size());
  for (const char* kind : {"kind0", "kind1", "kind2"}) {
    EXPECT_GT(records().changedSince(kind, 0).version, *given.rbegin()) << "the last removals are the newest changes";
    EXPECT_TRUE(records().list(kind).empty());
  }
}

TEST_P(StorageSuite, ARemovalAndUpdatesAgreeOnTheOrder) {
  for (int round = 0; round < kRecordRounds; ++round) {
    const auto version = versionOf(records().create(record("t", "name")));
    std::atomic<int> removals = 0;
    std::atomic<int> updates = 0;
    std::atomic<int> strange = 0;
    race(kRacers, [&](int i) {
      if (i % 2 == 0) {
        if (records().remove("template", "t")) ++removals;
        return;
      }
      const auto result = records().update(record("t", "other"), version);
      if (stored(result)) ++updates;
      if (!holderOf(result).empty()) ++strange;
    });
    EXPECT_EQ(removals, 1);
    EXPECT_LE(updates, 1);
    EXPECT_EQ(strange, 0);
    EXPECT_FALSE(records().find("template", "t")) << "an update does not restore a removed record";
    EXPECT_TRUE(records().list("template").empty());
  }
}

// Readers that ask only for changes have in the end exactly the stored records, and at no moment two records of one
// name.
TEST_P(StorageSuite, FollowersHaveAllRecordsInTheEnd) {
  constexpr int kFollowers = 4;
  constexpr int kIds = 6;
  std::atomic<int> writing = kRacers - kFollowers;
  std::vector<RecordFollower> followers(kFollowers, RecordFollower("template"));
  race(kRacers, [&](int i) {
    if (i < kFollowers) {
      RecordFollower& follower = followers[static_cast<std::size_t>(i)];
      while (writing > 0) {
        follower.follow(records());
        std::set<std::string> names;
        std::size_t named = 0;
        for (const Record& each : follower.list()) {
          if (each.name.empty()) continue;
          ++named;
          names.insert(each.name);
        }
        EXPECT_EQ(names.size(), named) << "two records have the same name";
        std::this_thread::yield();
      }
      return;
    }
    for (int round = 0; round < 4 * kRecordRounds; ++round) {
      const std::string id = "t" + std::to_string((i + round) % kIds);
      const std::string name = round % 4 == 0 ? "" : "name" + std::to_string((i * round) % kIds);
      const auto found = records().find("template", id);
      if (!found) {
        (void)records().create(record(id, name, std::to_string(i)));
      } else if ((i + round) % 5 == 0) {
        (void)records().remove("template", id);
      } else {
        (void)records().update(record(id, name, std::to_string(round)), found->version);
      }
    }
    --writing;
  });
  const std::string there = describe(records().list("template"));
  RecordFollower late("template");
  followers.push_back(late);
  for (RecordFollower& follower : followers) {
    follower.follow(records());
    EXPECT_EQ(describe(follower.list()), there);
  }
}

}  // namespace jobq::testkit
