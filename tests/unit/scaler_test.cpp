// Tests of the number of workers to have of an endpoint: each rule as a row of a table, invariants over all views, and
// repeated questions over time. A random view that breaks an invariant is printed with its seed; JOBQ_SEED replays the
// seed.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <ostream>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "core/workers/pool/scaler.h"
#include "day_load.h"
#include "worker_pool_model.h"

namespace jobq {

void PrintTo(const ScalerView& view, std::ostream* out) {
  *out << nameOf(view.scaling.type) << ' ' << view.scaling.value << ", min " << view.workersMin << " max "
       << view.workersMax << ": workers " << view.workers << ", coming " << view.coming << ", busy " << view.busy
       << ", low " << view.busyLow << ", waiting " << view.waiting << ", head "
       << (view.headWait ? std::to_string(view.headWait->count()) : "none");
}

void PrintTo(const ScalingDecision& decision, std::ostream* out) {
  *out << decision.workers << " workers, recheck after "
       << (decision.recheckAfter ? std::to_string(decision.recheckAfter->count()) : "never");
}

}  // namespace jobq

namespace {

using namespace jobq;

constexpr std::nullopt_t kNoDate = std::nullopt;
constexpr Scaling kFourSeconds{ScalerType::queueDelay, 4};
constexpr Scaling kFourJobs{ScalerType::requestCount, 4};

struct ScalerRow {
  const char* why;
  ScalerView view;
  ScalingDecision decision;
};

void expectRows(const std::vector<ScalerRow>& rows) {
  for (const ScalerRow& row : rows) {
    EXPECT_EQ(scale(row.view), row.decision) << row.why << ": " << testing::PrintToString(row.view);
  }
}

TEST(Scaling, NamesAreTheApis) {
  EXPECT_EQ(nameOf(ScalerType::queueDelay), "QUEUE_DELAY");
  EXPECT_EQ(nameOf(ScalerType::requestCount), "REQUEST_COUNT");
  EXPECT_EQ(parseScalerType("QUEUE_DELAY"), ScalerType::queueDelay);
  EXPECT_EQ(parseScalerType("REQUEST_COUNT"), ScalerType::requestCount);
  for (const char* wrong : {"", "queue_delay", "QUEUE_DELAY ", "REQUEST"})
    EXPECT_FALSE(parseScalerType(wrong)) << wrong;
  EXPECT_EQ(Scaling{}, kFourSeconds) << "the defaults of a new endpoint";
}

// The columns after the scaling: min, max, workers, coming, busy, low, waiting, wait of the first queued job.
TEST(Scaler, QueueDelayAddsAWorkerWhenAJobHasWaitedLonger) {
  const Scaling s = kFourSeconds;
  expectRows({
      {"nobody waits", {s, 0, 3, 1, 0, 1, 0, 0, {}}, {1, kNoDate}},
      {"nobody is there, nobody waits", {s, 0, 3, 0, 0, 0, 0, 0, {}}, {0, kNoDate}},
      {"the first starts at once", {s, 0, 3, 0, 0, 0, 0, 1, Millis(0)}, {1, kNoDate}},
      {"the first, whatever the line", {s, 0, 3, 0, 0, 0, 0, 900, Millis(0)}, {1, kNoDate}},
      {"an idle worker takes it", {s, 0, 3, 2, 1, 1, 0, 1, Millis(99'000)}, {2, kNoDate}},
      {"not yet", {s, 0, 3, 1, 0, 1, 0, 1, Millis(0)}, {1, Millis(4'001)}},
      {"not quite yet", {s, 0, 3, 1, 0, 1, 0, 1, Millis(3'999)}, {1, Millis(2)}},
      {"as long as is not longer than", {s, 0, 3, 1, 0, 1, 0, 1, Millis(4'000)}, {1, Millis(1)}},
      {"longer", {s, 0, 3, 1, 0, 1, 0, 1, Millis(4'001)}, {2, kNoDate}},
      {"one at a time", {s, 0, 9, 1, 0, 1, 0, 500, Millis(60'000)}, {2, kNoDate}},
      {"no room", {s, 0, 3, 3, 0, 3, 0, 9, Millis(60'000)}, {3, kNoDate}},
      {"nobody knows how long", {s, 0, 3, 1, 0, 1, 0, 1, {}}, {1, Millis(4'001)}},
      {"a clock that is ahead", {s, 0, 3, 1, 0, 1, 0, 1, Millis(-500)}, {1, Millis(4'001)}},
  });
  EXPECT_EQ(scale({{ScalerType::queueDelay, 30}, 0, 3, 1, 0, 1, 0, 1, Millis(10'000)}).recheckAfter, Millis(20'001));
}

TEST(Scaler, RequestCountIsAWorkerForSoManyJobs) {
  const Scaling s = kFourJobs;
  const auto again = Millis(1'000);
  expectRows({
      {"no job", {s, 0, 9, 0, 0, 0, 0, 0, {}}, {0, kNoDate}},
      {"one is rounded up", {s, 0, 9, 0, 0, 0, 0, 1, {}}, {1, again}},
      {"four for one", {s, 0, 9, 0, 0, 0, 0, 4, {}}, {1, again}},
      {"a fifth", {s, 0, 9, 0, 0, 0, 0, 5, {}}, {2, again}},
      {"those that run count", {s, 0, 9, 1, 0, 1, 0, 4, {}}, {2, again}},
      {"all at once", {s, 0, 9, 1, 0, 1, 0, 27, {}}, {7, again}},
      {"who is coming is there", {s, 0, 9, 3, 2, 1, 0, 9, {}}, {3, again}},
      {"and not started twice", {s, 0, 9, 2, 2, 0, 0, 5, {}}, {2, again}},
      {"nobody is sent away", {s, 0, 9, 6, 5, 1, 0, 0, {}}, {6, kNoDate}},
      {"no room", {s, 0, 3, 1, 0, 1, 0, 500, {}}, {3, kNoDate}},
      {"the most", {s, 0, 9, 9, 0, 9, 0, 500, {}}, {9, kNoDate}},
      {"0 is taken for 1", {{ScalerType::requestCount, 0}, 0, 9, 0, 0, 0, 0, 3, {}}, {3, again}},
  });
}

// core/http/API.md, "Scaling": jobs with lowPriority start no worker and are not counted.
TEST(Scaler, LowPriorityJobsAreNeitherDemandNorCapacity) {
  expectRows({
      {"they ask for nobody", {kFourSeconds, 0, 9, 2, 0, 0, 2, 0, {}}, {2, kNoDate}},
      {"nor here", {{ScalerType::requestCount, 1}, 0, 9, 2, 0, 0, 2, 0, {}}, {2, kNoDate}},
      {"nobody serves the normal job", {kFourSeconds, 0, 9, 2, 0, 0, 2, 1, Millis(0)}, {3, kNoDate}},
      {"somebody does", {kFourSeconds, 0, 9, 3, 0, 1, 2, 1, Millis(0)}, {3, Millis(4'001)}},
      {"two more for five jobs", {kFourJobs, 0, 9, 2, 0, 0, 2, 5, {}}, {4, Millis(1'000)}},
      {"they hold the room", {kFourSeconds, 0, 2, 2, 0, 0, 2, 1, Millis(60'000)}, {2, kNoDate}},
      {"and here", {kFourJobs, 0, 2, 2, 0, 0, 2, 5, {}}, {2, kNoDate}},
  });
}

TEST(Scaler, MinAndMaxBindUnderBothRules) {
  for (const Scaling s : {kFourSeconds, kFourJobs}) {
    expectRows({
        {"up to the least", {s, 2, 3, 0, 0, 0, 0, 0, {}}, {2, kNoDate}},
        {"back to the least", {s, 2, 3, 1, 0, 1, 0, 0, {}}, {2, kNoDate}},
        {"the most wins", {s, 5, 3, 0, 0, 0, 0, 0, {}}, {3, kNoDate}},
        {"none at all", {s, 5, 0, 0, 0, 0, 0, 7, Millis(60'000)}, {0, kNoDate}},
        {"more than the most already", {s, 0, 3, 5, 0, 5, 0, 99, Millis(60'000)}, {5, kNoDate}},
    });
  }
  EXPECT_EQ(scale({kFourSeconds, 2, 9, 1, 0, 1, 0, 5, Millis(60'000)}).workers, 2U)
      << "a worker for the minimum is starting";
  EXPECT_EQ(scale({kFourJobs, 2, 9, 1, 0, 1, 0, 19, {}}).workers, 5U) << "demand above the least";
}

// A stuck worker without a replacement occupies a slot and serves no job.
TEST(Scaler, ANonServingSlotIsNotCapacity) {
  expectRows({
      {"nobody serves", {kFourSeconds, 0, 3, 1, 0, 0, 0, 1, Millis(0)}, {2, kNoDate}},
      {"one for four jobs", {kFourJobs, 0, 3, 1, 0, 0, 0, 4, {}}, {2, Millis(1'000)}},
  });
}

class RandomViews {
 public:
  explicit RandomViews(std::uint64_t seed) : random_(seed) {}

  ScalerView next() {
    ScalerView view;
    view.scaling.type = upTo(1) == 0 ? ScalerType::queueDelay : ScalerType::requestCount;
    view.scaling.value = static_cast<std::uint32_t>(upTo(20) == 0 ? kHuge : 1 + upTo(8));
    view.workersMin = small();
    view.workersMax = static_cast<std::uint32_t>(upTo(20) == 0 ? kHuge : upTo(12));
    view.coming = small() * static_cast<std::uint32_t>(upTo(1));
    view.busy = small();
    view.busyLow = small();
    view.workers = view.coming + view.busy + view.busyLow + static_cast<std::uint32_t>(upTo(4) / 4);
    view.waiting = upTo(3) == 0 ? 0 : upTo(20) == 0 ? std::numeric_limits<std::uint64_t>::max() - upTo(3) : upTo(40);
    if (view.waiting > 0 && upTo(9) > 0) view.headWait = Millis(static_cast<std::int64_t>(upTo(12'000)));
    return view;
  }
  std::uint64_t upTo(std::uint64_t most) { return random_() % (most + 1); }

 private:
  static constexpr std::uint64_t kHuge = std::numeric_limits<std::uint32_t>::max();
  std::uint32_t small() { return static_cast<std::uint32_t>(upTo(5)); }
  std::mt19937_64 random_;
};

void expectBounds(const ScalerView& view, const ScalingDecision& decision) {
  EXPECT_GE(decision.workers, view.workers) << "no worker is sent away";
  EXPECT_GE(decision.workers, std::min(view.workersMin, view.workersMax));
  EXPECT_LE(decision.workers, std::max(view.workers, view.workersMax));
  EXPECT_GT(decision.recheckAfter.value_or(Millis(1)), Millis(0));
}

// With all requested workers on their way, the same view asks for no more workers.
void expectSettled(ScalerView view, const ScalingDecision& decision) {
  view.coming += decision.workers - view.workers;
  view.workers = decision.workers;
  EXPECT_EQ(scale(view).workers, decision.workers) << "a second call starts the workers twice";
}

void expectNoFlapping(ScalerView view) {
  view.waiting = 0;
  view.headWait.reset();
  if (view.coming == 0 || view.workers <= view.workersMin || view.workers > view.workersMax) return;
  --view.coming;
  --view.workers;
  EXPECT_EQ(scale(view).workers, view.workers) << "a worker released without waiting jobs is wanted back";
}

void expectLowIsNothing(ScalerView view, const ScalingDecision& decision, std::uint32_t more) {
  const std::uint32_t started = decision.workers - view.workers;
  view.workers += more;
  view.busyLow += more;
  EXPECT_LE(scale(view).workers - view.workers, started) << more << " more low-priority jobs";
}

void expectMonotone(ScalerView view, const ScalingDecision& decision, std::uint64_t more) {
  const std::uint64_t before = view.waiting;
  view.waiting += std::min(more, std::numeric_limits<std::uint64_t>::max() - view.waiting);
  // Under queueDelay the first job may start the first worker; every later start depends on the wait of the first job.
  EXPECT_GE(scale(view).workers, decision.workers) << before << " jobs, and " << more << " more";
}

// Under queueDelay, the scaler starts a worker exactly at the moment named in `recheckAfter`, and no millisecond
// earlier.
void expectPunctual(ScalerView view, const ScalingDecision& decision) {
  if (view.scaling.type != ScalerType::queueDelay || !decision.recheckAfter) return;
  const Millis head = std::max(view.headWait.value_or(Millis(0)), Millis(0));
  view.headWait = head + *decision.recheckAfter;
  EXPECT_EQ(scale(view).workers, view.workers + 1);
  view.headWait = head + *decision.recheckAfter - Millis(1);
  EXPECT_EQ(scale(view).workers, view.workers);
}

TEST(Scaler, InvariantsHoldForEveryView) {
  const char* given = std::getenv("JOBQ_SEED");
  const std::uint64_t seed = given != nullptr ? std::strtoull(given, nullptr, 10) : 20'261'121;
  std::printf("seed %llu\n", static_cast<unsigned long long>(seed));
  RandomViews views(seed);
  for (int i = 0; i < 200'000 && !testing::Test::HasFailure(); ++i) {
    const ScalerView view = views.next();
    SCOPED_TRACE("seed " + std::to_string(seed) + ", view " + std::to_string(i) + ": " + testing::PrintToString(view));
    const ScalingDecision decision = scale(view);
    expectBounds(view, decision);
    expectSettled(view, decision);
    expectNoFlapping(view);
    expectLowIsNothing(view, decision, static_cast<std::uint32_t>(views.upTo(4)));
    expectMonotone(view, decision, views.upTo(30));
    expectPunctual(view, decision);
  }
}

constexpr Millis kHour{3'600'000};
constexpr Millis kSettled{600'000};

std::vector<Scaling> everyScaling() {
  std::vector<Scaling> all;
  for (const std::uint32_t value : {1U, 2U, 4U, 20U}) {
    all.push_back({ScalerType::queueDelay, value});
    all.push_back({ScalerType::requestCount, value});
  }
  return all;
}

// The loads lie at two levels and between the levels: no worker starts or leaves after the number has been found.
TEST(ScalerOverTime, ASteadyLoadStartsAndStopsNoWorker) {
  for (const Scaling scaling : everyScaling()) {
    for (const int gap : {2'000, 1'000, 700, 500, 400, 340, 300, 250}) {
      const bench::WorkerPoolRules rules{scaling, 0, 20};
      const auto record =
          bench::playWorkerPool(rules, bench::evenLoad(Millis(gap), Millis(1'000), 2 * kHour), 2 * kHour);
      for (const Millis at : record.starts)
        EXPECT_LT(at, kSettled) << nameOf(scaling.type) << scaling.value << ' ' << gap;
      for (const Millis at : record.releases) {
        EXPECT_TRUE(at < kSettled || at >= 2 * kHour) << nameOf(scaling.type) << scaling.value << ' ' << gap;
      }
    }
  }
}

// The purpose of idleTimeout: a gap below the timeout keeps the worker, and a longer gap costs exactly one start.
TEST(ScalerOverTime, AWorkerOutlastsGapsShorterThanTheIdleTimeout) {
  for (const Scaling scaling : everyScaling()) {
    const auto starts = [&scaling](Millis gap) {
      const auto jobs = bench::evenLoad(gap, Millis(1'000), kHour);
      return std::pair(bench::playWorkerPool({scaling, 0, 20}, jobs, kHour).starts.size(), jobs.size());
    };
    EXPECT_EQ(starts(Millis(5'900)).first, 1U);
    const auto [each, jobs] = starts(Millis(10'000));
    EXPECT_EQ(each, jobs);
  }
}

// Each worker needs two seconds to start, and the workers start in sequence.
TEST(ScalerOverTime, ABurstIsServedAsTheRuleSays) {
  std::vector<bench::Arrival> burst(10, {Millis(0), Millis(60'000)});
  const auto play = [&burst](Scaling scaling) { return bench::playWorkerPool({scaling, 0, 20}, burst, kHour); };
  const auto delay = play(kFourSeconds);
  ASSERT_GE(delay.starts.size(), 3U);
  EXPECT_EQ(delay.starts[0], Millis(0));
  EXPECT_EQ(delay.starts[1], Millis(4'001));
  EXPECT_EQ(delay.starts[2], Millis(6'001));
  EXPECT_EQ(delay.most, 10U);
  const auto count = play(kFourJobs);
  EXPECT_EQ(count.most, 3U);
  EXPECT_LE(count.starts.back(), Millis(1'000)) << "the queue became longer, and was counted again";
}

TEST(ScalerOverTime, ALowPriorityJobNeverHasASeparateWorker) {
  for (const Scaling scaling : everyScaling()) {
    std::vector<bench::Arrival> jobs(50, {Millis(0), Millis(1'000), true});
    EXPECT_TRUE(bench::playWorkerPool({scaling, 0, 20}, jobs, kHour).starts.empty());
    jobs.push_back({Millis(5'000), Millis(1'000), false});
    const auto record = bench::playWorkerPool({scaling, 0, 20}, jobs, kHour);
    EXPECT_EQ(record.starts.size(), 1U);
    EXPECT_EQ(record.lowDelays.size(), 50U) << "the worker takes the low-priority jobs before the end";
  }
}

}  // namespace
