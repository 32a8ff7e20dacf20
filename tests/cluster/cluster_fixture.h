// Several whole servers in the test's process on one memory storage. Each server and the storage have a separate clock,
// all moved by hand and together. Time moves on only after a beat of every connected server, and when the threads woken
// by the last step wait again, so a slow machine changes no result.
#pragma once

#include <gtest/gtest.h>
#include <chrono>
#include <cstdint>
#include <fstream>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/application.h"
#include "core/workers/node/node_share.h"
#include "jobq/storage.h"
#include "jobq/time.h"
#include "settling_clock.h"
#include "testkit/forwarding_storage.h"
#include "testkit/loaded_plugin.h"
#include "testkit/manual_clock.h"
#include "testkit/recording_log.h"
#include "testkit/temporary_folder.h"
#include "testkit/wait_for.h"
#include "tests/fault/faulty_storage.h"
#include "tests/server/server_fixture.h"
#include "tests/support/shared_memory.h"

namespace jobq::test {

/// Gives each server a separate object for the same storage, like separate connections of real servers.
class BorrowedStorage final : public testkit::ForwardingStorage {
 public:
  /// `other` outlives the object.
  explicit BorrowedStorage(Storage& other) : ForwardingStorage(other) {}
};

/// A server of the cluster.
struct Server {
  /// `ahead` is how far the clock of the server runs ahead of the storage's clock.
  explicit Server(std::string nodeName, Millis ahead) : name(std::move(nodeName)) { clock.advance(ahead); }

  Answer call(const std::string& key, const std::string& method, const std::string& target,
              const std::string& body = "") const {
    return callAt(application->address(), key, method, target, body);
  }

  const std::string name;
  testkit::TemporaryFolder dir;
  SettlingClock clock;
  testkit::RecordingLog log;
  fault::FaultPlan faults{clock};  ///< faults on the way to the storage
  bool isConnected = true;         ///< time moves on only after a beat of a connected server
  std::unique_ptr<Application> application;
};

/// The parameter is the number of milliseconds by which the clock of the second server runs ahead.
class ClusterTest : public testing::TestWithParam<Millis> {
 protected:
  ~ClusterTest() override {
    for (const auto& server : servers_) {
      server->faults.heal();
      stop(*server);
      server->application.reset();
    }
  }

  /// Starts two servers with the same settings, and waits until each knows of the other.
  void open(const std::string& settings) {
    for (int i = 0; i < 2; ++i) start(settings);
    key_ = *readFile(servers_[0]->dir / "jobq-data/admin.key");
    key_.pop_back();
    pass(Millis(5'000));
  }
  void start(const std::string& settings) {
    const std::string name = "node" + std::to_string(servers_.size());
    Server& server = *servers_.emplace_back(std::make_unique<Server>(name, servers_.empty() ? Millis(0) : GetParam()));
    std::ofstream(server.dir / "jobq.properties")
        << settings << "\nstorage = memory\nnode.name = " << name << "\nserver.port = 0\nserver.drain = 10s\n"
        << "limits.enabled = false\nlimits.queue = false\nplugins.path = " << JOBQ_PLUGIN_DIR
        << "\nsecret.keyFile = " << (secrets_ / "secret.key").string() << "\n";
    server.application = std::make_unique<Application>(
        loadConfig(server.dir / "jobq.properties", {}), server.clock, server.log, [&](std::unique_ptr<Storage>) {
          return std::make_unique<fault::FaultyStorage>(std::make_unique<BorrowedStorage>(*storage_), server.faults);
        });
    server.application->start();
  }

  /// Stops the server; the drain lasts until the end of the running jobs, on the clock of the server.
  void stop(Server& server) {
    server.isConnected = false;
    auto stopping = std::async(std::launch::async, [&server] { return server.application->stop(); });
    testkit::waitFor("the end of " + server.name, [&] {
      pass(Millis(20));
      return stopping.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
    });
    EXPECT_TRUE(stopping.get());
  }

  /// Cuts the server off from the storage: each call of the server to the storage fails.
  static void disconnect(Server& server) {
    server.isConnected = false;
    server.faults.failOperation("");
  }

  /// Moves all clocks by `time`.
  void pass(Millis time) {
    constexpr Millis kStep{20};
    for (; time > Millis(0); time -= kStep) {
      testkit::waitFor("the beats of the connected servers", [this] { return haveBeaten(); });
      storageClock_.advance(kStep);
      for (const auto& server : servers_) server->clock.advance(kStep);
      for (const auto& server : servers_) server->clock.awaitSettled();
    }
  }
  /// Lets time pass until `holds`. Returns how much time has passed; fails after `most`.
  template <class Predicate>
  Millis eventually(const std::string& what, Predicate&& holds, Millis most = Millis(120'000)) {
    Millis passed{0};
    for (testkit::WaitDeadline wait(what); !holds(); wait.pause()) {
      if (passed >= most) {
        ADD_FAILURE() << "within " << most.count() << " ms: " << what;
        break;
      }
      pass(Millis(20));
      passed += Millis(20);
    }
    return passed;
  }

  Server& one() { return *servers_.at(0); }
  Server& two() { return *servers_.at(1); }
  Answer call(const Server& server, const std::string& method, const std::string& target,
              const std::string& body = "") const {
    return server.call(key_, method, target, body);
  }
  /// Submits a job through a server. Returns the id.
  std::string submit(const Server& server, const std::string& endpoint, const std::string& body) const {
    return call(server, "POST", "/v2/" + endpoint + "/run", body).field("id");
  }
  Answer status(const Server& server, const std::string& endpoint, const std::string& id) const {
    return call(server, "GET", "/v2/" + endpoint + "/status/" + id);
  }
  Millis awaitState(const Server& server, const std::string& endpoint, const std::string& id,
                    const std::string& state) {
    return eventually(id + " to be " + state, [&] { return status(server, endpoint, id).field("status") == state; });
  }
  bool healthSays(const Server& server, const std::string& endpoint, const std::string& text) const {
    return call(server, "GET", "/v2/" + endpoint + "/health").body.find(text) != std::string::npos;
  }
  /// Returns an endpoint of e0 to e9, each with workersMax 1, whose worker is at the server of the index.
  static std::string endpointAt(std::uint32_t index) {
    for (int i = 0; i < 10; ++i) {
      const std::string name = "e" + std::to_string(i);
      if (NodeShare{index, 2}.of(1, name) == 1) return name;
    }
    ADD_FAILURE() << "all single workers are at the other server";
    return "e0";
  }
  /// Returns the settings of e0 to e9.
  static std::string singleWorkers() {
    std::string settings;
    for (int i = 0; i < 10; ++i) {
      const std::string prefix = "endpoint.e" + std::to_string(i);
      settings += prefix + ".image = plugin/trial\n" + prefix + ".workersMax = 1\n";
    }
    return settings;
  }

  testkit::ManualClock storageClock_;
  testkit::SilentLog log_;
  const testkit::TemporaryFolder secrets_;
  const std::unique_ptr<Storage> storage_ = sharedMemory(storageClock_, log_);
  std::vector<std::unique_ptr<Server>> servers_;
  std::string key_;

 private:
  bool haveBeaten() {
    for (const NodeInfo& node : storage_->nodes().nodes()) {
      for (const auto& server : servers_) {
        const bool isAwaited = server->name == node.name && server->isConnected && server->application;
        if (isAwaited && node.isAlive && node.sinceBeat > Millis(1'500)) return false;
      }
    }
    return true;
  }
};

}  // namespace jobq::test
