// The order of deliveries, and how many go to one host at a time (core/webhooks/courier_crew.h).
#include "core/webhooks/courier_crew.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <set>

#include "unit_storage.h"

namespace jobq {
namespace {

using test::holdsSoon;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

/// Work that waits until the test lets it end. Any thread.
class HeldWork {
 public:
  void operator()(const Delivery& delivery) {
    Lock lock(mutex_);
    begun_.push_back(delivery.id);
    changed_.notifyAll();
    while (!open_ && !let_.contains(delivery.id)) changed_.wait(mutex_);
  }
  void letEnd(const std::string& id) {
    Lock lock(mutex_);
    let_.insert(id);
    changed_.notifyAll();
  }
  void letAllEnd() {
    Lock lock(mutex_);
    open_ = true;
    changed_.notifyAll();
  }
  std::vector<std::string> begun() const {
    Lock lock(mutex_);
    return begun_;
  }

 private:
  mutable Mutex mutex_;
  Condition changed_;
  bool open_ JOBQ_GUARDED_BY(mutex_) = false;
  std::set<std::string> let_ JOBQ_GUARDED_BY(mutex_);
  std::vector<std::string> begun_ JOBQ_GUARDED_BY(mutex_);
};

class CourierCrewUnit : public testing::Test {
 protected:
  ~CourierCrewUnit() override { work_.letAllEnd(); }

  static Delivery to(const std::string& host, int number) {
    Delivery delivery;
    delivery.id = host + "." + std::to_string(number);
    delivery.host = host;
    return delivery;
  }
  bool begins(std::size_t count) {
    return holdsSoon([&] { return work_.begun().size() >= count; });
  }

  HeldWork work_;
  std::atomic<int> freed_ = 0;
  CourierCrew crew_{[this](const Delivery& delivery) { work_(delivery); }, [this] { ++freed_; }};
};

TEST_F(CourierCrewUnit, AnIdleCrewTakesAsManyAsOneHostMayHave) {
  const CourierCrew::Room room = crew_.room();
  EXPECT_EQ(room.deliveries, kCouriersPerHost) << "all of them may turn out to go to one host";
  EXPECT_THAT(room.busyHosts, IsEmpty());
}

TEST_F(CourierCrewUnit, AHostHasItsShareAndNoMore) {
  for (int i = 0; i < static_cast<int>(kCouriersPerHost) - 1; ++i) crew_.give(to("h", i));
  EXPECT_EQ(crew_.room().deliveries, 1U);
  EXPECT_THAT(crew_.room().busyHosts, IsEmpty());
  crew_.give(to("h", 7));
  EXPECT_THAT(crew_.room().busyHosts, ElementsAre("h"));
  EXPECT_EQ(crew_.room().deliveries, kCouriersPerHost) << "of other hosts";
}

TEST_F(CourierCrewUnit, AllCouriersTogetherHaveABound) {
  for (int host = 0; host < 8; ++host) {
    for (int i = 0; i < 8; ++i) {
      ASSERT_GT(crew_.room().deliveries, 0U);
      crew_.give(to("h" + std::to_string(host), i));
    }
  }
  EXPECT_EQ(crew_.room().deliveries, 0U);
  EXPECT_THAT(crew_.room().busyHosts, SizeIs(8));
  ASSERT_TRUE(begins(kCouriers)) << "only " << work_.begun().size() << " of 64 run at once";
  work_.letEnd("h3.5");
  ASSERT_TRUE(holdsSoon([this] { return freed_ == 1; }));
  EXPECT_EQ(crew_.room().deliveries, 1U);
}

TEST_F(CourierCrewUnit, APlaceIsFreeBeforeThatIsTold) {
  std::promise<std::size_t> seen;
  CourierCrew* crew = nullptr;
  CourierCrew other([](const Delivery&) {}, [&] { seen.set_value(crew->room().deliveries); });
  crew = &other;
  other.give(to("h", 1));
  auto room = seen.get_future();
  ASSERT_EQ(room.wait_for(test::kSoon), std::future_status::ready) << "nobody was told";
  EXPECT_EQ(room.get(), kCouriersPerHost);
}

TEST_F(CourierCrewUnit, AStopReturnsWhatWasNotBegunAndWaitsForTheRest) {
  for (int i = 0; i < 3; ++i) crew_.give(to("h", i));
  ASSERT_TRUE(begins(3));
  auto stopping = std::async(std::launch::async, [this] { return crew_.stop(); });
  ASSERT_TRUE(holdsSoon([this] { return crew_.room().deliveries == 0; })) << "the stop did not begin";
  crew_.give(to("h", 3));
  work_.letAllEnd();
  ASSERT_EQ(stopping.wait_for(test::kSoon), std::future_status::ready) << "the stop did not end";
  auto rest = stopping.get();
  for (Delivery& late : crew_.stop()) rest.push_back(std::move(late));
  ASSERT_THAT(rest, SizeIs(1));
  EXPECT_EQ(rest[0].id, "h.3");
  EXPECT_THAT(work_.begun(), SizeIs(3));
  EXPECT_EQ(freed_, 3);
}

TEST_F(CourierCrewUnit, AnUnusedCrewStopsTwice) {
  EXPECT_THAT(crew_.stop(), IsEmpty());
  EXPECT_THAT(crew_.stop(), IsEmpty());
  EXPECT_EQ(crew_.room().deliveries, 0U);
}

}  // namespace
}  // namespace jobq
