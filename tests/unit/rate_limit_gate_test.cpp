// Tests of the table of limits, and of the RateLimitGate over a limiter controlled by the test (core/limits).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <tuple>
#include <utility>

#include "core/limits/rate_limit_gate.h"
#include "core/limits/rate_limits.h"
#include "testkit/manual_clock.h"
#include "tests/support/fakes.h"

namespace {

using namespace jobq;
using testing::HasSubstr;

// The expected numbers are the table of core/http/API.md, "Rate limits", and the limits of `openai` (core/http/API.md,
// "Not built").
TEST(RateLimits, IsTheTableOfTheApi) {
  const RateLimits table({});
  const auto expect = [&table](Operation operation, std::uint32_t requests, std::uint32_t concurrent) {
    const RateRow& row = table.at(operation);
    EXPECT_EQ(row.base.requests, requests);
    EXPECT_EQ(row.base.concurrent, concurrent);
    EXPECT_EQ(row.base.window, Millis(10'000));
    EXPECT_EQ(row.perWorker, requests / 10);
  };
  expect(Operation::runsync, 2000, 400);
  expect(Operation::run, 1000, 200);
  expect(Operation::status, 2000, 400);
  expect(Operation::statusSync, 2000, 400);
  expect(Operation::stream, 2000, 400);
  expect(Operation::cancel, 100, 20);
  expect(Operation::purgeQueue, 2, 0);
  expect(Operation::openai, 2000, 400);
  expect(Operation::requests, 10, 2);
}

TEST(RateLimits, TheEffectiveLimitIsTheHigherOfBaseAndWorkers) {
  const RateLimits table({});
  const RateRow& run = table.at(Operation::run);
  EXPECT_EQ(run.with(0).requests, 1000U);
  EXPECT_EQ(run.with(10).requests, 1000U);
  EXPECT_EQ(run.with(11).requests, 1100U);
  EXPECT_EQ(run.with(11).concurrent, 220U);
  EXPECT_EQ(run.with(4'000'000'000).requests, 4'294'967'295U) << "never overflows";
  LimitsConfig config;
  config.operations[0] = {7, Millis(1'000), 0, 5};
  const RateRow changed = RateLimits(config).at(Operation::run);
  EXPECT_EQ(changed.with(2).requests, 10U);
  EXPECT_EQ(changed.with(2).concurrent, 0U) << "an absent limit stays absent";
  config.operations[0] = {0, {}, {}, 5};
  EXPECT_EQ(RateLimits(config).at(Operation::run).with(9).requests, 0U) << "an absent limit stays absent";
}

TEST(RateLimits, EachNodeHasAPartAboveZero) {
  const RateLimit whole{10, Millis(1'000), 4};
  EXPECT_EQ(partOf(whole, 1).requests, 10U);
  EXPECT_EQ(partOf(whole, 3).requests, 4U);
  EXPECT_EQ(partOf(whole, 3).concurrent, 2U);
  EXPECT_EQ(partOf(whole, 99).requests, 1U) << "0 would mean no limit";
  EXPECT_EQ(partOf(whole, 3).window, Millis(1'000));
  EXPECT_EQ(partOf({0, Millis(1'000), 0}, 3).requests, 0U) << "an absent limit stays absent";
}

struct ToldLimiter final : RateLimiter {
  RateVerdict enter(std::string_view key, const RateLimit& limit, Instant) override {
    lastKey = key;
    lastLimit = limit;
    if (verdict.allowed) ++inside;
    return verdict;
  }
  void leave(std::string_view) override { --inside; }
  std::string lastKey;
  RateLimit lastLimit;
  RateVerdict verdict{true, Millis(0), 5};
  int inside = 0;
};

/// Lets as many calls in as the limit says, for ever; a refusal lasts seven seconds.
struct CountingLimiter final : RateLimiter {
  RateVerdict enter(std::string_view key, const RateLimit& limit, Instant) override {
    ++asked;
    std::uint32_t& used = counted[std::string(key)];
    if (limit.requests > 0 && used >= limit.requests) return {false, Millis(7'000), 0};
    if (limit.requests > 0) ++used;
    return {true, Millis(0), limit.requests > 0 ? limit.requests - used : 0};
  }
  void leave(std::string_view) override {}
  std::map<std::string, std::uint32_t> counted;
  int asked = 0;
};

/// Frees one request as soon as the last request is used up, as if another thread had brought a later time. A refusal
/// because of concurrent calls counts no request.
struct FreeingLimiter final : RateLimiter {
  RateVerdict enter(std::string_view, const RateLimit& limit, Instant) override {
    if (limit.requests > 0 && used >= limit.requests) return {false, Millis(7'000), 0};
    if (limit.concurrent > 0 && inside >= limit.concurrent) return {false, Millis(1'000), 0};
    ++inside;
    if (limit.requests == 0) return {true, Millis(0), 0};
    ++counted;
    const RateVerdict verdict{true, Millis(0), limit.requests - ++used};
    if (verdict.remaining == 0) --used;
    return verdict;
  }
  void leave(std::string_view) override { --inside; }
  std::uint32_t used = 0;
  std::uint32_t counted = 0;
  std::uint32_t inside = 0;
};

/// The load of a storage that fails with `failure`.
template <class Failure>
class FailingLoad final : public EndpointLoad {
 public:
  explicit FailingLoad(Failure failure) : failure_(std::move(failure)) {}
  std::uint32_t nodes() const override { return 1; }
  std::uint32_t running(const EndpointId&) const override { return 0; }
  std::uint64_t waiting(const EndpointId&) const override { throw Failure(failure_); }

 private:
  const Failure failure_;
};

const LimitSettings kNone{};
constexpr std::uint64_t kMany = 1'000'000;

class RateLimitGateTest : public testing::Test {
 protected:
  RateLimitGate gateOf(const LimitsConfig& config = {}) { return {config, {limiter_, clock_, load_}}; }
  /// Returns true if a call is let in and counted against the rate.
  static bool passes(RateLimitGate& gate, Operation operation = Operation::run, std::uint64_t maxQueued = kMany) {
    auto passed = gate.enter("e", operation, {kNone, maxQueued});
    return passed && passed->permit.count(passed->rateLimitStatus);
  }
  /// Returns true if a call is let in and counted as malformed.
  static bool passesMalformed(RateLimitGate& gate) {
    auto passed = gate.enter("e", Operation::run, {kNone, kMany});
    return passed && passed->permit.countMalformed();
  }

  ToldLimiter limiter_;
  testkit::ManualClock clock_;
  test::FixedLoad load_;
};

TEST_F(RateLimitGateTest, APermitIsReturnedOnce) {
  RateLimitGate rates = gateOf();
  {
    auto result = rates.enter("e", Operation::status, {kNone, kMany});
    auto& passed = *result;
    EXPECT_EQ(limiter_.lastKey, "e/status");
    EXPECT_EQ(limiter_.lastLimit.concurrent, 400U);
    EXPECT_EQ(passed.rateLimitStatus->limit.requests, 2000U);
    EXPECT_EQ(passed.rateLimitStatus->remaining, 2000U) << "the rate has not been counted yet";
    EXPECT_FALSE(passed.permit.isCounted());
    EXPECT_TRUE(passed.permit.count(passed.rateLimitStatus));
    EXPECT_TRUE(passed.permit.isCounted());
    EXPECT_EQ(passed.rateLimitStatus->remaining, 5U);
    RateLimitGate::Permit other = std::move(passed.permit);
    RateLimitGate::Permit third;
    third = std::move(other);
    EXPECT_EQ(limiter_.inside, 1);
  }
  EXPECT_EQ(limiter_.inside, 0);
}

TEST_F(RateLimitGateTest, ARefusalSaysTheLimitAndWhen) {
  RateLimitGate rates = gateOf();
  limiter_.verdict = {false, Millis(1'234), 0};
  const auto result = rates.enter("e", Operation::cancel, {kNone, kMany});
  const auto& refused = result.failure();
  EXPECT_THAT(refused.sentence, HasSubstr("100 in 10000 ms and 20 at once (limits.cancel of the settings, or"));
  EXPECT_EQ(refused.rateLimitStatus->retryAfter, Millis(1'234));
  EXPECT_EQ(limiter_.inside, 0);
}

TEST_F(RateLimitGateTest, LimitsGrowWithRunningWorkersWithinASecond) {
  RateLimitGate rates = gateOf();
  EXPECT_TRUE(passes(rates));
  load_.busyWorkers = 50;
  EXPECT_TRUE(passes(rates));
  EXPECT_EQ(limiter_.lastLimit.requests, 1000U);
  clock_.advance(Millis(1'000));
  EXPECT_TRUE(passes(rates));
  EXPECT_EQ(limiter_.lastLimit.requests, 5000U);
}

TEST_F(RateLimitGateTest, ASwitchedOffGateAsksNoLimiter) {
  LimitsConfig off;
  off.enabled = false;
  off.queue = false;
  RateLimitGate rates = gateOf(off);
  limiter_.verdict.allowed = false;
  load_.waitingJobs = 1'000'000;
  auto result = rates.enter("e", Operation::run, {kNone, kMany});
  EXPECT_FALSE(result->rateLimitStatus);
  EXPECT_EQ(load_.askedForWaiting, 0);
}

TEST_F(RateLimitGateTest, EntersWithoutTheStorageWhileTheCountsAreKnown) {
  RateLimitGate gate = gateOf();
  const auto enter = [&gate](Operation operation) {
    const auto entered = gate.enterKnown("e", operation, {kNone, kMany});
    return !entered ? "unknown" : *entered ? "passed" : "refused";
  };
  EXPECT_STREQ(enter(Operation::run), "unknown");
  EXPECT_TRUE(passes(gate, Operation::status));
  EXPECT_STREQ(enter(Operation::status), "passed");
  EXPECT_STREQ(enter(Operation::run), "unknown") << "the length of the queue";
  EXPECT_TRUE(passes(gate));
  clock_.advance(Millis(999));
  EXPECT_STREQ(enter(Operation::run), "passed");
  clock_.advance(Millis(1));
  EXPECT_STREQ(enter(Operation::run), "unknown") << "the counts are a second old";
  EXPECT_STREQ(enter(Operation::status), "unknown");
  EXPECT_EQ(load_.askedForWaiting, 1);
  EXPECT_EQ(limiter_.inside, 0) << "each place is free again";
  load_.waitingJobs = 1'000'000;
  EXPECT_FALSE(passes(gate));
  EXPECT_STREQ(enter(Operation::run), "refused") << "the queue was just counted";
  clock_.advance(Millis(100));
  EXPECT_STREQ(enter(Operation::run), "unknown");
  limiter_.verdict = {false, Millis(5'000), 0};
  EXPECT_STREQ(enter(Operation::run), "refused") << "the rate needs no queue";
}

// core/http/API.md, "Length of the queue": 429 while `maxQueued` jobs wait, by default 1,000,000.
TEST_F(RateLimitGateTest, AFullQueueRefusesSubmissions) {
  for (const auto& [waiting, most, isOpen] :
       {std::tuple{999'999U, kMany, true}, {1'000'000U, kMany, false}, {0U, 1UL, true}, {1U, 1UL, false}}) {
    RateLimitGate rates = gateOf();
    load_.waitingJobs = waiting;
    EXPECT_EQ(passes(rates, Operation::run, most), isOpen) << waiting;
    EXPECT_EQ(passes(rates, Operation::runsync, most), isOpen) << waiting;
    EXPECT_TRUE(passes(rates, Operation::status, most)) << "only submissions make the queue longer";
  }
  EXPECT_EQ(limiter_.inside, 0);
}

TEST_F(RateLimitGateTest, ABurstDoesNotRunOverTheLineWithinASecond) {
  RateLimitGate rates = gateOf();
  for (int i = 0; i < 50; ++i) {
    EXPECT_TRUE(passes(rates, Operation::run, 50)) << i;
    ++load_.waitingJobs;
  }
  EXPECT_LE(load_.askedForWaiting, 2) << "the load is not asked for each call";
  EXPECT_FALSE(passes(rates, Operation::run, 50));
  const int asked = load_.askedForWaiting;
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(passes(rates, Operation::run, 50));
  EXPECT_EQ(load_.askedForWaiting, asked) << "a refusal costs no question";
  load_.waitingJobs = 0;
  clock_.advance(Millis(1'000));
  EXPECT_TRUE(passes(rates, Operation::run, 50));
}

TEST_F(RateLimitGateTest, APurgedQueueIsSeenWithinATenthOfASecond) {
  RateLimitGate rates = gateOf();
  load_.waitingJobs = 50;
  EXPECT_FALSE(passes(rates, Operation::run, 50));
  load_.waitingJobs = 0;
  clock_.advance(Millis(99));
  EXPECT_FALSE(passes(rates, Operation::run, 50));
  clock_.advance(Millis(1));
  EXPECT_TRUE(passes(rates, Operation::run, 50)) << "a refusal is believed for a tenth of a second";
}

TEST_F(RateLimitGateTest, ARefusalShowsTheLengthOfTheQueue) {
  RateLimitGate rates = gateOf();
  load_.waitingJobs = 50;
  const auto result = rates.enter("e", Operation::run, {kNone, 50});
  const auto& refused = result.failure();
  EXPECT_THAT(refused.sentence, HasSubstr("the queue of e is full: 50 jobs wait, and the limit is 50 (maxQueued of"));
  EXPECT_EQ(refused.rateLimitStatus->retryAfter, Millis(0)) << "the rate is not exceeded";
}

TEST_F(RateLimitGateTest, EndpointsAndOperationsAreCountedApart) {
  RateLimitGate rates = gateOf();
  load_.waitingJobs = 50;
  EXPECT_FALSE(passes(rates, Operation::run, 50));
  load_.waitingJobs = 0;
  EXPECT_TRUE(rates.enter("other", Operation::run, {kNone, 50}));
  EXPECT_EQ(limiter_.lastKey, "other/run");
}

TEST_F(RateLimitGateTest, AnEndpointsOwnLimitsCountInsteadOfTheServers) {
  RateLimitGate rates = gateOf();
  LimitSettings own{};
  own[static_cast<std::size_t>(Operation::run)].requests = 30;
  own[static_cast<std::size_t>(Operation::status)].concurrent = 1;
  const auto limitOf = [&](Operation operation) {
    auto result = rates.enter("e", operation, {own, kMany});
    return result->rateLimitStatus->limit;
  };
  EXPECT_EQ(limitOf(Operation::run).requests, 30U);
  EXPECT_EQ(limitOf(Operation::run).concurrent, 200U) << "the other limit stays";
  EXPECT_EQ(limitOf(Operation::status).requests, 2000U);
  EXPECT_EQ(limitOf(Operation::status).concurrent, 1U);
  load_.busyWorkers = 20;
  clock_.advance(Millis(1'000));
  EXPECT_EQ(limitOf(Operation::run).requests, 60U) << "each worker is good for a tenth of the endpoint's own limit";
}

TEST_F(RateLimitGateTest, EachPartIsSwitchedOffAlone) {
  LimitsConfig noRates;
  noRates.enabled = false;
  RateLimitGate lineOnly = gateOf(noRates);
  limiter_.verdict.allowed = false;
  EXPECT_TRUE(passes(lineOnly, Operation::run, 50));
  load_.waitingJobs = 50;
  clock_.advance(Millis(1'000));
  const auto result = lineOnly.enter("e", Operation::run, {kNone, 50});
  EXPECT_FALSE(result.failure().rateLimitStatus);
  LimitsConfig noLine;
  noLine.queue = false;
  RateLimitGate ratesOnly = gateOf(noLine);
  EXPECT_FALSE(passes(ratesOnly, Operation::run, 50));
  limiter_.verdict.allowed = true;
  EXPECT_TRUE(passes(ratesOnly, Operation::run, 50)) << "the length of the queue does not count";
}

TEST_F(RateLimitGateTest, MalformedCallsUseUpASeparateRate) {
  CountingLimiter counting;
  LimitsConfig config;
  config.operations[static_cast<std::size_t>(Operation::run)].requests = 3;
  RateLimitGate rates(config, {counting, clock_, load_});
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(passesMalformed(rates)) << i;
  for (int i = 0; i < 5; ++i) EXPECT_FALSE(passesMalformed(rates)) << "the malformed rate has the same size";
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(passes(rates)) << "well-formed calls still have the whole rate: " << i;
  EXPECT_FALSE(passes(rates));
  auto malformed = rates.enter("e", Operation::run, {kNone, kMany});
  EXPECT_FALSE(malformed) << "an unread call may be malformed";
  clock_.advance(Millis(7'000));
  auto result = rates.enter("e", Operation::run, {kNone, kMany});
  const auto counted = result->permit.countMalformed();
  ASSERT_FALSE(counted);
  EXPECT_THAT(counted.failure().sentence, HasSubstr("too many malformed requests: more than 3 in 10000 ms"));
  EXPECT_EQ(counted.failure().rateLimitStatus->retryAfter, Millis(7'000));
}

TEST_F(RateLimitGateTest, AUsedUpRateRefusesUnreadUntilTheRefill) {
  CountingLimiter counting;
  LimitsConfig config;
  config.operations[static_cast<std::size_t>(Operation::run)].requests = 2;
  RateLimitGate rates(config, {counting, clock_, load_});
  EXPECT_TRUE(passes(rates));
  EXPECT_TRUE(passes(rates));
  const int asked = counting.asked;
  for (int i = 0; i < 10; ++i) {
    const auto result = rates.enter("e", Operation::run, {kNone, kMany});
    const auto& refused = result.failure();
    EXPECT_THAT(refused.sentence, HasSubstr("the limit of run is 2 in 10000 ms"));
    EXPECT_EQ(refused.rateLimitStatus->retryAfter, Millis(7'000));
  }
  EXPECT_EQ(counting.asked, asked) << "a known refusal needs no question";
  LimitSettings more{};
  more[static_cast<std::size_t>(Operation::run)].requests = 5;
  EXPECT_TRUE(rates.enter("e", Operation::run, {more, kMany})) << "a different limit has a different moment";
  clock_.advance(Millis(6'999));
  EXPECT_FALSE(passes(rates));
  clock_.advance(Millis(1));
  EXPECT_TRUE(rates.enter("e", Operation::run, {kNone, kMany}));
}

TEST_F(RateLimitGateTest, TheQuestionWhenTheNextCallCountsDoesNotCount) {
  FreeingLimiter freeing;
  LimitsConfig config;
  config.operations[static_cast<std::size_t>(Operation::run)].requests = 2;
  RateLimitGate rates(config, {freeing, clock_, load_});
  for (std::uint32_t calls = 1; calls <= 5; ++calls) {
    EXPECT_TRUE(passes(rates)) << "a request was freed: " << calls;
    EXPECT_EQ(freeing.counted, calls);
  }
  EXPECT_EQ(freeing.inside, 0U);
}

TEST_F(RateLimitGateTest, ARefusalOfAnOverlongQueueIsNotCounted) {
  CountingLimiter counting;
  load_.waitingJobs = 50;
  RateLimitGate rates({}, {counting, clock_, load_});
  for (int i = 0; i < 10; ++i) EXPECT_FALSE(passes(rates, Operation::run, 50));
  EXPECT_THAT(counting.counted, testing::Each(testing::Pair(testing::_, 0U)));
}

TEST_F(RateLimitGateTest, AFailingStorageGivesThePlaceBack) {
  const FailingLoad failing(StorageError("gone"));
  const FailingLoad throwing(7);
  RateLimitGate rates({}, {limiter_, clock_, failing});
  RateLimitGate others({}, {limiter_, clock_, throwing});
  EXPECT_THROW((void)rates.enter("e", Operation::run, {kNone, kMany}), StorageError);
  EXPECT_THROW((void)others.enter("e", Operation::run, {kNone, kMany}), int);
  EXPECT_EQ(limiter_.inside, 0);
}

}  // namespace
