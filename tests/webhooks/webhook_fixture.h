// Webhook delivery in the test's process: a WebhookDispatcher over a real storage that may fail, on a clock moved by
// hand, with receivers controlled by the test.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "core/base/clock.h"
#include "core/base/secret_box.h"
#include "core/webhooks/curl_receiver_names.h"
#include "core/webhooks/delivery_task.h"
#include "core/webhooks/dispatcher.h"
#include "core/webhooks/transports.h"
#include "core/webhooks/webhook_secrets.h"
#include "fake_transport.h"
#include "jobq/job.h"
#include "jobq/log.h"
#include "jobq/mutex.h"
#include "jobq/outbox_store.h"
#include "jobq/plugin.h"
#include "jobq/queue_policy.h"
#include "jobq/storage.h"
#include "jobq/time.h"
#include "testkit/forwarding_storage.h"
#include "testkit/loaded_plugin.h"
#include "testkit/manual_clock.h"
#include "testkit/outbox_access.h"
#include "testkit/recording_log.h"
#include "testkit/temporary_folder.h"
#include "testkit/wait_for.h"
#include "tests/fault/faulty_storage.h"
#include "tests/support/fakes.h"

namespace jobq {

/// Counts claims and reports: a test can ask whether the WebhookDispatcher has no work left for now.
class WatchedOutbox final : public testkit::ForwardingOutbox {
 public:
  explicit WatchedOutbox(OutboxStore& inner) : ForwardingOutbox(inner) {}

  /// Returns true if every claimed delivery was settled or put off, and a later pass found no due delivery.
  bool isQuiet() const {
    Lock lock(mutex_);
    return open_ == 0 && looked_;
  }

  /// Returns how often the dispatcher has asked for due hosts.
  std::size_t looks() const {
    Lock lock(mutex_);
    return looks_;
  }

  /// Returns the greatest number of places of a claim.
  std::size_t mostAtOnce() const {
    Lock lock(mutex_);
    return mostAtOnce_;
  }

  DueHosts dueHosts(std::string_view after, std::size_t max) override {
    DueHosts page = inner_.dueHosts(after, max);
    Lock lock(mutex_);
    ++looks_;
    looked_ = looked_ || page.hosts.empty();
    return page;
  }
  std::vector<Delivery> claimDue(std::span<const HostPlaces> hosts, Millis lease) override {
    step("before claimDue");
    std::size_t places = 0;
    for (const HostPlaces& host : hosts) places += host.places;
    auto claimed = inner_.claimDue(hosts, lease);
    step("after claimDue");
    Lock lock(mutex_);
    open_ += static_cast<int>(claimed.size());
    mostAtOnce_ = std::max(mostAtOnce_, places);
    looked_ = looked_ || claimed.empty();
    return claimed;
  }
  bool finishDelivery(const DeliveryClaim& claim, DeliveryState state) override {
    step("before finishDelivery");
    const bool done = inner_.finishDelivery(claim, state);
    step("after finishDelivery");
    return conclude(done);
  }
  bool reschedule(const DeliveryClaim& claim, Millis delay) override {
    step("before reschedule");
    const bool done = inner_.reschedule(claim, delay);
    step("after reschedule");
    return conclude(done);
  }
  bool recordAttempt(const DeliveryClaim& claim, std::uint32_t number, DeliveryAttempt attempt) override {
    step("before recordAttempt");
    const bool isLast = inner_.recordAttempt(claim, number, std::move(attempt));
    step("after recordAttempt");
    return isLast ? isLast : conclude(isLast);  // a late report is the last report of its call
  }
  /// Called between the steps of a delivery, on the thread of the step. Set before the WebhookDispatcher starts.
  std::function<void(std::string_view)> step = [](std::string_view) {};

 private:
  bool conclude(bool done) {
    Lock lock(mutex_);
    --open_;
    looked_ = false;
    return done;
  }

  mutable Mutex mutex_;
  int open_ JOBQ_GUARDED_BY(mutex_) = 0;
  bool looked_ JOBQ_GUARDED_BY(mutex_) = false;
  std::size_t looks_ JOBQ_GUARDED_BY(mutex_) = 0;
  std::size_t mostAtOnce_ JOBQ_GUARDED_BY(mutex_) = 0;
};

/// A test's fixture; the parameter is the storage's name.
class DeliveryTest : public testing::TestWithParam<const char*> {
 protected:
  DeliveryTest() {
    secretBox_ = std::make_unique<SecretBox>(dir_ / "secret.key");
    // Each storage has its way of calls, so both ways are tested.
    const bool needsThreads = std::string(GetParam()) == "sqlite";
    auto transport = std::make_unique<FakeTransport>(clock_, "http https", needsThreads);
    net_ = transport.get();
    named_["fake"] = std::move(transport);
    transports_ = std::make_unique<Transports>(named_);
    openStorage();
  }
  ~DeliveryTest() override {
    webhooks_.reset();
    outbox_.reset();
    storage_.reset();
  }

