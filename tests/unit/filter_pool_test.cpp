// Tests of admission filters: the names (core/config/filter_name.h), the instances (core/endpoints/filter_pool.h), and
// the effect of a verdict on a job (core/jobs/admission.h).
#include "core/endpoints/filter_pool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <future>
#include <optional>
#include <thread>

#include "core/config/filter_name.h"
#include "core/endpoints/endpoint.h"
#include "core/jobs/admission.h"
#include "testkit/thrown_text.h"
#include "testkit/wait_for.h"

namespace jobq {
namespace {

using testing::HasSubstr;

/// Makes filters with verdicts chosen by the test.
class JudgingFactory final : public AdmissionFilterFactory {
 public:
  using Judge = std::function<Decision(const AdmissionRequest&)>;

  std::unique_ptr<AdmissionFilter> make(std::string_view script) override {
    ++made;
    {
      Lock lock(mutex_);
      lastScript_ = script;
    }
    if (failing) throw Error("no memory for it");
    return std::make_unique<Filter>(*this);
  }
  std::optional<std::string> fault(std::string_view script) const override {
    if (script != "broken") return std::nullopt;
    return "it does not parse";
  }

  Judge judge = [](const AdmissionRequest&) { return Accept{}; };
  std::atomic<int> made = 0;
  std::atomic<int> alive = 0;
  bool failing = false;

  std::string lastScript() {
    Lock lock(mutex_);
    return lastScript_;
  }

 private:
  class Filter final : public AdmissionFilter {
   public:
    explicit Filter(JudgingFactory& factory) : factory_(factory) { ++factory_.alive; }
    ~Filter() override { --factory_.alive; }
    Decision review(const AdmissionRequest& job) override { return factory_.judge(job); }

   private:
    JudgingFactory& factory_;
  };

  Mutex mutex_;
  std::string lastScript_ JOBQ_GUARDED_BY(mutex_);
};

TEST(FilterNames, AreScriptsOrPlugins) {
  EXPECT_EQ(parseFilter("require_fields")->plugin, "lua");
  EXPECT_EQ(parseFilter("require_fields")->script, "require_fields");
  EXPECT_EQ(parseFilter("plugin/ours")->plugin, "ours");
  EXPECT_EQ(parseFilter("plugin/ours")->script, "");
  for (const char* wrong : {"", "plugin/", "a/b", "../a", "plugin/../a", "a.lua", "a b", "plugin/a/b"}) {
    EXPECT_FALSE(parseFilter(wrong)) << wrong;
  }
  EXPECT_TRUE(parseFilter(std::string(64, 'a')));
  EXPECT_FALSE(parseFilter(std::string(65, 'a')));
}

TEST(FilterNames, AListHasAtMostSixteenDifferentFilters) {
  std::vector<std::string> names;
  for (int i = 0; i < 16; ++i) names.push_back("f" + std::to_string(i));
  EXPECT_TRUE(checkFilterNames(names));
  names.push_back("one_more");
  EXPECT_FALSE(checkFilterNames(names));
  EXPECT_FALSE(checkFilterNames({"a", "b", "a"}));
  EXPECT_TRUE(checkFilterNames({"a", "plugin/a"}));
}

class FilterPoolTest : public testing::Test {
 protected:
  FilterPoolTest() {
    job_.endpoint = "ep";
    job_.apiKeyId = "key";
    job_.input = R"({"n":1})";
    endpoint_.filters = {&first_};
    endpoint_.spec.env = {{"LIMIT", "5"}};
  }
  Decision review() { return first_.review({"ep", "key", "{}", job_.policy, endpoint_.spec.env}); }
  std::string failure() {
    return testkit::thrownText<FilterError>([&] { return admit(job_, endpoint_); });
  }

