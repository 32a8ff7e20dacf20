// The conformance suite of webhook transports: tests for each rule of sdk/include/jobq/webhook_transport.h that holds
// for all transports. The test of a transport provides the transport with its receivers:
//
//     #include "testkit/transport_suite.h"
//     class MineRig final : public jobq::testkit::TransportRig { ... };
//     JOBQ_TRANSPORT_CONFORMANCE(Mine, testing::Values(jobq::testkit::TransportUnderTest{
//         "mine", [] { return std::make_unique<MineRig>(); }}));
//
// A single source file of a test program includes the header. Only limits on the duration of a call are in real time.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <functional>
#include <future>
#include <iterator>
#include <memory>
#include <optional>
#include <ostream>
#include <sstream>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "jobq/mutex.h"
#include "jobq/time.h"
#include "jobq/webhook_transport.h"
#include "testkit/pace.h"
#include "testkit/wait_for.h"

namespace jobq::testkit {

/// A transport with its receivers, new for each test.
class TransportRig {
 public:
  virtual ~TransportRig() = default;

  /// Returns the transport, owned by the rig.
  virtual WebhookTransport& transport() = 0;
  /// Returns the URL of a receiver that accepts every call.
  virtual std::string goodUrl() = 0;
  /// Returns the bodies of the calls at that receiver, in any order.
  virtual std::vector<std::string> taken() = 0;
  /// Returns the URL of a receiver that accepts a call and never answers, or an empty string for a transport without
  /// answers.
  virtual std::string silentUrl() { return {}; }
  /// Blocks until a call has reached the silent receiver.
  virtual void awaitSilence() {}
  /// Returns the URL of a receiver that answers with more than 1 KiB, or an empty string for a transport without
  /// answers.
  virtual std::string talkativeUrl() { return {}; }
};

/// A transport for the suite.
struct TransportUnderTest {
  std::string name;
  std::function<std::unique_ptr<TransportRig>()> make;
};

inline std::ostream& operator<<(std::ostream& out, const TransportUnderTest& under) { return out << under.name; }

/// The result of a call that waits without a thread.
class AwaitedResult final : public DeliveryReceiver {
 public:
  void ended(DeliveryResult result) noexcept override {
    Lock lock(mutex_);
    result_ = std::move(result);
    hasEnded_.notifyAll();  // under the lock: the waiting thread destroys the object
  }
  void failed(std::exception_ptr fault) noexcept override {
    Lock lock(mutex_);
    result_ = DeliveryFailed{};
    fault_ = std::move(fault);
    hasEnded_.notifyAll();
  }
  DeliveryResult await() {
    Lock lock(mutex_);
    for (WaitDeadline wait("the end of a call without a thread"); !result_;) wait.on(hasEnded_, mutex_);
    if (fault_) std::rethrow_exception(fault_);
    return std::move(*result_);
  }

 private:
  Mutex mutex_;
  Condition hasEnded_;
  std::optional<DeliveryResult> result_ JOBQ_GUARDED_BY(mutex_);
  std::exception_ptr fault_ JOBQ_GUARDED_BY(mutex_);
};

/// Fixture of the suite: a new rig for each test.
class TransportSuite : public testing::TestWithParam<TransportUnderTest> {
 protected:
  void SetUp() override { rig_ = GetParam().make(); }

