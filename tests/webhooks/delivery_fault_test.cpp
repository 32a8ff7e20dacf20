// Tests of webhook delivery with interruptions: the storage fails, the WebhookDispatcher stops, or the process dies.
#include "webhook_fixture.h"

namespace jobq {
namespace {

class DeliveryFaultTest : public DeliveryTest {
 protected:
  /// Delivers a webhook that succeeds at the second try, with a planned fault. Returns true if the fault occurred.
  bool deliverWithAFault() {
    const std::string name = "h" + std::to_string(++deliveries_);
    net_->script(name, {FakeTransport::failing(500)});
    owe(name, "http://" + name + "/");
    const std::size_t faults = plan_.failed().size();
    open();
    EXPECT_TRUE(inTime([&] { return isSettled(name); }));
    webhooks_->stop();
    plan_.heal();
    EXPECT_EQ(delivery(name).state, DeliveryState::delivered);
    EXPECT_EQ(delivery(name).attempts.size(), 2U);
    EXPECT_EQ(net_->seen(name).size(), 2U);
    return plan_.failed().size() > faults;
  }

  int deliveries_ = 0;
};

// The faults are planned by number of the call, as long as deliveries have so many calls. Threads decide about empty
// passes in between, and each operation therefore fails once by name, too.
TEST_P(DeliveryFaultTest, ASingleFailureOfTheStorageLosesNothing) {
  bool failed = true;
  for (std::uint64_t k = 1; failed; ++k) {
    ASSERT_LT(k, 100U);
    plan_.failCall(plan_.calls() + k);
    failed = deliverWithAFault();
    ASSERT_FALSE(HasFailure()) << "when call " << k << " fails";
  }
  for (const char* operation : {"outbox.dueHosts", "outbox.claimDue", "records.find", "outbox.recordAttempt",
                                "outbox.reschedule", "outbox.finishDelivery"}) {
    plan_.failNext(operation);
    EXPECT_TRUE(deliverWithAFault()) << operation;
  }
}

TEST_P(DeliveryFaultTest, AnyExceptionOfAStorageIsSurvived) {
  for (const char* operation :
       {"outbox.dueHosts", "outbox.claimDue", "outbox.recordAttempt", "outbox.finishDelivery"}) {
    const JobId id = operation + std::string("-job");
    owe(id, "http://h/");
    plan_.exhaustNext(operation);
    open();
    ASSERT_TRUE(inTime([&] { return isSettled(id); })) << operation;
    EXPECT_EQ(delivery(id).attempts.size(), 1U) << operation;
  }
}

TEST_P(DeliveryFaultTest, AFailedStoreOfTheEndDoesNotRepeatTheCall) {
  plan_.failOperation("outbox.finishDelivery", clock_.now() + Millis(200'000));
  open();
  owe("a", "http://h/");
  webhooks_->notify();
  ASSERT_TRUE(inTime([&] { return isSettled("a"); }));
  EXPECT_GE(clock_.now() - delivery("a").attempts.at(0).at, Millis(190'000)) << "the lease has ended more than once";
  EXPECT_EQ(delivery("a").state, DeliveryState::delivered);
  EXPECT_EQ(net_->seen().size(), 1U);
}

// The repeated report of the call is no second try, and the delivery goes on.
TEST_P(DeliveryFaultTest, ATryWithoutAnAnswerIsRecordedOnce) {
  plan_.failCall("outbox.recordAttempt", 1, fault::CallFault::done);
  open();
  owe("a", "http://h/");
  webhooks_->notify();
  ASSERT_TRUE(inTime([&] { return isSettled("a"); }));
  EXPECT_EQ(plan_.failed(), std::vector<std::string>{"outbox.recordAttempt"});
  EXPECT_EQ(delivery("a").state, DeliveryState::delivered);
  EXPECT_EQ(delivery("a").attempts.size(), 1U);
  EXPECT_EQ(net_->seen().size(), 1U);
}

// The repeated report is no late claim: the administrator reads that the webhook was given up.
TEST_P(DeliveryFaultTest, AnEndWithoutAnAnswerIsReportedAgain) {
  owe("a", "http://h/");
  for (int i = 0; i < 3; ++i)
    testkit::recordNext(inner_->outbox(), testkit::lastClaim(inner_->outbox(), "a.0"), {{}, 500, Millis(1), "no", ""});
  plan_.failCall("outbox.finishDelivery", 1, fault::CallFault::done);
  open();
  const auto isLogged = [&] { return log_.text().find("webhook.abandoned: the webhook of a ") != std::string::npos; };
  ASSERT_TRUE(inTime(isLogged)) << log_.text();
  EXPECT_EQ(plan_.failed(), std::vector<std::string>{"outbox.finishDelivery"});
  EXPECT_EQ(delivery("a").state, DeliveryState::abandoned);
  EXPECT_TRUE(net_->seen().empty());
}

TEST_P(DeliveryFaultTest, ADeliveryWithoutTriesLeftIsAbandonedWithoutACall) {
  owe("a", "http://h/");
  for (int i = 0; i < 3; ++i)
    testkit::recordNext(inner_->outbox(), testkit::lastClaim(inner_->outbox(), "a.0"), {{}, 500, Millis(1), "no", ""});
  open();
  ASSERT_TRUE(until([&] { return isSettled("a"); }));
  EXPECT_EQ(delivery("a").state, DeliveryState::abandoned);
  EXPECT_TRUE(net_->seen().empty());
}

TEST_P(DeliveryFaultTest, AnUnavailableSecretIsNotAFailedAttempt) {
  plan_.failOperation("records.find", clock_.now() + Millis(5'000));
  open();
  owe("a", "http://h/");
  webhooks_->notify();
  ASSERT_TRUE(inTime([&] { return isSettled("a"); }));
  EXPECT_EQ(delivery("a").state, DeliveryState::delivered);
  EXPECT_EQ(delivery("a").attempts.size(), 1U);
}

TEST_P(DeliveryFaultTest, AStopDuringADeliveryReturnsTheDelivery) {
  net_->hang("h");
  open();
  owe("a", "http://h/");
  webhooks_->notify();
  ASSERT_TRUE(until([&] { return net_->running() == 1; }));
  webhooks_->stop();
  webhooks_->notify();
  EXPECT_EQ(delivery("a").state, DeliveryState::owed);
  EXPECT_EQ(delivery("a").dueAt, clock_.now()) << "the delivery is due at once";
  EXPECT_EQ(delivery("a").tries, 0U) << "a stopped try does not count";
  EXPECT_TRUE(delivery("a").attempts.empty());
  net_->letGo("h");
  open();
  ASSERT_TRUE(until([&] { return isSettled("a"); }));
  const auto seen = net_->seen();
  ASSERT_EQ(seen.size(), 2U);
  EXPECT_EQ(seen[0].header("webhook-id"), seen[1].header("webhook-id"));
}

TEST_P(DeliveryFaultTest, AStopDoesNotWaitForAFailingStorage) {
  for (const char* operation :
       {"outbox.recordAttempt", "outbox.finishDelivery", "records.find", "outbox.dueHosts", "outbox.claimDue"}) {
    plan_.failOperation(operation);
    owe(operation + std::string("-job"), "http://h/");
    open();
    ASSERT_TRUE(until([&] { return !plan_.failed().empty() && plan_.failed().back() == operation; })) << operation;
    webhooks_->stop();
    plan_.heal();
    EXPECT_FALSE(isSettled(operation + std::string("-job")));
    clock_.advance(kDeliveryLease);
    open();
    ASSERT_TRUE(until([&] { return isSettled(operation + std::string("-job")); })) << operation;
  }
}

TEST_P(DeliveryFaultTest, AStartFindsTheOwedDeliveries) {
  owe("a", "http://h/");
  owe("b", "http://h/");
  open();
  EXPECT_TRUE(until([&] { return isSettled("a") && isSettled("b"); })) << "the deliveries need no notification";
}

TEST_P(DeliveryFaultTest, ClaimedDeliveriesOfADeadProcessAreDueAfterTheirLease) {
  owe("a", "http://h/");
  ASSERT_EQ(testkit::claimAllDue(inner_->outbox(), kDeliveryLease).size(), 1U);  // the process died after the claim
  open();
  awaitRest();
  clock_.advance(kDeliveryLease - Millis(1));
  awaitRest();
  EXPECT_TRUE(net_->seen().empty());
  ASSERT_TRUE(inTime([&] { return isSettled("a"); }));
  EXPECT_EQ(net_->seen().size(), 1U);
}

TEST_P(DeliveryFaultTest, StartAndStopAreIdempotent) {
  open();
  webhooks_->start();
  webhooks_->stop();
  webhooks_->stop();
  webhooks_->start();
  owe("a", "http://h/");
  webhooks_->notify();
  EXPECT_FALSE(isSettled("a"));
}

INSTANTIATE_TEST_SUITE_P(Over, DeliveryFaultTest, testing::Values("memory", "sqlite"), nameOfStorage);

}  // namespace
}  // namespace jobq