  JudgingFactory factory_;
  FilterPool first_{"first", factory_, "the_script"};
  JobSpec job_;
  Endpoint endpoint_;
};

TEST_F(FilterPoolTest, AnInstanceIsUsedAgain) {
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(std::holds_alternative<Accept>(review()));
  EXPECT_GE(factory_.made, 1);
  EXPECT_LE(factory_.made, 16) << "a shard has a single instance at most";
  EXPECT_EQ(factory_.lastScript(), "the_script");
}

TEST_F(FilterPoolTest, AnInstanceIsNotKeptAfterAnException) {
  factory_.judge = [](const AdmissionRequest&) -> Decision { throw Error("lost"); };
  for (int i = 0; i < 5; ++i) EXPECT_THROW((void)review(), Error);
  EXPECT_EQ(factory_.made, 5);
  EXPECT_EQ(factory_.alive, 0);
}

TEST_F(FilterPoolTest, AnInstanceJudgesASingleJobAtATime) {
  std::promise<void> both;
  std::atomic<int> inside = 0;
  std::shared_future<void> met = both.get_future().share();
  factory_.judge = [&](const AdmissionRequest&) {
    if (++inside == 2) both.set_value();
    EXPECT_EQ(met.wait_for(testkit::kHangDeadline), std::future_status::ready) << "the calls are not side by side";
    return Accept{};
  };
  std::thread other([this] { (void)review(); });
  (void)review();
  testkit::join("the other review", other);
  EXPECT_EQ(factory_.made, 2);
}

TEST_F(FilterPoolTest, AMissingFilterIsNamedAndRefusesEveryJob) {
  FilterPool absent("gone", "there is no filter gone");
  EXPECT_EQ(absent.check().failure().message(), "there is no filter gone");
  EXPECT_THROW((void)absent.review({"ep", "key", "{}", job_.policy, endpoint_.spec.env}), ConfigError);
  EXPECT_EQ(FilterPool("f", factory_, "broken").check().failure().message(), "it does not parse");
  EXPECT_TRUE(first_.check());
}

TEST_F(FilterPoolTest, AFilterSeesTheJobAndTheEndpointsEnv) {
  factory_.judge = [](const AdmissionRequest& job) {
    EXPECT_EQ(job.endpoint, "ep");
    EXPECT_EQ(job.apiKeyId, "key");
    EXPECT_EQ(job.input, R"({"n":1})");
    EXPECT_EQ(job.env.at("LIMIT"), "5");
    return Accept{};
  };
  EXPECT_TRUE(admit(job_, endpoint_));
}

TEST_F(FilterPoolTest, ARejectionIsTheFiltersOwnWord) {
  factory_.judge = [](const AdmissionRequest&) { return Reject{"n must be even"}; };
  EXPECT_EQ(admit(job_, endpoint_).failure().message, "n must be even");
  factory_.judge = [](const AdmissionRequest&) { return Reject{""}; };
  EXPECT_EQ(admit(job_, endpoint_).failure().message, "the filter first refuses this job");
}

TEST_F(FilterPoolTest, EachFilterSeesTheJobAsChangedByTheFilterBefore) {
  JudgingFactory later;
  FilterPool second("second", later, "");
  endpoint_.filters = {&first_, &second};
  factory_.judge = [](const AdmissionRequest&) {
    JobPolicy policy;
    policy.priority = 7;
    return Replace{R"({"n":2})", policy};
  };
  later.judge = [](const AdmissionRequest& job) {
    EXPECT_EQ(job.input, R"({"n":2})");
    EXPECT_EQ(job.policy.priority, 7);
    return Accept{};
  };
  EXPECT_TRUE(admit(job_, endpoint_));
  EXPECT_EQ(job_.input, R"({"n":2})");
  EXPECT_EQ(job_.policy.priority, 7);
}

TEST_F(FilterPoolTest, AfterARejectionNoOtherFilterIsAsked) {
  JudgingFactory later;
  FilterPool second("second", later, "");
  endpoint_.filters = {&first_, &second};
  factory_.judge = [](const AdmissionRequest&) { return Reject{"no"}; };
  EXPECT_FALSE(admit(job_, endpoint_));
  EXPECT_EQ(later.made, 0);
}

TEST_F(FilterPoolTest, EmptyFieldsOfAReplacementStay) {
  job_.policy.priority = 3;
  factory_.judge = [](const AdmissionRequest&) { return Replace{}; };
  EXPECT_TRUE(admit(job_, endpoint_));
  EXPECT_EQ(job_.input, R"({"n":1})");
  EXPECT_EQ(job_.policy.priority, 3);
}

TEST_F(FilterPoolTest, AFailingFilterIsNamedAndRefusesEveryJob) {
  factory_.judge = [](const AdmissionRequest&) -> Decision { throw std::out_of_range("index 9"); };
  EXPECT_EQ(failure(), "the filter first of this endpoint failed: index 9");
  factory_.judge = [](const AdmissionRequest&) -> Decision { throw 7; };
  EXPECT_THAT(failure(), HasSubstr("not a std::exception"));
  factory_.failing = true;
  EXPECT_THAT(failure(), HasSubstr("no memory for it"));
  EXPECT_EQ(job_.input, R"({"n":1})");
}

TEST_F(FilterPoolTest, AFilterMayWriteOnlyValuesAllowedToACaller) {
  for (const char* input : {"", "[]", "{", "{} {}", "null"}) {
    factory_.judge = [input](const AdmissionRequest&) { return Replace{input, std::nullopt}; };
    EXPECT_THAT(failure(), HasSubstr("not a JSON object")) << input;
  }
  factory_.judge = [](const AdmissionRequest&) {
    return Replace{"{\"x\":\"" + std::string(20UL << 20, 'x') + "\"}", std::nullopt};
  };
  EXPECT_THAT(failure(), HasSubstr("more than 20 MB"));
  factory_.judge = [](const AdmissionRequest&) {
    JobPolicy policy;
    policy.executionTimeout = Millis(1);
    return Replace{std::nullopt, policy};
  };
  EXPECT_THAT(failure(), HasSubstr("the filter returned a wrong policy: "));
  EXPECT_EQ(job_.input, R"({"n":1})");
}

}  // namespace
}  // namespace jobq