  static WebhookCall callTo(std::string url, std::string body = "{}") {
    return WebhookCall{std::move(url), {{"webhook-id", "a.1"}, {"webhook-signature", "v1,c2VjcmV0"}}, std::move(body)};
  }
  /// Makes the call as the server does: without a thread, if the transport can.
  DeliveryResult deliver(const WebhookCall& call, std::stop_token stop = {}) {
    AwaitedResult result;
    if (rig_->transport().begin(call, stop, result)) return result.await();
    return rig_->transport().deliver(call, std::move(stop));
  }
  std::vector<std::string> schemes() {
    std::istringstream words{std::string(rig_->transport().schemes())};
    return {std::istream_iterator<std::string>(words), {}};
  }
  /// Returns URLs without a receiver, for each of the transport's schemes and for other schemes.
  std::vector<std::string> badUrls() {
    using namespace std::string_literals;
    std::vector<std::string> urls{"", ":", "nonsense", "//host/a", "gopher://127.0.0.1/", "data:,x", "%", "\n"};
    for (const std::string& scheme : schemes()) {
      for (const std::string& rest : {""s, ":"s, ":/"s, "://"s, ":// /"s, "://\0/"s, "://[::1"s, "://a b/"s, "://%/"s,
                                      "://hunter2:hunter2@:80/?hunter2"s, "://host:99999999/hunter2"s,
                                      ":///../../hunter2"s, "://h/\r\nx: y"s, ":hunter2"s}) {
        urls.push_back(scheme + rest);
      }
    }
    return urls;
  }

