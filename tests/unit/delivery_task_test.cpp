// Tests of the outcome of one delivery, with an outbox that may fail (core/webhooks/delivery_task.h).
#include "core/webhooks/delivery_task.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <future>
#include <new>
#include <system_error>

#include "delivery_task_fixture.h"

namespace jobq {
namespace {

using test::holdsSoon;
using testing::Contains;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

class DeliveryTaskTest : public testing::Test, protected test::DeliveryTaskFixture {
 protected:
  std::optional<Instant> run(Delivery delivery) {
    DeliveryTask task(deps(), std::move(delivery), stop_.get_token());
    return task.begin(noListener_).value().retryAt;
  }
  std::future<std::optional<Instant>> start(Delivery delivery) {
    return std::async(std::launch::async, [this, delivery = std::move(delivery)] { return run(delivery); });
  }
  /// Returns a delivery after `tries` failed tries.
  static Delivery tried(std::uint32_t tries, const std::optional<std::string>& reason = "it failed") {
    Delivery delivery = deliveryTo("http://h/x");
    delivery.tries = tries;
    for (std::uint32_t i = 0; i < tries; ++i) delivery.attempts.push_back({{}, 500, Millis(1), reason, ""});
    return delivery;
  }

  /// The fake transport of this fixture needs threads.
  struct NoListener final : CallListener {
    void callEnded() noexcept override { ADD_FAILURE() << "a call needed no thread"; }
  };

