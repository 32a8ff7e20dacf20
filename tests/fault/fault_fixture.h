// The whole server in process, on a manual clock, over a storage with failures on demand.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
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
#include "tests/conformance/named_storages.h"
#include "tests/server/server_fixture.h"

namespace jobq::fault {

/// The parameter is the storage's name. The test's thread advances the clock only during its own waits.
class FaultTest : public ServerTest, public testing::WithParamInterface<const char*> {
 protected:
  ~FaultTest() override { close(); }

  /// Returns the name of the storage for the server: the parameter, unless a suite puts more into its parameter.
  virtual std::string storageName() const { return GetParam(); }

  /// Returns the lines of the configuration that choose the storage. The storage mysql has a database for each data
  /// directory: a removed directory begins with an empty one.
  std::string storageSettings() const {
    const std::filesystem::path data = dir_ / "jobq-data";
    if (std::filesystem::create_directory(data)) {
      std::filesystem::permissions(data, std::filesystem::perms::owner_all);
    }
    return testkit::settingsOfNamed(storageName(), data);
  }

  /// Builds and starts the server. Throws StorageError if the storage fails meanwhile.
  void openFaulty(const std::string& endpoints) {
    close();
    std::ofstream(dir_ / "jobq.properties")
        << "server.port = 0\nserver.drain = 10s\nlimits.enabled = false\nlimits.queue = false\n"
           "webhook.transports = http, file\n"
        << storageSettings() << endpoints;
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

  /// Starts the server, and once more after a failed start, as an operator would. One fault stops at most one start.
  void openPatiently(const std::string& endpoints) {
    try {
      openFaulty(endpoints);
    } catch (const StorageError& error) {
      EXPECT_THAT(error.what(), testing::HasSubstr(kInjected));
      openFaulty(endpoints);
    }
  }

  /// Stops the server as on SIGTERM. Time passes quickly for the drain, and in real time for the grace of stopped
  /// handlers: a thread told to stop has to run to its end, and on a busy machine under ThreadSanitizer half a second
  /// of real time for a grace of 5 s was too short once. A stop without such a handler does not wait.
  void close() {
    if (!application_) return;
    auto stopping = std::async(std::launch::async, [this] { return application_->stop(); });
    const Instant drained = clock_.now() + Millis(10'000);
    const auto pass = [&](int look) {
      const int pause = clock_.now() >= drained ? 200 : hasBeaten() ? 2 : 20;
      if (look % pause == 0) clock_.advance(Millis(500));
    };
    EXPECT_TRUE(testkit::holdsInTime([&] { return isDone(stopping); }, pass)) << "the shutdown hangs";
    EXPECT_TRUE(testkit::resultOf("the shutdown", stopping)) << "a handler ignored the stop token";
    application_.reset();
    inner_ = nullptr;
  }

  /// Returns false if the thread that beats for the node has fallen behind the clock. The life of the node would end.
  bool hasBeaten() const { return inner_ == nullptr || !inner_->leaseLife() || plan_.sinceBeat() <= Millis(4'000); }

  /// Polls `condition` while time passes: half a second at every other poll. Time stands still while the storage is at
  /// work, outruns neither the sweeper nor the beats of the node, and passes slowly after the first half minute, so on
  /// a busy machine no result expires unseen. Returns false if the condition was not met before the deadline.
  template <class Predicate>
  bool reached(Predicate&& condition) {
    return testkit::holdsInTime(condition, [this](int look) {
      if (look % (look <= 120 ? 2 : 20) != 0 || !plan_.isQuiet() || !hasBeaten()) return;
      clock_.awaitThread("sweeper");
      clock_.advance(Millis(500));
    });
  }

  /// Polls `condition` like reached(), while time stands still.
  template <class Predicate>
  bool reachedNow(Predicate&& condition) {
    return testkit::holdsInTime(condition, [](int) {});
  }

  template <class Result>
  static bool isDone(const std::future<Result>& future) {
    return future.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
  }

  /// Makes a call with a possible wait for a job: time passes until the answer has come.
  Answer callPatiently(const std::string& key, const std::string& method, const std::string& target,
                       const std::string& body = "") {
    auto answer = std::async(std::launch::async, [&] { return callWith(key, method, target, body); });
    EXPECT_TRUE(reached([&] { return isDone(answer); })) << method << " " << target << " hangs";
    return testkit::resultOf("the answer of " + method + " " + target, answer);
  }

  /// Returns one of the numbers of /health: each name appears once in the answer.
  static int number(const std::string& health, const std::string& name) {
    const std::size_t at = health.find("\"" + name + "\":");
    return at == std::string::npos ? -1 : std::atoi(health.c_str() + at + name.size() + 3);
  }
  int health(const std::string& endpoint, const std::string& name) const {
    return number(call("GET", "/v2/" + endpoint + "/health").body, name);
  }

  /// Reads the real storage, past the faults.
  std::optional<Job> stored(const std::string& endpoint, const std::string& id) const {
    return inner_->jobs().find({endpoint, id});
  }
  std::vector<Chunk> chunksOf(const std::string& endpoint, const std::string& id) const {
    const auto page = inner_->chunks().read({endpoint, id}, 0, 1U << 20);
    return page ? page->chunks : std::vector<Chunk>();
  }

  /// Expects `count` sleeping jobs to run at the same time; cancels the jobs afterwards.
  void expectSlots(const std::string& endpoint, int count) {
    std::vector<std::string> ids;
    for (int i = 0; i < count; ++i) ids.push_back(run(endpoint, R"({"input":{"sleepMs":600000}})").field("id"));
    EXPECT_TRUE(reached([&] { return health(endpoint, "running") == count; }))
        << endpoint << " has lost a slot: " << call("GET", "/v2/" + endpoint + "/health").body;
    EXPECT_EQ(health(endpoint, "inProgress"), count);
    for (const std::string& id : ids) EXPECT_EQ(call("POST", "/v2/" + endpoint + "/cancel/" + id).status, 200);
    EXPECT_TRUE(reached([&] { return health(endpoint, "running") == 0; })) << endpoint << " does not stop the jobs";
  }

  /// Returns the webhooks delivered to file:///NAME: for each webhook-id the bodies in order.
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
  Storage* inner_ = nullptr;  ///< the real storage of the server, without the faults
};

inline std::string nameOfStorage(const testing::TestParamInfo<const char*>& info) { return info.param; }

}  // namespace jobq::fault
