// Tests of the delivery threads, and of the moment when a place is free again (core/webhooks/delivery_pool.h).
#include "core/webhooks/delivery_pool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <memory>
#include <optional>
#include <set>
#include <thread>

#include "testkit/wait_for.h"
#include "tests/support/fakes.h"
#include "unit_storage.h"

namespace jobq {
namespace {

using test::holdsSoon;
using testing::IsEmpty;
using testing::SizeIs;

/// Work that lasts until the test ends the work. Any thread may call the methods.
class HeldWork {
 public:
  CallEnd operator()(const Delivery& delivery) {
    Lock lock(mutex_);
    begun_.push_back(delivery.id);
    changed_.notifyAll();
    for (testkit::WaitDeadline wait("the permission to end"); !open_ && !let_.contains(delivery.id);) {
      wait.on(changed_, mutex_);
    }
    return CallEnd::answered;
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

class DeliveryPoolUnit : public testing::Test {
 protected:
  ~DeliveryPoolUnit() override { work_.letAllEnd(); }

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
  test::CallingRunner runner_{[this](const Delivery& delivery) { return work_(delivery); }, [this] { ++freed_; }};
  DeliveryPool pool_{runner_};
};

TEST_F(DeliveryPoolUnit, ADeliveryOccupiesAPlaceOfTheHost) {
  EXPECT_THAT(pool_.placesFor({"h", "i"}), SizeIs(2));
  pool_.start(to("h", 1));
  const auto shared = pool_.placesFor({"h", "i"});
  ASSERT_THAT(shared, SizeIs(1));
  EXPECT_EQ(shared[0].host, "i");
}

TEST_F(DeliveryPoolUnit, AllThreadsWorkAtOnceAndAFinishedCallFreesAPlace) {
  for (int i = 0; i < static_cast<int>(kPlaces); ++i) {
    ASSERT_TRUE(pool_.hasPlaces());
    pool_.start(to("h" + std::to_string(i), 1));
  }
  EXPECT_FALSE(pool_.hasPlaces());
  ASSERT_TRUE(begins(kDeliveryThreads)) << "only " << work_.begun().size() << " run at once";
  work_.letEnd("h3.1");
  ASSERT_TRUE(holdsSoon([this] { return freed_ == 1; }));
  EXPECT_TRUE(pool_.hasPlaces());
  EXPECT_THAT(pool_.placesFor({"h3"}), SizeIs(1));
}

/// Calls that wait without a thread until ended by the test. Any thread may call the methods.
class WaitingCalls final : public DeliveryRunner {
 public:
  std::unique_ptr<DeliveryWork> workOn(Delivery) override { return std::make_unique<Work>(*this); }
  void placeFreed(std::optional<Instant>) noexcept override { ++freed_; }

  std::size_t waiting() const {
    Lock lock(mutex_);
    return listeners_.size();
  }
  void endOne() {
    CallListener* listener = nullptr;
    {
      Lock lock(mutex_);
      listener = listeners_.back();
      listeners_.pop_back();
    }
    listener->callEnded();
  }
  std::size_t threads() const {
    Lock lock(mutex_);
    return threads_.size();
  }
  std::size_t concluded() const { return concluded_; }
  std::size_t freed() const { return freed_; }

 private:
  class Work final : public DeliveryWork {
   public:
    explicit Work(WaitingCalls& calls) : calls_(calls) {}
    std::optional<DeliveryEnd> begin(CallListener& listener) noexcept override {
      Lock lock(calls_.mutex_);
      calls_.listeners_.push_back(&listener);
      calls_.threads_.insert(std::this_thread::get_id());
      return std::nullopt;
    }
    DeliveryEnd conclude() noexcept override {
      ++calls_.concluded_;
      return {CallEnd::answered, {}};
    }

   private:
    WaitingCalls& calls_;
  };

  mutable Mutex mutex_;
  std::vector<CallListener*> listeners_ JOBQ_GUARDED_BY(mutex_);
  std::set<std::thread::id> threads_ JOBQ_GUARDED_BY(mutex_);
  std::atomic<std::size_t> concluded_ = 0;
  std::atomic<std::size_t> freed_ = 0;
};

TEST_F(DeliveryPoolUnit, CallsWithoutAThreadFillAllPlaces) {
  WaitingCalls calls;
  DeliveryPool pool(calls);
  for (int i = 0; i < static_cast<int>(kPlaces); ++i) pool.start(to("h" + std::to_string(i), 1));
  ASSERT_TRUE(holdsSoon([&] { return calls.waiting() == kPlaces; })) << calls.waiting();
  EXPECT_FALSE(pool.hasPlaces());
  EXPECT_LE(calls.threads(), kDeliveryThreads);
  calls.endOne();
  ASSERT_TRUE(holdsSoon([&] { return calls.freed() == 1; }));
  EXPECT_TRUE(pool.hasPlaces());
  while (calls.waiting() > 0) calls.endOne();
  ASSERT_TRUE(holdsSoon([&] { return calls.freed() == kPlaces; }));
  EXPECT_EQ(calls.concluded(), kPlaces);
}

/// Calls that have ended when begin() returns.
class InstantCalls final : public DeliveryRunner {
 public:
  std::unique_ptr<DeliveryWork> workOn(Delivery) override { return std::make_unique<Work>(); }
  void placeFreed(std::optional<Instant>) noexcept override { ++freed_; }
  std::size_t freed() const { return freed_; }

 private:
  class Work final : public DeliveryWork {
   public:
    std::optional<DeliveryEnd> begin(CallListener& listener) noexcept override {
      listener.callEnded();
      return std::nullopt;
    }
    DeliveryEnd conclude() noexcept override { return {CallEnd::answered, {}}; }
  };

  std::atomic<std::size_t> freed_ = 0;
};

TEST_F(DeliveryPoolUnit, ACallMayEndBeforeBeginReturns) {
  InstantCalls calls;
  DeliveryPool pool(calls);
  for (int i = 0; i < 200; ++i) pool.start(to("h" + std::to_string(i), 1));
  EXPECT_TRUE(holdsSoon([&] { return calls.freed() == 200; })) << calls.freed();
}

TEST_F(DeliveryPoolUnit, AStopWaitsForAndConcludesCallsUnderWay) {
  WaitingCalls calls;
  DeliveryPool pool(calls);
  pool.start(to("h", 1));
  pool.start(to("h", 2));
  ASSERT_TRUE(holdsSoon([&] { return calls.waiting() == 2; }));
  auto stopping = std::async(std::launch::async, [&] { return pool.stop(); });
  ASSERT_TRUE(holdsSoon([&] { return !pool.hasPlaces(); })) << "the stop did not begin";
  calls.endOne();
  ASSERT_TRUE(holdsSoon([&] { return calls.concluded() == 1; }));
  calls.endOne();
  EXPECT_THAT(testkit::resultOf("the stop of the pool", stopping), IsEmpty());
  EXPECT_EQ(calls.concluded(), 2U);
}

TEST_F(DeliveryPoolUnit, APlaceIsFreeBeforeTheNotification) {
  std::promise<std::size_t> seen;
  DeliveryPool* workerPool = nullptr;
  test::CallingRunner runner([](const Delivery&) { return CallEnd::answered; },
                             [&] { seen.set_value(workerPool->placesFor({"h"}).at(0).places); });
  DeliveryPool other(runner);
  workerPool = &other;
  other.start(to("h", 1));
  auto places = seen.get_future();
  ASSERT_EQ(places.wait_for(test::kSoon), std::future_status::ready) << "the free place was not announced";
  EXPECT_EQ(places.get(), 2U) << "the answer of the host has counted";
}

TEST_F(DeliveryPoolUnit, AStopReturnsDeliveriesNotBegunAndWaitsForTheRest) {
  for (int i = 0; i < 3; ++i) pool_.start(to("h", i));
  ASSERT_TRUE(begins(3));
  auto stopping = std::async(std::launch::async, [this] { return pool_.stop(); });
  ASSERT_TRUE(holdsSoon([this] { return !pool_.hasPlaces(); })) << "the stop did not begin";
  pool_.start(to("h", 3));
  work_.letAllEnd();
  auto rest = testkit::resultOf("the stop of the pool", stopping);
  for (DeliveryClaim& late : pool_.stop()) rest.push_back(std::move(late));
  ASSERT_THAT(rest, SizeIs(1));
  EXPECT_EQ(rest[0].id, "h.3");
  EXPECT_THAT(work_.begun(), SizeIs(3));
  EXPECT_EQ(freed_, 3);
}

TEST_F(DeliveryPoolUnit, AnUnusedPoolStopsTwice) {
  EXPECT_THAT(pool_.stop(), IsEmpty());
  EXPECT_THAT(pool_.stop(), IsEmpty());
  EXPECT_FALSE(pool_.hasPlaces());
  EXPECT_THAT(pool_.placesFor({"h"}), IsEmpty());
}

}  // namespace
}  // namespace jobq