  static constexpr std::chrono::seconds kSoon{1};  ///< the contract requires 100 ms
  std::unique_ptr<TransportRig> rig_;
};

TEST_P(TransportSuite, NamesItsSchemesInLowerCase) {
  const std::vector<std::string> names = schemes();
  ASSERT_FALSE(names.empty());
  for (const std::string& name : names) {
    EXPECT_EQ(name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789+-."), name.npos) << name;
    EXPECT_EQ(std::count(names.begin(), names.end(), name), 1) << name;
  }
  const std::string url = rig_->goodUrl();
  EXPECT_EQ(std::count(names.begin(), names.end(), url.substr(0, url.find(':'))), 1) << url;
}

TEST_P(TransportSuite, DeliversTheBodyByteForByte) {
  const std::string body =
      R"({"id":"a","z":1.0,"a":-0,"n":1234567890123456789012345,"s":"\u00e4\/ü\ud83d\ude00","s":[ {} , 1e400 ]})";
  const DeliveryResult result = deliver(callTo(rig_->goodUrl(), body));
  ASSERT_TRUE(std::holds_alternative<Delivered>(result)) << std::get<DeliveryFailed>(result).reason;
  EXPECT_EQ(std::get<Delivered>(result).status / 100, 2);
  EXPECT_EQ(rig_->taken(), std::vector{body});
}

TEST_P(TransportSuite, DeliversALargeBody) {
  const std::string body = "{\"output\":\"" + std::string(20'000'000, 'x') + "\"}";
  const DeliveryResult result = deliver(callTo(rig_->goodUrl(), body));
  ASSERT_TRUE(std::holds_alternative<Delivered>(result)) << std::get<DeliveryFailed>(result).reason;
  ASSERT_EQ(rig_->taken().size(), 1U);
  EXPECT_TRUE(rig_->taken().front() == body);
}

TEST_P(TransportSuite, DeliversManyCallsAtOnceAndEachOnce) {
  constexpr int kThreads = 64;
  constexpr int kCalls = 4;
  const std::string url = rig_->goodUrl();
  std::vector<std::string> sent;
  std::vector<std::future<std::vector<std::string>>> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.push_back(std::async(std::launch::async, [this, thread, &url] {
      std::vector<std::string> bodies;
      for (int call = 0; call < kCalls; ++call) {
        bodies.push_back("{\"n\":[" + std::to_string(thread) + "," + std::to_string(call) + "]}");
        const DeliveryResult result = deliver(callTo(url, bodies.back()));
        if (const auto* failed = std::get_if<DeliveryFailed>(&result)) ADD_FAILURE() << failed->reason;
      }
      return bodies;
    }));
  }
  for (auto& thread : threads) {
    for (std::string& body : resultOf("a thread of deliveries", thread)) sent.push_back(std::move(body));
  }
  std::vector<std::string> taken = rig_->taken();
  std::sort(sent.begin(), sent.end());
  std::sort(taken.begin(), taken.end());
  EXPECT_EQ(taken, sent);
}

TEST_P(TransportSuite, ABadUrlIsAFailureWithAReason) {
  for (const std::string& url : badUrls()) {
    const DeliveryResult result = deliver(callTo(url));
    ASSERT_TRUE(std::holds_alternative<DeliveryFailed>(result)) << url;
    const auto& failed = std::get<DeliveryFailed>(result);
    EXPECT_FALSE(failed.reason.empty()) << url;
    EXPECT_EQ(failed.status, 0) << url;
    EXPECT_TRUE(failed.reply.empty()) << url;
  }
  EXPECT_TRUE(rig_->taken().empty());
}

TEST_P(TransportSuite, AReasonIsOneLineAndShowsNoSecret) {
  for (const std::string& url : badUrls()) {
    WebhookCall call = callTo(url);
    call.headers.emplace_back("authorization", "Bearer hunter2");
    const DeliveryResult result = deliver(call);
    ASSERT_TRUE(std::holds_alternative<DeliveryFailed>(result)) << url;
    const std::string& reason = std::get<DeliveryFailed>(result).reason;
    EXPECT_EQ(reason.find("hunter2"), reason.npos) << reason;
    EXPECT_EQ(reason.find('\n'), reason.npos) << reason;
  }
}

TEST_P(TransportSuite, KeepsAtMost1KiBOfTheReply) {
  const std::string url = rig_->talkativeUrl();
  if (url.empty()) GTEST_SKIP() << "receivers of this transport do not reply";
  const DeliveryResult result = deliver(callTo(url));
  ASSERT_TRUE(std::holds_alternative<Delivered>(result)) << std::get<DeliveryFailed>(result).reason;
  EXPECT_EQ(std::get<Delivered>(result).reply.size(), 1024U);
}

TEST_P(TransportSuite, AnEarlierStopPreventsTheCall) {
  std::stop_source stop;
  stop.request_stop();
  const PaceWatch watch;
  EXPECT_TRUE(std::holds_alternative<DeliveryFailed>(deliver(callTo(rig_->goodUrl()), stop.get_token())));
  watch.end("a delivery that was stopped before", kSoon);
  EXPECT_TRUE(rig_->taken().empty());
}

TEST_P(TransportSuite, AStopEndsAnUnansweredCall) {
  const std::string url = rig_->silentUrl();
  if (url.empty()) GTEST_SKIP() << "this transport waits for no answer";
  std::stop_source stop;
  auto result = std::async(std::launch::async, [&] { return deliver(callTo(url), stop.get_token()); });
  rig_->awaitSilence();
  const PaceWatch watch;
  stop.request_stop();
  EXPECT_TRUE(std::holds_alternative<DeliveryFailed>(resultOf("the stopped delivery", result)));
  watch.end("a stopped delivery", kSoon);
}

TEST_P(TransportSuite, AnUnansweredCallEndsAtTheTimeout) {
  const std::string url = rig_->silentUrl();
  if (url.empty()) GTEST_SKIP() << "this transport waits for no answer";
  WebhookCall call = callTo(url);
  call.timeout = Millis(300);
  const PaceWatch watch;
  const DeliveryResult result = deliver(call);
  const auto took = watch.elapsed();
  ASSERT_TRUE(std::holds_alternative<DeliveryFailed>(result));
  EXPECT_FALSE(std::get<DeliveryFailed>(result).reason.empty());
  EXPECT_GE(took, Millis(290));
  judgePace("a delivery that is not answered within 300 ms", took, Millis(300) + kSoon);
}

}  // namespace jobq::testkit

/// Runs the suite against transports: `JOBQ_TRANSPORT_CONFORMANCE(Mine, testing::Values(...))`, once, at namespace
/// scope.
#define JOBQ_TRANSPORT_CONFORMANCE(prefix, transports)                                                             \
  namespace jobq::testkit {                                                                                        \
  inline std::string nameOfTransport(const testing::TestParamInfo<TransportUnderTest>& i) { return i.param.name; } \
  INSTANTIATE_TEST_SUITE_P(prefix, TransportSuite, transports, nameOfTransport);                                   \
  }                                                                                                                \
  static_assert(true)
