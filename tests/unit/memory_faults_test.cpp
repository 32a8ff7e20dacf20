// The storage in memory when an allocation fails: a claim inside a report is made whole or not at all
// (plugins/storage_memory/memory_leases.cpp).
#include <gtest/gtest.h>

#include <cstddef>
#include <new>
#include <optional>
#include <vector>

#include "jobq/job.h"
#include "jobq/lease_store.h"
#include "jobq/storage.h"
#include "tests/support/scarce_memory.h"
#include "unit_storage.h"

namespace jobq {
namespace {

constexpr std::size_t kEnough = 1'000;  // allocations of a report

// A job that is IN_PROGRESS without a worker would end with its timeout only.
TEST(MemoryFaults, AReportThatLacksMemoryLosesNoJob) {
#if JOBQ_SANITIZED_THREADS
  GTEST_SKIP() << "takes the memory away, and ThreadSanitizer has an operator new of its own";
#endif
  std::size_t refused = 0;
  std::size_t emptyHanded = 0;
  for (std::size_t at = 1;; ++at) {
    ASSERT_LT(at, kEnough);
    test::UnitStorage storage;
    storage.insert("a");
    storage.insert("b");
    const ClaimedJob a = storage.claim();
    const auto state = [&](const char* id) { return storage.real->jobs().find({"ep", id})->state; };
    const ClaimWant want{"ep", {"w0"}};
    const Outcome outcome = Completed{"\"an output that is too long for the object itself\""};
    std::optional<FinishedAndClaimed> done;
    test::failsIn = at;
    try {
      done = storage.real->finishAndClaim(a.lease, outcome, want, storage.life->holder(), 7);
    } catch (const std::bad_alloc&) {
      ++refused;
    }
    const bool failed = test::failsIn == 0;
    test::failsIn = 0;
    if (!done) {
      EXPECT_EQ(state("a"), JobState::inProgress) << "allocation " << at;
      EXPECT_EQ(state("b"), JobState::inQueue) << "allocation " << at;
      continue;
    }
    EXPECT_EQ(state("a"), JobState::completed) << "allocation " << at;
    ASSERT_EQ(state("b"), done->claimed.empty() ? JobState::inQueue : JobState::inProgress) << "allocation " << at;
    if (done->claimed.empty()) ++emptyHanded;
    if (!failed) break;
  }
  EXPECT_GT(refused, 0U);
  EXPECT_GT(emptyHanded, 0U);
}

}  // namespace
}  // namespace jobq
