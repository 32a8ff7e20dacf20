// Filters in Lua: verdicts, visible fields of the job, time and quotas.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <ratio>

#include "lua_fixture.h"
#include "quotas.h"
#include "testkit/pace.h"

namespace jobq::lua::test {
namespace {

class LuaFilterTest : public LuaTest {
 protected:
  Verdict verdictOf(const std::string& body, const std::string& input = R"({"a":1})",
                    const testkit::MapConfig& config = {}) {
    scripts.write("filter", "return function(job)\n" + body + "\nend");
    const auto factory = filters(config);
    return review(*factory->make("filter"), input);
  }
};

TEST_F(LuaFilterTest, AcceptsAndRejects) {
  EXPECT_EQ(verdictOf("").text, "accepted");
  EXPECT_EQ(verdictOf("return nil").text, "accepted");
  EXPECT_EQ(verdictOf("return true").text, "accepted");
  EXPECT_EQ(verdictOf("return false, 'say please'").text, "rejected: say please");
  EXPECT_EQ(verdictOf("return false").text, "rejected: the filter filter refuses this job");
  EXPECT_EQ(verdictOf("return false, {}").text, "rejected: the filter filter refuses this job");
  EXPECT_EQ(verdictOf("return false, ('x'):rep(10000)").text.size(), 10U + 4096U);
}

TEST_F(LuaFilterTest, ChoosesTheStatusOfARefusal) {
  EXPECT_EQ(verdictOf("return false, 'no'").refusal.status, 400);
  EXPECT_EQ(verdictOf("return false, 'no', {}").refusal.status, 400);
  for (const int status : {400, 403, 409, 413, 422, 429}) {
    const Verdict refused = verdictOf("return false, 'no', {status = " + std::to_string(status) + "}");
    EXPECT_EQ(refused.text, "rejected: no");
    EXPECT_EQ(refused.refusal.status, status);
    EXPECT_EQ(refused.refusal.retryAfter, Millis(0));
  }
  EXPECT_EQ(verdictOf("return false, 'no', {status = 429, retryAfter = 1.5}").refusal.retryAfter, Millis(1'500));
  for (const auto& [options, word] :
       {std::pair("{status = 'x'}", "status of the refusal is not a number"),
        std::pair("{status = 4.5}", "not an HTTP status"),
        std::pair("{retryAfter = 1}", "allowed only with status = 429"),
        std::pair("{status = 429, retryAfter = -1}", "from 0 to 604800"),
        std::pair("{status = 429, retryAfter = 0/0}", "from 0 to 604800"),
        std::pair("{code = 4}", "unknown field code"), std::pair("429", "has a number after the message")}) {
    EXPECT_THAT(verdictOf(std::string("return false, 'no', ") + options).text,
                testing::AllOf(testing::StartsWith("threw: "), testing::HasSubstr(word)))
        << options;
  }
}

TEST_F(LuaFilterTest, SeesTheJob) {
  policy.executionTimeout = Millis(7000);
  policy.priority = -3;
  EXPECT_EQ(verdictOf(R"(
    local p = job.policy
    return false, json.encode{job.size, job.endpoint, job.key, job.env.CITY, job.input, p.executionTimeout, p.priority,
                              p.lowPriority, tostring(job.none)})")
                .text,
            R"(rejected: [7,"the-endpoint","key-1","Ulm",{"a":1},7000,-3,false,"nil"])");
}

TEST_F(LuaFilterTest, ReplacesInputAndPolicy) {
  const Verdict both =
      verdictOf(R"(job.input.b = json.array() return {input = job.input, policy = {priority = 5, ttl = 20000}})");
  EXPECT_EQ(both.text, "replaced");
  EXPECT_EQ(both.change.input, R"({"a":1,"b":[]})");
  ASSERT_TRUE(both.change.policy);
  EXPECT_EQ(both.change.policy->priority, 5);
  EXPECT_EQ(both.change.policy->ttl, Millis(20'000));
  EXPECT_EQ(both.change.policy->executionTimeout, policy.executionTimeout);
  const Verdict none = verdictOf("return {}");
  EXPECT_EQ(none.text, "replaced");
  EXPECT_FALSE(none.change.input || none.change.policy);
}

TEST_F(LuaFilterTest, WrongVerdictsAreNamed) {
  EXPECT_EQ(verdictOf("return 5").text, "threw: the filter returned a number");
  EXPECT_EQ(verdictOf("return 'no'").text, "threw: the filter returned a string");
  EXPECT_EQ(verdictOf("return nil, 'no model'").text,
            "threw: the filter returned nil and a message: return false and the message to refuse a job");
  EXPECT_EQ(verdictOf("return json.null").text, "threw: the filter returned a json.null");
  EXPECT_EQ(verdictOf("return {inputs = {}}").text,
            "threw: the filter returned a table with the unknown field inputs: input and policy are known");
  EXPECT_EQ(verdictOf("return {1}").text,
            "threw: the filter returned a table with the unknown field number: input and policy are known");
  EXPECT_EQ(verdictOf("return {policy = 5}").text, "threw: the policy returned by the filter is not a table");
  EXPECT_EQ(verdictOf("return {policy = {priority = 'x'}}").text, "threw: policy.priority is not a whole number");
  EXPECT_EQ(verdictOf("return {policy = {ttl = 1.5}}").text, "threw: policy.ttl is not a whole number");
  EXPECT_EQ(verdictOf("return {policy = {lowPriority = 1}}").text,
            "threw: policy.lowPriority is neither true nor false");
  EXPECT_EQ(verdictOf("return {policy = {speed = 1}}").text,
            "threw: the policy returned by the filter has the unknown field speed");
  EXPECT_EQ(verdictOf("return {input = print}").text, "threw: a function is not JSON");
  EXPECT_EQ(verdictOf("\nerror('sorry')").text, "threw: filter.lua:3: sorry");
}

TEST_F(LuaFilterTest, AnOverrunBudgetNamesTheTime) {
  EXPECT_EQ(verdictOf("while true do end").text,
            "threw: the script took more than 5 ms of processor time (lua.filterTime)");
  const std::string large = R"({"a":")" + std::string(2U << 20, 'x') + "\"}";
  EXPECT_EQ(verdictOf("while true do local x = job.input end", large).text,
            "threw: the script took more than 45 ms of processor time (lua.filterTime)");
  EXPECT_EQ(verdictOf("while true do job.input = nil local x = job.input end", large).text,
            "threw: the script took more than 45 ms of processor time (lua.filterTime)");
}

// An honest filter counts numbers sent by a caller who knows how Lua places numbers.
TEST_F(LuaFilterTest, CallersCannotChooseCollidingKeys) {
  const std::string count = "local seen = {} for _, id in ipairs(job.input.ids) do seen[id] = true end";
  const auto numbers = [](std::int64_t step) {
    std::string text = R"({"ids":[0)";
    for (std::int64_t i = 1; i <= 65'600; ++i) text += "," + std::to_string(i * step);
    return text + "]}";
  };
  EXPECT_EQ(
      verdictOf(count, numbers((1 << 17) - 1), with({{"filterTime", "1000"}})).text,
      "threw: the number keys of a table share one hash chain, in which each search would take too long: use texts "
      "as keys");
  EXPECT_EQ(verdictOf(count, numbers(7), with({{"filterTime", "1000"}})).text, "accepted");
}

// Keys spread while the table is large and meet when the table shrinks, or meet in a chain that is searched for each
// moved key.
TEST_F(LuaFilterTest, KeysWithOtherCollisionsAreRefusedToo) {
  const std::string meet =
      "threw: the number keys of a table share one hash chain, in which each search would take too long: "
      "use texts as keys";
  const std::string shrinks = R"(
    local t, base = {}, 65535 * 1000003
    for i = 0, 16383 do t[base + i] = 1 t[base + i + 32768] = 1 end
    for m = 1, 32767 do t[32767 * m] = 1 end
    for i = 0, 16383 do t[base + i] = nil t[base + i + 32768] = nil end
    for m = 32000, 32100 do t[32767 * m] = nil end
    t[32767 * (1 + 65535)] = 1 t[32767 * (1 + 65535 * 2)] = 1)";
  EXPECT_EQ(verdictOf(shrinks, "{}", with({{"filterTime", "1000"}})).text, meet);
  const std::string moves = R"(
    local t, m, o, length = {}, 131071, 65535, 4040
    local function key(a, b) return b + m * ((a - b) % o) end
    for a = 0, length - 1 do t[key(a, 0)] = 1 end
    t[key(length, 131070)] = 1
    for i = 1, o - 1 - length do t[key(length + i, 131072 - length - (i - 1))] = 1 end
    t[key(7, 5) + o * m] = 1 t[key(8, 6) + o * m] = 1)";
  EXPECT_EQ(verdictOf(moves, "{}", with({{"filterTime", "1000"}})).text, meet);
}

TEST_F(LuaFilterTest, TheFirstLinesOfAFilterMayTakeFromAQuota) {
  scripts.write("early", R"(
    local free = quota and quota.take('early', 2, 60)
    return function() return free, 'none left' end)");
  const auto factory = filters();
  const auto filter = factory->make("early");
  EXPECT_EQ(review(*filter, "{}").text, "accepted");
  EXPECT_EQ(review(*filter, "{}").text, "accepted");
  EXPECT_EQ(review(*filter, "{}").text, "rejected: none left");
}

TEST_F(LuaFilterTest, QuotasCountInTheirWindow) {
  scripts.write("tenant", R"(return function(job)
    local free, wait = quota.take(job.input.tenant, 2, 60)
    if not free then return false, 'wait ' .. wait end
  end)");
  scripts.write("other", "return function(job) return quota.take(job.input.tenant, 1, 60), 'no' end");
  const auto factory = filters();
  const auto one = factory->make("tenant");
  const auto two = factory->make("tenant");
  const auto other = factory->make("other");
  EXPECT_EQ(review(*one, R"({"tenant":"a"})").text, "accepted");
  clock.advance(Millis(10'000));
  EXPECT_EQ(review(*two, R"({"tenant":"a"})").text, "accepted");
  EXPECT_EQ(review(*one, R"({"tenant":"a"})").text, "rejected: wait 50.0");
  EXPECT_EQ(review(*one, R"({"tenant":"b"})").text, "accepted");
  EXPECT_EQ(review(*other, R"({"tenant":"a"})").text, "accepted");
  clock.advance(Millis(49'999));
  EXPECT_EQ(review(*two, R"({"tenant":"a"})").text, "rejected: wait 0.001");
  clock.advance(Millis(1));
  EXPECT_EQ(review(*two, R"({"tenant":"a"})").text, "accepted");
  scripts.write("wrong", "return function(job) return quota.take(job.input.tenant, 1, job.input.seconds) end");
  const auto wrong = factory->make("wrong");
  EXPECT_EQ(review(*wrong, R"({"tenant":"a","seconds":0})").text,
            "threw: wrong.lua:1: bad argument #3 to 'take' (from 0.001 to 604800 seconds)");
  EXPECT_EQ(review(*wrong, R"({"tenant":")" + std::string(257, 'x') + R"(","seconds":1})").text,
            "threw: wrong.lua:1: bad argument #1 to 'take' (a name has at most 256 bytes)");
}

TEST(QuotasTest, ForgetTheEarliestOfTooManyNames) {
  testkit::ManualClock clock;
  Quotas quotas(clock);
  EXPECT_EQ(quotas.reserve("kept", 1, Millis(100'000)), Millis(0));
  EXPECT_EQ(quotas.reserve("earliest", 1, Millis(1'000)), Millis(0));
  for (int i = 0; i < 99'998; ++i) ASSERT_EQ(quotas.reserve(std::to_string(i), 1, Millis(50'000)), Millis(0));
  EXPECT_EQ(quotas.reserve("earliest", 1, Millis(1'000)), Millis(1'000));
  // A flood of names must not cost a scan each: compares 2,000 names with the single scan needed by the first name.
  const auto costOfNames = [&](int from, int to) {
    const std::chrono::nanoseconds begun = testkit::threadProcessorTime();
    for (int i = from; i < to; ++i) EXPECT_EQ(quotas.reserve("new " + std::to_string(i), 1, Millis(50'000)), Millis(0));
    return std::chrono::duration<double, std::milli>(testkit::threadProcessorTime() - begun).count();
  };
  const double oneScan = costOfNames(0, 1);
  const double others = costOfNames(1, 2'000);
  std::printf("%.2f ms of processor time for a scan, %.2f ms for 1,999 names after it\n", oneScan, others);
  EXPECT_LT(others, 20 * oneScan);
  EXPECT_EQ(quotas.reserve("earliest", 1, Millis(1'000)), Millis(0)) << "the earliest name was forgotten";
  EXPECT_EQ(quotas.reserve("kept", 1, Millis(100'000)), Millis(100'000));
}

}  // namespace
}  // namespace jobq::lua::test