  void openStorage() {
    const testkit::MapConfig config;
    auto inner = testkit::loadPlugin<Storage>(std::string(JOBQ_PLUGIN_DIR "/libjobq_storage_") + GetParam() + ".so",
                                              GetParam(), PluginEnv{config, clock_, silent_, dir_, false, {}, &names_});
    inner_ = inner.get();
    storage_ = std::make_unique<fault::FaultyStorage>(std::move(inner), plan_);
  }
  void open() {
    webhooks_.reset();
    outbox_ = std::make_unique<WatchedOutbox>(storage_->outbox());
    outbox_->step = step_;
    secrets_ = std::make_unique<WebhookSecrets>(serverKey_, endpointSecrets_, storage_->records(), *secretBox_);
    webhooks_ =
        std::make_unique<WebhookDispatcher>(DeliveryTask::Deps{*outbox_, *transports_, *secrets_, clock_, log_, wall_});
    webhooks_->start();
  }

  /// Stores an ended job with an owed call to `url`, without the planned faults and without a notification.
  void owe(const JobId& id, const std::string& url, const EndpointId& endpoint = "ep") {
    JobSpec job;
    job.id = id;
    job.endpoint = endpoint;
    job.input = "{\"n\":1.0}";
    job.webhook = url;
    (void)inner_->jobs().insert(std::move(job), policy_);
    (void)inner_->jobs().cancel({endpoint, id});
  }
  /// Stores `count` such jobs with 16 threads, to let the jobs share commits.
  void oweMany(const std::string& prefix, int count, const std::string& url) {
    constexpr int kThreads = 16;
    std::vector<std::thread> threads;
    for (int i = 0; i < kThreads; ++i) {
      threads.emplace_back([&, i] {
        for (int n = i; n < count; n += kThreads) owe(prefix + std::to_string(n), url);
      });
    }
    testkit::joinAll("the threads that owe webhooks", threads);
  }

  Delivery delivery(const JobId& job) const {
    const auto listed = inner_->outbox().list("", job, 9);
    return listed.at(0);
  }
  bool isSettled(const JobId& job) const { return delivery(job).state != DeliveryState::owed; }

  /// Polls while the clock stands still. Returns false if the condition did not come true before the deadline.
  template <class Predicate>
  static bool until(Predicate&& condition) {
    return testkit::holdsInTime(condition, [](int) {});
  }
  /// Polls, and moves the clock by half a second at every second check, except while the storage is at work. Returns
  /// false if the condition did not come true before the deadline.
  template <class Predicate>
  bool inTime(Predicate&& condition) {
    return testkit::holdsInTime(condition, [this](int look) {
      if (look % 2 == 0 && plan_.isQuiet()) clock_.advance(Millis(500));
    });
  }
  /// Blocks until the scheduler waits for the next second. A test whose clock moves calls this first: a clock that
  /// moves during a pass makes the pass a long one, and a pause of up to ten seconds follows. No notification may be on
  /// its way.
  void awaitRest() { clock_.awaitWaiter(Millis(1'000), Millis(1'000)); }
  bool quiet() {
    return until([this] { return outbox_->isQuiet(); });
  }

  class OneLine final : public QueuePolicy {
   public:
    std::string group(const JobSpec&) const override { return {}; }
    std::int64_t rank(const JobSpec&, Instant, const GroupState&) const override { return 0; }
  };

  testkit::ManualClock clock_;
  const CurlReceiverNames names_;
  std::function<void(std::string_view)> step_ = [](std::string_view) {};
  const ClockAsWallClock wall_{clock_};
  testkit::SilentLog silent_;
  testkit::RecordingLog log_;
  OneLine policy_;
  fault::FaultPlan plan_{clock_};
  const testkit::TemporaryFolder dir_;
  std::unique_ptr<SecretBox> secretBox_;
  NamedTransports named_;
  FakeTransport* net_ = nullptr;
  std::unique_ptr<Transports> transports_;
  std::string serverKey_;
  test::SetSecrets endpointSecrets_;
  Storage* inner_ = nullptr;  ///< the storage without the planned faults
  std::unique_ptr<Storage> storage_;
  std::unique_ptr<WatchedOutbox> outbox_;
  std::unique_ptr<WebhookSecrets> secrets_;
  std::unique_ptr<WebhookDispatcher> webhooks_;
};

inline std::string nameOfStorage(const testing::TestParamInfo<const char*>& info) { return info.param; }

}  // namespace jobq
