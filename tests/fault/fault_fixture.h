// The whole server in process, on a manual clock, over a storage that fails when a test says so.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <fstream>
#include <future>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/application.h"
#include "faulty_storage.h"
#include "jobq/chunk_store.h"
#include "jobq/error.h"
#include "jobq/job.h"
#include "jobq/storage.h"
#include "jobq/time.h"
#include "tests/server/server_fixture.h"

namespace jobq::fault {

/// The parameter is the storage's name. The test's thread moves time on only while it waits for something.
class FaultTest : public ServerTest, public testing::WithParamInterface<const char*> {
 protected:
  ~FaultTest() override { close(); }

  /// The storage that the server opens: the parameter, unless a suite says more in its parameter.
  virtual std::string storageName() const { return GetParam(); }

  /// Builds and starts the server. Throws StorageError when the storage fails meanwhile.
  void openFaulty(const std::string& endpoints) {
    close();
    std::ofstream(dir_ / "jobq.properties")
        << "server.port = 0\nserver.drain = 10s\nlimits.enabled = false\nlimits.queue = false\nstorage = "
        << storageName() << "\nwebhook.transports = http, file\nplugins.path = " JOBQ_PLUGIN_DIR "\n"
        << endpoints;
    application_ = std::make_unique<Application>(loadConfig(dir_ / "jobq.properties", {}), clock_, log_,
                                                 [this](std::unique_ptr<Storage> storage) {
                                                   inner_ = storage.get();
                                                   return std::make_unique<FaultyStorage>(std::move(storage), plan_);
                                                 });
    try {
      application_->start();
    } catch (...) {
      close();
      throw;
    }
    key_ = *readFile(dir_ / "jobq-data/admin.key");
    key_.pop_back();
  }

  /// What an operator does whose server does not start: starts it again. One fault stops at most one start.
  void openPatiently(const std::string& endpoints) {
    try {
      openFaulty(endpoints);
    } catch (const StorageError& error) {
      EXPECT_THAT(error.what(), testing::HasSubstr(kInjected));
      openFaulty(endpoints);
    }
  }

  /// SIGTERM, and time enough: the drain passes quickly, the grace of stopped handlers slowly, as they need real time.
  void close() {
    if (!application_) return;
    auto stopping = std::async(std::launch::async, [this] { return application_->stop(); });
    const Instant drained = clock_.now() + Millis(10'000);
    const auto pass = [&](int look) {
      if (look % (clock_.now() < drained ? 2 : 50) == 0) clock_.advance(Millis(500));
    };
    EXPECT_TRUE(poll([&] { return isDone(stopping); }, pass)) << "the shutdown hangs";
    EXPECT_TRUE(testkit::resultOf("the shutdown", stopping)) << "a handler ignored its stop token";
    application_.reset();
    inner_ = nullptr;
  }

  /// Polls `condition`, and lets time pass meanwhile: half a second at every other look, but not while the
  /// storage is at work, never faster than the sweeper follows, and slowly after the first half minute: on a busy
  /// machine no result expires unseen. False: it is stuck.
  template <class Predicate>
  bool reached(Predicate&& condition) {
    return poll(condition, [this](int look) {
      if (look % (look <= 120 ? 2 : 20) != 0 || !plan_.isQuiet()) return;
      clock_.awaitWaiter(Millis(0), Millis(1'000));
      clock_.advance(Millis(500));
    });
  }

  /// The same without letting time pass.
  template <class Predicate>
  bool reachedNow(Predicate&& condition) {
    return poll(condition, [](int) {});
  }

  template <class Predicate, class Between>
  static bool poll(Predicate&& condition, Between&& between) {
    const auto end = std::chrono::steady_clock::now() + testkit::kHangDeadline;
    for (int look = 1; !condition(); ++look) {
      if (std::chrono::steady_clock::now() > end) return false;
      between(look);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return true;
  }

  template <class Result>
  static bool isDone(const std::future<Result>& future) {
    return future.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
  }

  /// A call that may wait for a job: time passes until it is answered.
  Answer callPatiently(const std::string& key, const std::string& method, const std::string& target,
                       const std::string& body = "") {
    auto answer = std::async(std::launch::async, [&] { return callWith(key, method, target, body); });
    EXPECT_TRUE(reached([&] { return isDone(answer); })) << method << " " << target << " hangs";
    return testkit::resultOf("the answer of " + method + " " + target, answer);
  }

  /// One of the numbers of /health: each name appears once in it.
  static int number(const std::string& health, const std::string& name) {
    const std::size_t at = health.find("\"" + name + "\":");
    return at == std::string::npos ? -1 : std::atoi(health.c_str() + at + name.size() + 3);
  }
  int health(const std::string& endpoint, const std::string& name) const {
    return number(call("GET", "/v2/" + endpoint + "/health").body, name);
  }

  /// Past the faults: the real storage.
  std::optional<Job> stored(const std::string& endpoint, const std::string& id) const {
    return inner_->jobs().find({endpoint, id});
  }
  std::vector<Chunk> chunksOf(const std::string& endpoint, const std::string& id) const {
    const auto page = inner_->chunks().read({endpoint, id}, 0, 1U << 20);
    return page ? page->chunks : std::vector<Chunk>();
  }

  /// `count` jobs that sleep run at the same time; then they are cancelled.
  void expectSlots(const std::string& endpoint, int count) {
    std::vector<std::string> ids;
    for (int i = 0; i < count; ++i) ids.push_back(run(endpoint, R"({"input":{"sleepMs":600000}})").field("id"));
    EXPECT_TRUE(reached([&] { return health(endpoint, "running") == count; }))
        << endpoint << " has lost a slot: " << call("GET", "/v2/" + endpoint + "/health").body;
    EXPECT_EQ(health(endpoint, "inProgress"), count);
    for (const std::string& id : ids) EXPECT_EQ(call("POST", "/v2/" + endpoint + "/cancel/" + id).status, 200);
    EXPECT_TRUE(reached([&] { return health(endpoint, "running") == 0; })) << endpoint << " does not stop its jobs";
  }

  /// The webhooks that were delivered to file:///NAME: for each webhook-id the bodies, in order.
  std::map<std::string, std::vector<std::string>> posted(const std::string& name) const {
    std::map<std::string, std::vector<std::string>> bodies;
    std::ifstream in(dir_ / "jobq-data" / "webhooks" / name);
    for (std::string line; std::getline(in, line);) {
      const Answer call{200, line, {}};
      const Answer headers{200, call.field("headers"), {}};
      bodies[headers.field("webhook-id")].push_back(call.field("body"));
    }
    return bodies;
  }

  FaultPlan plan_{clock_};
  Storage* inner_ = nullptr;  ///< the house's, without the faults
};

inline std::string nameOfStorage(const testing::TestParamInfo<const char*>& info) { return info.param; }

}  // namespace jobq::fault
