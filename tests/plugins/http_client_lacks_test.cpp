// Lacks of this machine in transfers of http_client: descriptors, threads and memory. Such a lack is neither a fault of
// the server nor an end of the program, and repeats no request that a server has executed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/resource.h>

#include <atomic>
#include <cerrno>
#include <future>
#include <memory>
#include <new>
#include <stop_token>
#include <string>
#include <utility>

#include "failing_calls.h"
#include "http_client/transfer.h"
#include "http_client/transfer_loop.h"
#include "testkit/no_descriptors.h"
#include "testkit/wait_for.h"
#include "tests/support/scarce_memory.h"
#include "tiny_http.h"
#include "transfer_requests.h"

namespace jobq::test {
namespace {

using http_client::Fault;
using http_client::FaultKind;
using http_client::Method;
using http_client::Outcome;
using http_client::Request;
using http_client::transfer;
using http_client::transferPatiently;
using testing::HasSubstr;

Fault lackAt(const Request& request) {
  const Outcome outcome = transfer(request, {});
  EXPECT_TRUE(outcome.fault) << "answered " << outcome.answer.status;
  return outcome.fault.value_or(Fault{});
}

TEST(HttpClientLacks, ALackOfDescriptorsIsAFaultOfThisMachine) {
  TinyHttp server(saying("ok"));
  (void)transfer(requestTo(server.url("/")), {});  // makes the first calls of libcurl
  for (const std::string& url : {server.url("/"), std::string("http://name.test/")}) {
    const Request request = requestTo(url);
    const testkit::NoDescriptors none;
    const Outcome outcome = transfer(request, {});
    none.restore();
    ASSERT_TRUE(outcome.fault) << url;
    EXPECT_EQ(outcome.fault->kind, FaultKind::machine) << url << ": " << outcome.fault->reason;
    EXPECT_EQ(outcome.fault->error, EMFILE);
    EXPECT_THAT(outcome.fault->reason, HasSubstr("too many open files"));
  }
  EXPECT_EQ(server.requests().size(), 1U);
}

/// New threads of the process cannot start: the usual stack is as large as all addresses.
class NoThreads {
 public:
  NoThreads() {
    pthread_getattr_default_np(&before_);
    pthread_attr_t huge;
    pthread_getattr_default_np(&huge);
    EXPECT_EQ(pthread_attr_setstacksize(&huge, std::size_t{1} << 47), 0);
    EXPECT_EQ(pthread_setattr_default_np(&huge), 0);
    pthread_attr_destroy(&huge);
  }
  ~NoThreads() {
    pthread_setattr_default_np(&before_);
    pthread_attr_destroy(&before_);
  }
  NoThreads(const NoThreads&) = delete;
  NoThreads& operator=(const NoThreads&) = delete;

 private:
  pthread_attr_t before_{};
};

TEST(HttpClientLacks, ANameLookupWithoutAThreadIsAFaultOfThisMachine) {
  const Request request = requestTo("http://name.test/");
  EXPECT_EQ(lackAt(request).kind, FaultKind::other) << "the name is unknown";
  const NoThreads none;
  const Fault fault = lackAt(request);
  EXPECT_EQ(fault.kind, FaultKind::machine) << fault.reason;
  EXPECT_EQ(fault.error, EAGAIN);
}

TEST(HttpClientLacks, AConnectionWithoutBuffersIsAFaultOfThisMachine) {
  TinyHttp server(saying("ok"));
  for (const int error : {ENOBUFS, ENOMEM}) {
    connectFailsWith = error;
    const Fault fault = lackAt(requestTo(server.url()));
    connectFailsWith = 0;
    EXPECT_EQ(fault.kind, FaultKind::machine) << fault.reason;
    EXPECT_EQ(fault.error, error);
  }
  connectFailsWith = ECONNREFUSED;
  EXPECT_EQ(lackAt(requestTo(server.url())).kind, FaultKind::other);
  connectFailsWith = 0;
}

TEST(HttpClientLacks, ATransferWithoutMemoryThrows) {
  const Request request = requestTo("http://127.0.0.1:9/");
  addingFails = true;
  EXPECT_THROW((void)transfer(request, {}), std::bad_alloc);
  addingFails = false;
}

TEST(HttpClientLacks, APatientTransferWaitsForResources) {
  struct Restorer final : http_client::CancelCheck {
    explicit Restorer(const testkit::NoDescriptors*& lacking) : none(lacking) {}
    bool isOver() override {
      if (none != nullptr) none->restore();
      return false;
    }
    const testkit::NoDescriptors*& none;
  };
  TinyHttp server(saying("ok"));
  const Request request = requestTo(server.url("/"));
  const testkit::NoDescriptors* lacking = nullptr;
  Restorer restorer(lacking);
  (void)transferPatiently(request, {}, &restorer);  // makes the first calls of libcurl and of the sanitizer
  const testkit::NoDescriptors none;
  lacking = &none;
  const Outcome outcome = transferPatiently(request, {}, &restorer);
  EXPECT_FALSE(outcome.fault);
  EXPECT_EQ(outcome.answer.body, "ok");
}

/// Refuses every new descriptor, also those that are closed meanwhile, until a transfer pauses behind the end of the
/// first connection.
class LackAtRedirect final : public http_client::CancelCheck {
 public:
  LackAtRedirect() { getrlimit(RLIMIT_NOFILE, &before_); }
  ~LackAtRedirect() { setrlimit(RLIMIT_NOFILE, &before_); }
  LackAtRedirect(const LackAtRedirect&) = delete;
  LackAtRedirect& operator=(const LackAtRedirect&) = delete;