  static constexpr std::uint32_t kTries = 3;
  static constexpr Millis kPause{10'000};
  NoListener noListener_;
  std::stop_source stop_;
};

TEST_F(DeliveryTaskTest, ASuccessfulCallIsRecordedAndSettled) {
  EXPECT_EQ(run(deliveryTo("http://h/x")), std::nullopt);
  EXPECT_THAT(outbox.calls(), ElementsAre("record a.1 200", "finish a.1 delivered"));
  const auto seen = net->seen();
  ASSERT_EQ(seen.size(), 1U);
  EXPECT_EQ(seen[0].call.url, "http://h/x");
  EXPECT_EQ(seen[0].call.timeout, kCallTimeout);
  EXPECT_EQ(seen[0].header("webhook-id"), "a.1");
  EXPECT_TRUE(seen[0].header("webhook-signature").starts_with("v1,"));
}

TEST_F(DeliveryTaskTest, TheSignatureHasTheTimeOfDay) {
  wall.ahead = Millis(3'600'000);
  EXPECT_EQ(run(deliveryTo("http://h/x")), std::nullopt);
  EXPECT_EQ(net->seen().at(0).header("webhook-timestamp"),
            std::to_string(toEpochMillis(storage.clock.now()) / 1'000 + 3'600));
}

TEST_F(DeliveryTaskTest, AFailedCallIsPutOffUntilTheReturnedMoment) {
  net->script("h", {FakeTransport::failing(500)});
  EXPECT_EQ(run(deliveryTo("http://h/x")), storage.clock.now() + kPause);
  EXPECT_THAT(outbox.calls(), ElementsAre("record a.1 500 the receiver answered 500", "reschedule a.1 10000"));
}

TEST_F(DeliveryTaskTest, TheEndpointDecidesAboutAttemptsAndPauses) {
  endpointSecrets.retries = {8, Millis(35'000), 3};
  Millis expected{35'000};
  for (std::uint32_t tries = 0; tries < 7; ++tries, expected *= 3) {
    net->script("h", {FakeTransport::failing(500)});
    EXPECT_EQ(run(tried(tries)), storage.clock.now() + expected) << tries;
  }
  net->script("h", {FakeTransport::failing(500)});
  EXPECT_EQ(run(tried(7)), std::nullopt);
  EXPECT_THAT(outbox.calls().back(), "finish a.1 abandoned");
}

TEST_F(DeliveryTaskTest, APauseHasABound) {
  EXPECT_EQ((WebhookBackoff{20, Millis(60'000), 10}).pauseAfter(19), kLongestWebhookPause);
  EXPECT_EQ((WebhookBackoff{20, kLongestWebhookPause, 1}).pauseAfter(2'000'000), kLongestWebhookPause);
}

TEST_F(DeliveryTaskTest, TheThirdFailureAbandonsTheDeliveryAndIsLoggedWithoutTheUrl) {
  net->script("h", {FakeTransport::failing(500)});
  Delivery delivery = tried(2);
  delivery.url = "http://user:secret@h/?token=hidden";
  EXPECT_EQ(run(std::move(delivery)), std::nullopt);
  EXPECT_THAT(outbox.calls(), ElementsAre(HasSubstr("record"), "finish a.1 abandoned"));
  EXPECT_THAT(outbox.numbers(), ElementsAre(3U));
  EXPECT_THAT(storage.log.lines(), Contains(HasSubstr("webhook.abandoned")));
  EXPECT_THAT(storage.log.text(), Not(HasSubstr("secret")));
  EXPECT_THAT(storage.log.text(), Not(HasSubstr("hidden")));
}

TEST_F(DeliveryTaskTest, AThrowingTransportIsAFailedCall) {
  net->script("h", {[]() -> DeliveryResult { throw Error("broken pipe"); }, []() -> DeliveryResult { throw 7; }});
  EXPECT_NE(run(deliveryTo("http://h/x")), std::nullopt);
  EXPECT_NE(run(deliveryTo("http://h/x")), std::nullopt);
  EXPECT_THAT(outbox.calls(), Contains("record a.1 0 broken pipe"));
  EXPECT_THAT(outbox.calls(), Contains(HasSubstr("record a.1 0 the transport threw an exception")));
}

TEST_F(DeliveryTaskTest, AFaultOfThisMachineIsNotATryAndIsOverInASecond) {
  for (const int error : {EMFILE, ENFILE, ENOMEM, ENOBUFS, EAGAIN}) {
    net->script("h",
                {[error]() -> DeliveryResult { throw std::system_error(error, std::generic_category(), "socket"); }});
    EXPECT_EQ(run(tried(kTries - 1)), storage.clock.now() + Millis(1'000)) << error;
  }
  net->script("h", {[]() -> DeliveryResult { throw std::bad_alloc(); }});
  EXPECT_EQ(run(tried(kTries - 1)), storage.clock.now() + Millis(1'000));
  EXPECT_THAT(outbox.calls(), Each("reschedule a.1 1000"));
  EXPECT_THAT(outbox.numbers(), IsEmpty());
  EXPECT_THAT(storage.log.text(), HasSubstr("no try is counted; this machine lacks something: socket: Too many open"));
}

TEST_F(DeliveryTaskTest, ASystemErrorOtherThanALackIsAFailedCall) {
  net->script("h", {[]() -> DeliveryResult { throw std::system_error(EPERM, std::generic_category(), "socket"); }});
  EXPECT_EQ(run(deliveryTo("http://h/x")), storage.clock.now() + kPause);
  EXPECT_THAT(outbox.calls(), Contains("record a.1 0 socket: Operation not permitted"));
}

TEST_F(DeliveryTaskTest, AFailureAlwaysHasAReason) {
  net->script("h", {[]() -> DeliveryResult { return DeliveryFailed{"", 0, ""}; }});
  EXPECT_NE(run(deliveryTo("http://h/x")), std::nullopt);
  EXPECT_THAT(outbox.calls(), Contains("record a.1 0 the transport gave no reason"));
}

TEST_F(DeliveryTaskTest, WithoutATransportThereIsASingleTry) {
  EXPECT_EQ(run(deliveryTo("ftp://h/x")), std::nullopt);
  EXPECT_THAT(outbox.calls(), ElementsAre(HasSubstr("record a.1 0 no transport"), "finish a.1 abandoned"));
}

TEST_F(DeliveryTaskTest, AKilobyteOfAnAnswerIsKept) {
  net->script("h", {[]() -> DeliveryResult {
                return DeliveryFailed{std::string(1'000, 'r'), 500, std::string(2'000, 'x')};
              }});
  (void)run(deliveryTo("http://h/x"));
  ASSERT_EQ(outbox.attempts().size(), 1U);
  EXPECT_EQ(outbox.attempts()[0].reply, std::string(kReplyBytes, 'x'));
  EXPECT_LE(outbox.attempts()[0].reason->size(), kReasonBytes + 3) << "the reason is cut and ends in three dots";
}

TEST_F(DeliveryTaskTest, TheTimeOfTheCallIsRecorded) {
  net->script("h", {[this]() -> DeliveryResult {
                storage.clock.advance(Millis(1'234));
                return Delivered{204, ""};
              }});
  (void)run(deliveryTo("http://h/x"));
  EXPECT_EQ(outbox.attempts().at(0).duration, Millis(1'234));
  EXPECT_EQ(outbox.attempts().at(0).status, 204);
}

/// Tells of the exception of the test instead of an answer.
class FailingTransport final : public WebhookTransport {
 public:
  explicit FailingTransport(std::exception_ptr thrown) : thrown_(std::move(thrown)) {}
  std::string_view schemes() const override { return "failing"; }
  DeliveryResult deliver(const WebhookCall&, std::stop_token) override { std::rethrow_exception(thrown_); }
  bool needsThreads = false;

 private:
  bool begin(const WebhookCall&, std::stop_token, DeliveryReceiver& receiver) override {
    if (!needsThreads) receiver.failed(thrown_);
    return !needsThreads;
  }

  const std::exception_ptr thrown_;
};

// An exception means the same, thrown by deliver() or told to failed().
TEST_F(DeliveryTaskTest, BothWaysOfATransportJudgeAnExceptionAlike) {
  struct ToldListener final : CallListener {
    void callEnded() noexcept override { ++ended; }
    int ended = 0;
  };
  const std::pair<std::exception_ptr, std::string> cases[] = {
      {std::make_exception_ptr(std::bad_alloc()), "reschedule a.1 1000"},
      {std::make_exception_ptr(std::system_error(EMFILE, std::generic_category(), "s")), "reschedule a.1 1000"},
      {std::make_exception_ptr(std::system_error(EPERM, std::generic_category(), "s")), "record a.1 0 s: Operation"},
      {std::make_exception_ptr(Error("broken pipe")), "record a.1 0 broken pipe"},
      {std::make_exception_ptr(7), "record a.1 0 the transport threw an exception"},
  };
  for (const auto& [thrown, step] : cases) {
    for (const bool needsThreads : {true, false}) {
      auto failing = std::make_unique<FailingTransport>(thrown);
      failing->needsThreads = needsThreads;
      NamedTransports all;
      all["failing"] = std::move(failing);
      const Transports failingOnes(all);
      test::ToldOutbox steps;
      DeliveryTask task({steps, failingOnes, secrets, storage.clock, storage.log, wall}, deliveryTo("failing://h/x"),
                        stop_.get_token());
      ToldListener listener;
      const bool isOver = task.begin(listener).has_value();
      EXPECT_EQ(isOver, needsThreads) << step;
      const std::optional<Instant> retryAt = isOver ? Instant() : task.conclude().retryAt;
      EXPECT_NE(retryAt, std::nullopt) << step;
      EXPECT_EQ(listener.ended, isOver ? 0 : 1);
      EXPECT_THAT(steps.calls().at(0), StartsWith(step)) << needsThreads;
    }
  }
}

// A process may die between the record of a call and the following step.
TEST_F(DeliveryTaskTest, ADecidedDeliveryEndsWithoutAFurtherCall) {
  EXPECT_EQ(run(tried(kTries)), std::nullopt);
  EXPECT_THAT(outbox.calls(), ElementsAre("finish a.1 abandoned"));
  Delivery delivered = tried(1);
  delivered.attempts.push_back({{}, 200, Millis(1), std::nullopt, "ok"});
  delivered.tries = 2;
  EXPECT_EQ(run(std::move(delivered)), std::nullopt);
  EXPECT_THAT(outbox.calls(), ElementsAre("finish a.1 abandoned", "finish a.1 delivered"));
  EXPECT_THAT(net->seen(), IsEmpty());
}

TEST_F(DeliveryTaskTest, AReplayIsCalledAgainDespiteTheRecord) {
  Delivery replayed = tried(kTries, std::nullopt);
  replayed.tries = 0;
  EXPECT_EQ(run(std::move(replayed)), std::nullopt);
  EXPECT_EQ(net->seen().size(), 1U);
  EXPECT_THAT(outbox.numbers(), ElementsAre(1U));
}

TEST_F(DeliveryTaskTest, ADeliveryForgottenMeanwhileIsLeftAlone) {
  outbox.isKnown = false;
  EXPECT_EQ(run(deliveryTo("http://h/x")), std::nullopt);
  EXPECT_THAT(outbox.calls(), ElementsAre("record a.1 200"));
}

TEST_F(DeliveryTaskTest, AFailingStorageIsAskedAgainAndTheCallIsNotRepeated) {
  std::atomic<int> failures = 0;
  outbox.before = [&failures](const std::string&) {
    if (failures < 3) {
      ++failures;
      throw StorageError("not now");
    }
  };
  auto running = start(deliveryTo("http://h/x"));
  for (int rest = 1; rest <= 3; ++rest) {
    storage.clock.awaitWaiter(Millis(1), Millis(2'000));
    EXPECT_EQ(failures, rest);
    storage.clock.advance(Millis(2'000));
  }
  ASSERT_EQ(running.wait_for(test::kSoon), std::future_status::ready) << "the task did not end";
  EXPECT_THAT(outbox.calls(), ElementsAre("record a.1 200", "finish a.1 delivered"));
  EXPECT_EQ(net->seen().size(), 1U);
}

TEST_F(DeliveryTaskTest, AForeignExceptionLeavesTheDeliveryToTheNextClaim) {
  outbox.before = [](const std::string&) { throw 7; };
  EXPECT_EQ(run(deliveryTo("http://h/x")), std::nullopt);
  EXPECT_THAT(storage.log.text(), HasSubstr("webhook.failed"));
  net->script("h", {[]() -> DeliveryResult { throw std::bad_alloc(); }});
  EXPECT_EQ(run(deliveryTo("http://h/x")), std::nullopt);
}

TEST_F(DeliveryTaskTest, ALeaseTooShortForACallLeavesTheDeliveryToOtherNodes) {
  DeliveryTask task(deps(), deliveryTo("http://h/x"), stop_.get_token());
  storage.clock.advance(kDeliveryLease - kCallTimeout + Millis(1));
  EXPECT_EQ(task.begin(noListener_).value().retryAt, std::nullopt);
  EXPECT_THAT(net->seen(), IsEmpty());
  EXPECT_THAT(outbox.calls(), IsEmpty());
}

TEST_F(DeliveryTaskTest, AnEndedLeaseLeavesTheDeliveryToOtherNodes) {
  outbox.before = [](const std::string&) { throw StorageError("never again"); };
  auto running = start(deliveryTo("http://h/x"));
  storage.clock.awaitWaiter(Millis(1), Millis(2'000));
  storage.clock.advance(kDeliveryLease);
  ASSERT_EQ(running.wait_for(test::kSoon), std::future_status::ready) << "the task did not end";
  EXPECT_EQ(running.get(), std::nullopt);
  EXPECT_THAT(outbox.calls(), IsEmpty());
}

TEST_F(DeliveryTaskTest, ACallCutOffByAStopIsNotATryAndIsDueAtOnce) {
  net->hang("h");
  auto running = start(deliveryTo("http://h/x"));
  ASSERT_TRUE(holdsSoon([this] { return net->running() == 1; })) << "the call did not begin";
  stop_.request_stop();
  ASSERT_EQ(running.wait_for(test::kSoon), std::future_status::ready) << "the task did not end";
  EXPECT_EQ(running.get(), std::nullopt);
  EXPECT_THAT(outbox.calls(), ElementsAre("reschedule a.1 0"));
}

TEST_F(DeliveryTaskTest, AfterAStopTheStorageIsAskedOnceMore) {
  stop_.request_stop();
  int asked = 0;
  outbox.before = [&asked](const std::string&) {
    ++asked;
    throw StorageError("not now");
  };
  EXPECT_EQ(run(deliveryTo("http://h/x")), std::nullopt);
  EXPECT_EQ(asked, 1) << "a stop does not wait for a failing storage";
}

}  // namespace
}  // namespace jobq
