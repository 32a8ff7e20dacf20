// Tests of submissions that wait for the storage without a thread (core/jobs/later_submission.h).
#include "core/jobs/later_submission.h"

#include <gtest/gtest.h>

#include <atomic>
#include <exception>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "core/base/outside_threads.h"
#include "core/endpoints/endpoint.h"
#include "core/jobs/queue_signal.h"
#include "jobq/error.h"
#include "jobq/job_store.h"
#include "jobq/storage.h"
#include "testkit/forwarding_storage.h"
#include "testkit/thrown_text.h"
#include "testkit/wait_for.h"
#include "tests/support/held_caller.h"
#include "unit_storage.h"

namespace jobq {
namespace {

/// Keeps the receivers of inserts until the test ends an insert.
class HeldJobs final : public testkit::ForwardingJobs {
 public:
  using ForwardingJobs::ForwardingJobs;

  void insertLater(JobSpec job, const QueuePolicy&, std::optional<Idempotency> idempotency,
                   std::unique_ptr<InsertReceiver> receiver) override {
    inserted.push_back(std::move(job));
    keys.push_back(std::move(idempotency));
    receivers.push_back(std::move(receiver));
  }

  std::vector<std::unique_ptr<InsertReceiver>> receivers;
  std::vector<JobSpec> inserted;
  std::vector<std::optional<Idempotency>> keys;
};

class HeldInserts final : public testkit::ForwardingStorage {
 public:
  using ForwardingStorage::ForwardingStorage;
  JobStore& jobs() override { return held; }
  Capabilities capabilities() const noexcept override { return {Capability::insertLater}; }

  HeldJobs held{inner_.jobs()};
};

class LaterSubmissionTest : public testing::Test {
 protected:
  LaterSubmissionTest() {
    auto endpoint = std::make_shared<Endpoint>();
    endpoint->spec.id = "ep";
    endpoint->policy = &memory_.policy;
    endpoint_ = std::move(endpoint);
    queueSignal_.clear("ep");
  }

  std::unique_ptr<LaterSubmission> submit(std::optional<Idempotency> idempotency = std::nullopt) {
    JobSpec job;
    job.id = "a";
    job.endpoint = "ep";
    const LaterSubmission::Deps deps{storage_, queueSignal_, underWay_};
    return std::make_unique<LaterSubmission>(deps, std::move(job), endpoint_, std::move(idempotency));
  }
  std::optional<InsertResult> poll(LaterSubmission& submission) { return submission.poll(caller_.call()); }
  void end(InsertResult result) { std::exchange(storage_.held.receivers.at(0), nullptr)->inserted(std::move(result)); }

  test::UnitStorage memory_;
  HeldInserts storage_{*memory_.real};
  QueueSignal queueSignal_{{"ep"}};
  OutsideThreads underWay_;
  test::HeldCaller caller_;
  EndpointPtr endpoint_;
};

TEST_F(LaterSubmissionTest, TheResultResumesTheCallOnce) {
  auto submission = submit(Idempotency{"k", "hash"});
  EXPECT_EQ(storage_.held.inserted.at(0).id, "a");
  EXPECT_EQ(storage_.held.keys.at(0)->key, "k");
  EXPECT_FALSE(poll(*submission));
  EXPECT_FALSE(caller_.isResumed());
  EXPECT_FALSE(queueSignal_.isSet("ep"));
  end(Inserted{});
  EXPECT_TRUE(caller_.isResumed());
  EXPECT_TRUE(queueSignal_.isSet("ep"));
  EXPECT_TRUE(std::holds_alternative<Inserted>(poll(*submission).value()));
}

TEST_F(LaterSubmissionTest, AResultBeforeThePollResumesNothing) {
  auto submission = submit();
  end(Duplicate{"first"});
  EXPECT_EQ(std::get<Duplicate>(poll(*submission).value()).id, "first");
  EXPECT_FALSE(caller_.isResumed());
  EXPECT_FALSE(queueSignal_.isSet("ep")) << "no job was inserted";
}

TEST_F(LaterSubmissionTest, AResultBeforeThePollNotifiesTheDispatcher) {
  auto submission = submit();
  end(Inserted{});
  EXPECT_TRUE(std::holds_alternative<Inserted>(poll(*submission).value()));
  EXPECT_TRUE(queueSignal_.isSet("ep"));
  (void)queueSignal_.consume();
  queueSignal_.flush();
  EXPECT_TRUE(queueSignal_.consume());
}

TEST_F(LaterSubmissionTest, AnErrorReachesTheCall) {
  auto submission = submit();
  EXPECT_FALSE(poll(*submission));
  storage_.held.receivers.at(0)->failed(std::make_exception_ptr(StorageError("the disk is full")));
  EXPECT_TRUE(caller_.isResumed());
  EXPECT_FALSE(queueSignal_.isSet("ep"));
  EXPECT_EQ(testkit::thrownText<StorageError>([&] { return poll(*submission); }), "the disk is full");
}

TEST_F(LaterSubmissionTest, AJobWithoutACallWakesTheDispatcher) {
  auto submission = submit();
  EXPECT_FALSE(poll(*submission));
  (void)queueSignal_.consume();
  submission.reset();
  end(Inserted{});
  EXPECT_FALSE(caller_.isResumed());
  EXPECT_TRUE(queueSignal_.consume());
}

TEST_F(LaterSubmissionTest, AServerWaitsForInsertsAtTheEnd) {
  auto submissions = std::make_unique<LaterSubmissions>(storage_, queueSignal_);
  EXPECT_TRUE(submissions->arePossible());
  (void)submissions->submit({}, endpoint_, std::nullopt);
  std::atomic<bool> isClosing = false;
  std::atomic<bool> hasEnded = false;
  auto closing = std::async(std::launch::async, [&] {
    isClosing = true;
    submissions.reset();
    return hasEnded.load();
  });
  testkit::waitFor("the end of the server", [&] { return isClosing.load(); });
  std::this_thread::yield();
  hasEnded = true;
  end(Inserted{});
  EXPECT_TRUE(closing.get());
}

TEST_F(LaterSubmissionTest, TheEndpointLivesAsLongAsTheInsert) {
  const std::weak_ptr<const Endpoint> endpoint = endpoint_;
  auto submission = submit();
  submission.reset();
  endpoint_.reset();
  EXPECT_FALSE(endpoint.expired()) << "the storage may still ask the queue policy";
  end(Inserted{});
  EXPECT_TRUE(endpoint.expired());
}

TEST_F(LaterSubmissionTest, AStorageWithoutTheOperationIsNotAsked) {
  EXPECT_TRUE(LaterSubmissions(storage_, queueSignal_).arePossible());
  testkit::ForwardingStorage without(*memory_.real);
  EXPECT_FALSE(LaterSubmissions(without, queueSignal_).arePossible());
}

}  // namespace
}  // namespace jobq