  void begin() {
    rlimit standardStreams = before_;
    standardStreams.rlim_cur = 3;
    EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &standardStreams), 0);
  }
  void noteEndOfFirst() { hasEnded_ = true; }
  bool isOver() override {
    if (hasEnded_) setrlimit(RLIMIT_NOFILE, &before_);
    return false;
  }

 private:
  rlimit before_{};
  std::atomic<bool> hasEnded_ = false;
};

// The first server has executed the request.
TEST(HttpClientLacks, APatientTransferRepeatsNothingBeforeARedirect) {
  LackAtRedirect lack;
  TinyHttp second(saying("ok"));
  TinyHttp first([&](const TinyRequest&, const TinyConnection& client) {
    lack.begin();
    client.reply(303, "", "Location: " + second.url("/there") + "\r\n");
    client.hold();
    lack.noteEndOfFirst();
  });
  {
    TinyHttp warm(saying("ok"));
    (void)transferPatiently(requestTo(warm.url()), {}, &lack);  // makes the first calls of libcurl and of the sanitizer
    const testkit::NoDescriptors makesFirstCalls;
  }
  Request request = requestTo(first.url("/execute"));
  request.method = Method::post;
  request.body = "once";
  request.maxRedirects = 3;
  const Outcome outcome = transferPatiently(request, {}, &lack);
  EXPECT_FALSE(outcome.fault) << outcome.fault->reason;
  EXPECT_EQ(outcome.answer.body, "ok");
  EXPECT_EQ(first.requests().size(), 1U) << "the request was executed again";
  ASSERT_EQ(second.requests().size(), 1U);
  EXPECT_EQ(second.requests()[0].method, "GET");
}

TEST(HttpClientLacks, AStopEndsThePauseOfAPatientTransfer) {
  struct Stopper final : http_client::CancelCheck {
    bool isOver() override {
      stop.request_stop();
      return false;
    }
    std::stop_source stop;
  };
  const Request request = requestTo("http://127.0.0.1:9/");
  Stopper first;
  (void)transferPatiently(request, first.stop.get_token(), &first);  // makes the first calls
  Stopper stopper;
  const testkit::NoDescriptors none;
  const Outcome outcome = transferPatiently(request, stopper.stop.get_token(), &stopper);
  none.restore();
  ASSERT_TRUE(outcome.fault);
  EXPECT_EQ(outcome.fault->kind, FaultKind::stopped);
}

/// Notes the end of a transfer. The thread of the loop then finds no memory at its next allocation, and another
/// transfer is stopped.
class End final : public http_client::TransferReceiver {
 public:
  explicit End(std::stop_source* stopsOther = nullptr) : stopsOther_(stopsOther) {}

  void ended(Outcome outcome) noexcept override {
    if (stopsOther_ != nullptr) {
      failsIn = 1;
      stopsOther_->request_stop();
    }
    kind_.set_value(outcome.fault ? outcome.fault->kind : FaultKind::other);
  }
  FaultKind await(const std::string& what) {
    auto kind = kind_.get_future();
    return testkit::resultOf(what, kind);
  }

 private:
  std::stop_source* const stopsOther_;
  std::promise<FaultKind> kind_;
};

TEST(HttpClientLacks, AStopWithoutMemoryEndsOnlyTheStoppedTransfer) {
#if JOBQ_SANITIZED_THREADS
  GTEST_SKIP() << "takes the memory away, and ThreadSanitizer has an operator new of its own";
#endif
  TinyHttp quick(saying("ok"));
  TinyHttp silent([](const TinyRequest&, const TinyConnection& client) { client.hold(); });
  std::stop_source stop;
  End second;
  End first(&stop);
  http_client::TransferLoop loop({true, ""}, "test-loop");
  loop.begin(requestTo(silent.url()), stop.get_token(), second);
  silent.awaitRequest();
  loop.begin(requestTo(quick.url()), {}, first);
  (void)first.await("the end of the answered transfer");
  EXPECT_EQ(second.await("the end of the stopped transfer"), FaultKind::stopped);
}

}  // namespace
}  // namespace jobq::test
