// The library `os` of scripts: the server's clock in UTC, and no function that reaches outside.
#include <gmock/gmock.h>

#include <map>
#include <optional>
#include <string>

#include "lua_fixture.h"

namespace jobq::lua::test {
namespace {

// The manual clock begins at 2026-01-01T00:00:00Z.
TEST_F(LuaTest, OsTellsTheTimeOfTheServersClock) {
  clock.advance(Millis(1'999));
  EXPECT_EQ(once("return function() return os.time() end"), "1767225601");
  EXPECT_EQ(once("return function() return os.date('%Y-%m-%dT%H:%M:%SZ') end"), "\"2026-01-01T00:00:01Z\"");
  EXPECT_EQ(once("return function() return os.date('!%A %j %%', 86400) end"), "\"Friday 002 %\"");
  EXPECT_EQ(once("local began = os.time() return function() return os.time() - began end"), "0");
}

TEST_F(LuaTest, OsTurnsDatesIntoTimesAndBack) {
  EXPECT_EQ(once("return function() return os.time{year=2026, month=1, day=1, hour=0} end"), "1767225600");
  EXPECT_EQ(once("return function() return os.time{year=2025, month=13, day=1, hour=0, sec=-1} end"), "1767225599");
  EXPECT_EQ(once(R"(return function()
    local d = os.date('*t', 1767225600)
    return {d.year, d.month, d.day, d.hour, d.min, d.sec, d.yday, d.wday, d.isdst}
  end)"),
            "[2026,1,1,0,0,0,1,5,false]");
}

TEST_F(LuaTest, OsRefusesWhatIsNoTime) {
  using testing::HasSubstr;
  for (const auto& [call, words] :
       std::map<std::string, std::string>{{"os.time{year=2026, month=1}", "field 'day' missing"},
                                          {"os.time{year='x', month=1, day=1}", "field 'year' is not an integer"},
                                          {"os.time{year=1 << 40, month=1, day=1}", "out-of-bound"},
                                          {"os.date('%Q')", "invalid conversion specifier"},
                                          {"os.date('%')", "invalid conversion specifier"},
                                          {"os.date('%Y', 1 << 62)", "cannot be represented"},
                                          {"os.date(('%c'):rep(1000))", "more than 1000 bytes"}}) {
    EXPECT_THAT(once("return function() return " + call + " end"), HasSubstr(words)) << call;
  }
}

TEST_F(LuaTest, OsHasTheTimeAlone) {
  EXPECT_EQ(once(R"(return function()
    return {type(os.clock()), os.execute == nil, os.getenv == nil, os.exit == nil, os.remove == nil, os.rename == nil,
            os.setlocale == nil, os.tmpname == nil, os.difftime == nil,
            (pcall(function() os.time = nil end))}
  end)"),
            "[\"number\",true,true,true,true,true,true,true,true,false]");
}

TEST_F(LuaTest, FiltersHaveItToo) {
  scripts.write("clocked", "return function(job) if os.time() ~= 1767225600 then return 'late' end end");
  const auto factory = filters();
  EXPECT_EQ(factory->fault("clocked"), std::nullopt);
  EXPECT_EQ(review(*factory->make("clocked"), "{}").text, "accepted");
}

}  // namespace
}  // namespace jobq::lua::test
