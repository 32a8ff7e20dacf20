// Tests of admission filters on the whole server: C++ plugins (size_filter.cpp), and the rules of the shipped scripts
// that need a clock.
#include "server_fixture.h"
#include "testkit/thrown_text.h"

namespace {

using namespace jobq;
using testing::AllOf;
using testing::HasSubstr;

constexpr const char* kFiltered =
    "storage = memory\nplugins.path = " JOBQ_PLUGIN_DIR ":" JOBQ_FIXTURE_DIR "\nscripts.path = " JOBQ_SOURCE_DIR
    "/scripts/lua\n"
    "endpoint.e.image = plugin/echo\nendpoint.e.filters = plugin/size\nendpoint.e.env.LIMIT = 5\n"
    "endpoint.open.image = plugin/echo\n"
    "endpoint.parked.image = plugin/echo\nendpoint.parked.workersMax = 0\nendpoint.parked.filters = plugin/size\n"
    "endpoint.u.image = plugin/echo\nendpoint.u.filters = plugin/unmade\n";

class FilterTest : public ServerTest {
 protected:
  Answer submit(const std::string& endpoint, const std::string& input, const std::string& more = "") const {
    return run(endpoint, "{\"input\":" + input + more + "}");
  }
  std::string output(const std::string& input) const {
    return call("POST", "/v2/e/runsync", "{\"input\":" + input + "}").field("output");
  }
  std::string health(const std::string& endpoint) const { return call("GET", "/v2/" + endpoint + "/health").body; }
  /// Returns the number of filter instances made so far.
  int made() const { return std::stoi(submit("e", R"({"do":"made"})").field("error").substr(5)); }
};

TEST_F(FilterTest, AcceptsAndReplaces) {
  open(kFiltered);
  EXPECT_EQ(output(R"({"do":"accept"})"), R"({"do":"accept"})");
  EXPECT_EQ(output(R"({"do":"input"})"), R"({"made":"by a filter"})");
}

// core/http/API.md, "Admission filters": Reject(message) is 400 on both calls, and no job is stored.
TEST_F(FilterTest, Rejects) {
  open(kFiltered);
  for (const char* operation : {"run", "runsync"}) {
    const Answer refused = call("POST", std::string("/v2/parked/") + operation, R"({"input":{"do":"reject"}})");
    EXPECT_EQ(refused.status, 400);
    EXPECT_EQ(refused.field("error"), "input.do must not be \"reject\": send another");
  }
  EXPECT_THAT(health("parked"), HasSubstr("\"inQueue\":0"));
}

TEST_F(FilterTest, RefusesWithTheStatusOfTheFilter) {
  open(kFiltered);
  for (const int status : {400, 403, 409, 413, 422, 429}) {
    const Answer refused = submit("parked", "{\"status\":" + std::to_string(status) + "}");
    EXPECT_EQ(refused.status, status);
    EXPECT_EQ(refused.field("error"), "the filter plugin/size refuses this job");
    const auto after = refused.headers.find("Retry-After");
    EXPECT_EQ(after == refused.headers.end() ? "" : after->second, status == 429 ? "2" : "") << "1.5 s";
  }
  const Answer failed = submit("parked", R"({"status":500})");
  EXPECT_EQ(failed.status, 500);
  EXPECT_THAT(failed.field("error"), AllOf(HasSubstr("plugin/size"), HasSubstr("refused with status 500")));
  EXPECT_THAT(health("parked"), HasSubstr("\"inQueue\":0"));
}

// Without workers, the job of higher priority comes first in the queue.
TEST_F(FilterTest, ReplacesThePolicy) {
  open(std::string(kFiltered) +
       "endpoint.s.image = plugin/echo\nendpoint.s.workersMax = 0\n"
       "endpoint.s.filters = plugin/size\n");
  const std::string plain = submit("s", R"({"do":"accept"})").field("id");
  const std::string lifted = submit("s", R"({"do":"policy"})").field("id");
  EXPECT_EQ(status("s", plain).field("queuePosition"), "2");
  EXPECT_EQ(status("s", lifted).field("queuePosition"), "1");
}

// A filter may produce only input and policy allowed to a caller. A failing filter lets no job in.
TEST_F(FilterTest, FailsWithTheNameOfTheFilter) {
  open(kFiltered);
  const std::map<std::string, std::string> reasons{{"throw", "it is broken on purpose"},
                                                   {"throwInt", "not a std::exception"},
                                                   {"noObject", "not a JSON object"},
                                                   {"badPolicy", "policy.priority"}};
  for (const auto& [action, reason] : reasons) {
    const Answer failed = submit("parked", "{\"do\":\"" + action + "\"}");
    EXPECT_EQ(failed.status, 500) << action;
    EXPECT_THAT(failed.field("error"), AllOf(HasSubstr("plugin/size"), HasSubstr(reason), HasSubstr("request")));
  }
  EXPECT_THAT(health("parked"), HasSubstr("\"inQueue\":0"));
  EXPECT_EQ(submit("e", "{}").status, 200) << "the server goes on after the failure";
}

TEST_F(FilterTest, AnInstanceThatCannotBeMade) {
  open(kFiltered);
  const Answer failed = submit("u", "{}");
  EXPECT_EQ(failed.status, 500);
  EXPECT_THAT(failed.field("error"), AllOf(HasSubstr("plugin/unmade"), HasSubstr("its model is not there")));
}

TEST_F(FilterTest, SeesTheJob) {
  open(kFiltered);
  const Answer seen = submit("e", R"({"do" : "size"})");
  EXPECT_THAT(seen.field("error"), testing::MatchesRegex("15 e [1-9][0-9]* 5"));
}

// sdk/include/jobq/admission_filter.h: an instance has one call at a time, and the host keeps a pool.
TEST_F(FilterTest, AnInstanceIsKeptUntilAnException) {
  open(kFiltered);
  const auto processors = static_cast<int>(std::thread::hardware_concurrency());
  const int times = 3 * processors + 10;
  for (int i = 0; i < times; ++i) EXPECT_EQ(submit("e", "{}").status, 200);
  EXPECT_LE(made(), processors + 1) << "each processor may have an instance";
  for (int i = 0; i < times; ++i) EXPECT_EQ(submit("e", R"({"do":"throw"})").status, 500);
  EXPECT_GE(made(), times) << "an instance is not used again after an exception";
}

TEST_F(FilterTest, EachOfManyConcurrentJobsIsJudgedByASeparateInstance) {
  open(kFiltered);
  constexpr int kCallers = 12;
  std::vector<std::thread> callers;
  std::vector<Answer> answers(kCallers);
  for (Answer& answer : answers) {
    callers.emplace_back([&] { answer = submit("parked", R"({"meet":12})"); });
  }
  testkit::joinAll("the callers whose jobs are judged", callers);
  for (const Answer& answer : answers) EXPECT_EQ(answer.status, 200) << answer.body;
  EXPECT_GE(made(), kCallers);
}

TEST_F(FilterTest, EndpointsOfTheApiHaveFilters) {
  open(std::string(kFiltered) + "filters = plugin/size\n");
  const std::string made = call("POST", "/v1/templates", R"({"name":"t","imageName":"plugin/echo"})").field("id");
  const auto create = [&](const std::string& more) {
    return call("POST", "/v1/endpoints", "{\"templateId\":\"" + made + "\"" + more + "}");
  };
  const Answer missing = create(R"(,"filters":["plugin/none"])");
  EXPECT_EQ(missing.status, 400);
  EXPECT_THAT(missing.field("message"), AllOf(HasSubstr("filters"), HasSubstr("no filter plugin named none")));
  EXPECT_EQ(create(R"(,"filters":["plugin/echo"])").status, 400) << "echo is a handler and not a filter";
  const std::string filtered = create(R"(,"filters":["plugin/size"])").field("id");
  const std::string servers = create("").field("id");
  const std::string none = create(R"(,"filters":[])").field("id");
  constexpr const char* kRejected = R"({"do":"reject"})";
  EXPECT_EQ(submit(filtered, kRejected).status, 400);
  EXPECT_EQ(submit(servers, kRejected).status, 400);
  EXPECT_EQ(submit(none, kRejected).status, 200);
  EXPECT_EQ(submit("open", kRejected).status, 400) << "endpoints of the file have the server's too";
  EXPECT_EQ(call("PATCH", "/v1/endpoints/" + filtered, R"({"filters":["plugin/unmade"]})").status, 200);
  EXPECT_EQ(submit(filtered, "{}").status, 500);
}

TEST_F(FilterTest, AMissingFilterStopsTheStart) {
  const auto refusal = [this](const std::string& settings) -> std::string {
    return testkit::thrownText<ConfigError>(
        [&] { return open("storage = memory\nendpoint.a.image = plugin/echo\n" + settings); });
  };
  EXPECT_THAT(refusal("filters = plugin/none\nendpoint.a.filters =\n"),
              AllOf(HasSubstr("filters"), HasSubstr("no filter plugin named none")));
  EXPECT_THAT(refusal("endpoint.a.filters = plugin/none\n"),
              AllOf(HasSubstr("endpoint.a.filters"), HasSubstr("no filter plugin named none")));
  EXPECT_THAT(refusal("endpoint.a.filters = nosuch\n"),
              AllOf(HasSubstr("endpoint.a.filters"), HasSubstr("nosuch.lua cannot be read")));
  EXPECT_THAT(refusal("endpoint.a.filters = size_limit, size_limit\n"), HasSubstr("twice"));
  EXPECT_THAT(refusal("endpoint.a.filters = ../x\n"), HasSubstr("1 to 64 letters, digits, '-' and '_'"));
}

// scripts/lua/filters/tenant_quota.lua: a number of jobs in a window of time, which begins with the first job.
TEST_F(FilterTest, TheQuotaOfATenant) {
  open(std::string(kFiltered) +
       "endpoint.q.image = plugin/echo\nendpoint.q.filters = tenant_quota\n"
       "endpoint.q.workersMax = 0\nendpoint.q.env.TENANT_QUOTA = 2/60\n"
       "endpoint.q.env.TENANT_FIELD = tenant\n");
  EXPECT_EQ(submit("q", R"({"tenant":"a"})").status, 200);
  clock_.advance(Millis(20'500));
  EXPECT_EQ(submit("q", R"({"tenant":"a"})").status, 200);
  const Answer refused = submit("q", R"({"tenant":"a"})");
  EXPECT_EQ(refused.status, 429);
  EXPECT_EQ(refused.headers.at("Retry-After"), "40");
  EXPECT_EQ(refused.field("error"), "the quota of 2/60 s is used up: try again in 40 s");
  EXPECT_EQ(submit("q", R"({"tenant":"b"})").status, 200);
  clock_.advance(Millis(39'499));
  EXPECT_EQ(submit("q", R"({"tenant":"a"})").status, 429);
  clock_.advance(Millis(1));
  EXPECT_EQ(submit("q", R"({"tenant":"a"})").status, 200);
  EXPECT_EQ(submit("q", R"({"tenant":"a"})").status, 200);
  EXPECT_EQ(submit("q", R"({"tenant":"a"})").status, 429);
}

}  // namespace
