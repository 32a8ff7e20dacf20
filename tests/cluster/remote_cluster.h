// A remote worker behind a load balancer, with two whole servers on one storage. Each call has a connection of its own.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cluster_fixture.h"
#include "jobq/job.h"
#include "jobq/time.h"
#include "tests/server/server_fixture.h"

namespace jobq::test {

inline constexpr const char* kLong = R"({"input":{},"policy":{"executionTimeout":3600000}})";

/// Asks a server for stops again and again, as a worker does, and so keeps a connection open.
class StopLoop {
 public:
  StopLoop(const Server& server, std::string key)
      : loop_(std::async(std::launch::async, [this, address = server.application->address(), key = std::move(key)] {
          while (!isOver_) {  // also while the server stops and has no address any more
            const Answer answer = callAt(address, key, "GET", "/v2/remote/job-stop/w?gpu=none", "");
            if (answer.status == 200) ++told_;
          }
        })) {}

  int told() const { return told_; }
  void end() { isOver_ = true; }
  bool hasEnded() const { return loop_.wait_for(std::chrono::seconds(0)) == std::future_status::ready; }

 private:
  std::atomic<bool> isOver_ = false;
  std::atomic<int> told_ = 0;
  std::future<void> loop_;
};

class RemoteClusterTest : public ClusterTest {
 protected:
  void openRemote(const std::string& more = "") {
    open("endpoint.remote.image = docker.io/acme/worker:1\n" + more);
    workerKey_ = call(one(), "POST", "/v1/keys", R"({"name":"worker","scopes":["worker"]})").field("key");
    eventually("the key at the other server",
               [&] { return two().call(workerKey_, "GET", "/v2/remote/ping/nobody").status == 200; });
  }
  ~RemoteClusterTest() override {
    for (const auto& loop : loops_) endLoop(*loop);
  }

  /// Takes a job for a worker at the server. Returns its id, or nothing if none comes within 24 s.
  std::string fetchJob(const Server& server, bool holdsJobs = false, const std::string& worker = "w") {
    auto taking = std::async(std::launch::async, [&] { return fetch(server, holdsJobs, worker); });
    eventually("the answer of job-take", [&] { return hasPassed(taking); });
    const Answer answer = taking.get();
    return answer.status == 200 ? answer.field("id") : "";
  }
  /// Submits a job at the first server, which gives the job to the worker `w`. Returns its id.
  std::string beginJob() {
    const std::string id = submit(one(), "remote", kLong);
    EXPECT_EQ(fetchJob(one()), id);
    return id;
  }
  Answer fetch(const Server& server, bool holdsJobs = false, const std::string& worker = "w") const {
    return server.call(workerKey_, "GET",
                       "/v2/remote/job-take/" + worker + "?job_in_progress=" + (holdsJobs ? "1" : "0"));
  }
  /// Returns true if the call is answered, and lets some time pass otherwise: most calls are held for 20 s.
  bool hasPassed(const std::future<Answer>& call) {
    if (call.wait_for(std::chrono::seconds(0)) == std::future_status::ready) return true;
    pass(Millis(200));
    return false;
  }
  void report(const Server& server, const std::string& call, const std::string& job, const std::string& body,
              const std::string& worker = "w") {
    const Answer answer =
        server.call(workerKey_, "POST", "/v2/remote/" + call + "/" + worker + "/" + job + "?isStream=false", body);
    EXPECT_EQ(answer.status, 200) << answer.body;
  }
  void sendPing(const Server& server, const std::string& jobs) {
    const std::string list = jobs.empty() ? "" : "?job_id=" + jobs;
    EXPECT_EQ(server.call(workerKey_, "GET", "/v2/remote/ping/w" + list).status, 200);
  }
  StopLoop& startLoop(const Server& server) {
    return *loops_.emplace_back(std::make_unique<StopLoop>(server, workerKey_));
  }
  void endLoop(StopLoop& loop) {
    loop.end();
    eventually("the end of the calls for stops", [&] { return loop.hasEnded() || (pass(Millis(200)), false); });
  }
  /// The first server gives a job to the worker `w`, which has a job of the second server, and dies before any other
  /// server can learn of the job. Returns the id of the job when it is in the queue again.
  std::string loseUnheardJob() {
    busy_ = submit(two(), "remote", kLong);
    EXPECT_EQ(fetchJob(two()), busy_);
    startLoop(two());
    pass(Millis(3'000));
    const std::string id = submit(one(), "remote", kLong);
    one().faults.failOperation("records.create");
    EXPECT_EQ(fetchJob(one(), true), id);
    disconnect(one());
    eventually(
        "the job to be in the queue", [&] { return find(id).state == JobState::inQueue; }, Millis(20'000));
    return id;
  }
  void reconnect(Server& server) {
    server.faults.heal();
    eventually("the server to be back", [&] { return call(server, "GET", "/readyz").status == 200; });
    server.isConnected = true;
  }
  Job find(const std::string& id) { return storage_->jobs().find({"remote", id}).value(); }

  std::string workerKey_;
  std::string busy_;
  std::vector<std::unique_ptr<StopLoop>> loops_;
};

}  // namespace jobq::test
