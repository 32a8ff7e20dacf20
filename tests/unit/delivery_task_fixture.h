// Fixture for one delivery: an outbox that records calls, and a transport with answers chosen by the test.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/clock.h"
#include "core/base/secret_box.h"
#include "core/webhooks/curl_receiver_names.h"
#include "core/webhooks/delivery_task.h"
#include "core/webhooks/dispatcher.h"
#include "core/webhooks/transports.h"
#include "core/webhooks/webhook_secrets.h"
#include "jobq/job.h"
#include "jobq/mutex.h"
#include "jobq/outbox_store.h"
#include "jobq/time.h"
#include "testkit/temporary_folder.h"
#include "tests/support/fakes.h"
#include "tests/webhooks/fake_transport.h"
#include "unit_storage.h"

namespace jobq::test {

/// A time of day that differs from the clock by an amount set by the test.
struct SetWall final : WallClock {
  explicit SetWall(const Clock& clock) : clock_(clock) {}
  Instant now() const override { return clock_.now() + ahead; }
  Millis ahead{0};
  const Clock& clock_;
};

/// Returns the deliveries added by a test, and records each call as text. Any thread may call the methods.
class ToldOutbox final : public OutboxStore {
 public:
  DueHosts dueHosts(std::string_view, std::size_t) override {
    note("pass");
    Lock lock(mutex_);
    std::set<std::string> hosts;
    for (const Delivery& delivery : due_) hosts.insert(delivery.host);
    return {{hosts.begin(), hosts.end()}, ""};
  }
  std::vector<Delivery> claimDue(std::span<const HostPlaces> hosts, Millis lease) override {
    EXPECT_EQ(lease, kDeliveryLease);
    note("claim");
    Lock lock(mutex_);
    std::vector<Delivery> claimed;
    for (HostPlaces host : hosts) {
      for (auto at = due_.begin(); at != due_.end();) {
        const bool takes = at->host == host.host && host.places > 0;
        if (takes) {
          --host.places;
          claimed.push_back(std::move(*at));
        }
        at = takes ? due_.erase(at) : std::next(at);
      }
    }
    return claimed;
  }
  bool finishDelivery(const DeliveryClaim& claim, DeliveryState state) override {
    note("finish " + claim.id + (state == DeliveryState::delivered ? " delivered" : " abandoned"));
    return true;
  }
  bool reschedule(const DeliveryClaim& claim, Millis delay) override {
    note("reschedule " + claim.id + " " + std::to_string(delay.count()));
    return true;
  }
  bool recordAttempt(const DeliveryClaim& claim, std::uint32_t number, DeliveryAttempt attempt) override {
    note("record " + claim.id + " " + std::to_string(attempt.status) + (attempt.reason ? " " + *attempt.reason : ""));
    Lock lock(mutex_);
    numbers_.push_back(number);
    attempts_.push_back(std::move(attempt));
    return isKnown;
  }
  std::vector<Delivery> list(std::string_view, std::string_view, std::size_t, std::optional<DeliveryState>) override {
    return {};
  }
  bool replay(std::string_view) override { return false; }
  OwedDeliveries owed(std::string_view) override { return {}; }
  AbandonResult abandonOwed(const OwedBounds&, std::size_t) override { return {}; }

  void owe(Delivery delivery) {
    Lock lock(mutex_);
    due_.push_back(std::move(delivery));
  }
  /// Returns the calls so far, without listings of hosts and claims.
  std::vector<std::string> calls() const {
    Lock lock(mutex_);
    return calls_;
  }
  std::size_t passes() const {
    Lock lock(mutex_);
    return passes_;
  }
  /// Returns the numbers of the recorded tries.
  std::vector<std::uint32_t> numbers() const {
    Lock lock(mutex_);
    return numbers_;
  }
  std::vector<DeliveryAttempt> attempts() const {
    Lock lock(mutex_);
    return attempts_;
  }

  /// Called before each call; an exception of the function is the exception of the storage. Set before the other
  /// threads begin.
  std::function<void(const std::string& call)> before = [](const std::string&) {};
  bool isKnown = true;

 private:
  void note(const std::string& call) {
    before(call);
    Lock lock(mutex_);
    if (call == "pass") ++passes_;
    if (call != "pass" && call != "claim") calls_.push_back(call);
  }

  mutable Mutex mutex_;
  std::vector<Delivery> due_ JOBQ_GUARDED_BY(mutex_);
  std::vector<std::string> calls_ JOBQ_GUARDED_BY(mutex_);
  std::vector<std::uint32_t> numbers_ JOBQ_GUARDED_BY(mutex_);
  std::vector<DeliveryAttempt> attempts_ JOBQ_GUARDED_BY(mutex_);
  std::size_t passes_ JOBQ_GUARDED_BY(mutex_) = 0;
};

struct DeliveryTaskFixture {
  DeliveryTaskFixture() {
    auto fake = std::make_unique<FakeTransport>(storage.clock);
    net = fake.get();
    named["fake"] = std::move(fake);
    transports = std::make_unique<Transports>(named);
  }

  static Delivery deliveryTo(const std::string& url, const JobId& job = "a") {
    Delivery delivery;
    delivery.id = job + ".1";
    delivery.url = url;
    delivery.host = CurlReceiverNames().nameOf(url);
    delivery.input = "{}";
    delivery.job.id = job;
    delivery.job.endpoint = "ep";
    delivery.job.state = JobState::completed;
    delivery.job.output = "1";
    return delivery;
  }
  DeliveryTask::Deps deps() { return {outbox, *transports, secrets, storage.clock, storage.log, wall}; }

  UnitStorage storage;
  SetWall wall{storage.clock};
  const testkit::TemporaryFolder folder;
  const SecretBox box{folder / "secret.key"};
  SetSecrets endpointSecrets;
  WebhookSecrets secrets{"the key of the server", endpointSecrets, storage->records(), box};
  ToldOutbox outbox;
  NamedTransports named;
  FakeTransport* net = nullptr;
  std::unique_ptr<Transports> transports;
};

}  // namespace jobq::test
