// Templates and endpoints over a storage with failures: the management calls of a patient client, and access to the
// stored records past the faults.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <filesystem>
#include <functional>
#include <set>
#include <string>

#include "core/config/endpoint_spec.h"
#include "core/config/template.h"
#include "core/endpoints/endpoint_record.h"
#include "fault_fixture.h"
#include "faulty_storage.h"
#include "jobq/error.h"
#include "jobq/job.h"
#include "jobq/record_store.h"
#include "tests/server/server_fixture.h"

namespace jobq::fault {

using testing::HasSubstr;

inline constexpr const char* kFixed = "endpoint.t.image = plugin/trial\nendpoint.t.workersMax = 1\n";
inline constexpr const char* kForever = R"({"input":{"sleepMs":600000}})";

class ManagementFaultTest : public FaultTest {
 protected:
  // Callers -----------------------------------------------------------------------------------------------------------

  /// Makes one call. A refusal by the storage must give its reason; afterwards the storage is mended if needed.
  Answer ask(const std::string& method, const std::string& target, const std::string& body = "") {
    Answer answer = call(method, target, body);
    EXPECT_THAT(answer.status / 100, testing::AnyOf(2, 4, 5)) << answer.body;
    EXPECT_NE(answer.status, 500) << method << " " << target << ": " << answer.body;
    if (answer.status != 503) return answer;
    EXPECT_GT(plan_.failed().size(), faultsBefore_) << "503 without a fault: " << answer.body;
    EXPECT_THAT(answer.field(target.starts_with("/v1") ? "message" : "error"), HasSubstr(kInjected));
    EXPECT_EQ(answer.headers["Retry-After"], "1");
    refused_ = true;
    mend();
    return answer;
  }
  /// Repeats the call after a 503, as a client does.
  Answer insist(const std::string& method, const std::string& target, const std::string& body = "") {
    for (int tries = 0; tries < 5; ++tries) {
      Answer answer = ask(method, target, body);
      if (answer.status != 503) return answer;
    }
    ADD_FAILURE() << method << " " << target << " is refused for ever";
    return {};
  }

  /// Acts as an operator would when the storage is gone for good: a durable storage needs a restart of the server.
  void mend() {
    if (how_ != CallFault::onward || mended_ || plan_.failed().size() == faultsBefore_) return;
    mended_ = true;
    const bool restart = std::string(GetParam()) == "sqlite";
    if (restart) close();
    plan_.heal();
    if (restart) openFaulty(kFixed);
  }
  template <class Predicate>
  void eventually(const char* what, Predicate&& there) {
    EXPECT_TRUE(reached([&] {
      mend();
      return there();
    })) << what;
  }

  // Past the faults ---------------------------------------------------------------------------------------------------

  std::set<std::string> ids(const char* kind) const {
    std::set<std::string> found;
    for (const Record& record : inner_->records().list(kind)) found.insert(record.id);
    return found;
  }
  std::string named(const std::string& name) const {
    for (const Record& record : inner_->records().list(kTemplateKind)) {
      if (record.name == name) return record.id;
    }
    return "";
  }
  std::string kept(const char* kind, const std::string& id, const std::string& field) const {
    const auto record = inner_->records().find(kind, id);
    return record ? Answer{200, record->body, {}}.field(field) : "no record";
  }
  std::size_t jobsOf(const std::string& endpoint) const { return inner_->jobs().list({endpoint, {}}, {}).total; }

  // Operations, each repeated until done ------------------------------------------------------------------------------

  std::string makeTemplate(const std::string& name, const std::string& more = "") {
    const std::string body = R"({"imageName":"plugin/trial","name":")" + name + "\"" + more + "}";
    for (;;) {
      const Answer made = ask("POST", "/v1/templates", body);
      const std::string id = named(name);
      if (made.status == 503 && id.empty()) continue;  // wholly absent
      if (made.status == 200) {
        EXPECT_EQ(made.field("id"), id);
        return id;
      }
      EXPECT_EQ(made.status, 503) << made.body;
      EXPECT_NE(how_, CallFault::before) << "the failed creation was stored";
      const Answer again = insist("POST", "/v1/templates", body);
      EXPECT_EQ(again.status, 400) << "a name is there once";
      EXPECT_THAT(again.body, HasSubstr(id));
      return id;
    }
  }
  std::string makeEndpoint(const std::string& templateId, const std::string& more = "") {
    for (;;) {
      const std::set<std::string> before = ids(kEndpointKind);
      const Answer made = ask("POST", "/v1/endpoints", R"({"templateId":")" + templateId + "\"" + more + "}");
      std::set<std::string> now = ids(kEndpointKind);
      for (const std::string& id : before) now.erase(id);
      if (made.status == 503 && now.empty()) continue;  // wholly absent
      EXPECT_EQ(now.size(), 1U) << made.status << made.body;
      if (now.empty()) return "";
      if (made.status == 200) {
        EXPECT_EQ(made.field("id"), *now.begin());
        EXPECT_EQ(made.field("version"), "1");
      } else {
        EXPECT_NE(how_, CallFault::before) << "the failed creation was stored: " << made.body;
      }
      return *now.begin();
    }
  }
  /// Expects the answer to show the stored value, whatever the storage does afterwards.
  void change(const char* method, const std::string& target, const std::string& field, const std::string& value) {
    const Answer done = insist(method, target, "{\"" + field + "\":" + value + "}");
    EXPECT_EQ(done.status, 200) << done.body;
    EXPECT_EQ(done.field(field), Answer({200, "{\"x\":" + value + "}", {}}).field("x")) << method << " " << target;
  }
  void pause(const std::string& id, bool paused) {
    const Answer done = insist("POST", "/v1/endpoints/" + id + (paused ? "/pause" : "/resume"));
    EXPECT_EQ(done.status, 200) << done.body;
    EXPECT_EQ(done.field("paused"), paused ? "true" : "false");
    EXPECT_EQ(ids(kPauseKind).contains(id), paused);
    eventually("nobody knows of the pause",
               [&] { return call("GET", "/v1/endpoints/" + id).field("paused") == done.field("paused"); });
  }
  /// Deletes a record. A refused client repeats the call and may then read that the record is already gone.
  void remove(const std::string& target) {
    refused_ = false;
    const Answer done = insist("DELETE", target);
    EXPECT_THAT(done.status, testing::AnyOf(204, refused_ ? 404 : 204)) << done.body;
    EXPECT_EQ(insist("DELETE", target).status, 404) << target;
  }
  void expectServes(const std::string& id) {
    eventually("it does not come", [&] { return call("GET", "/v2/" + id + "/health").status == 200; });
    const std::string job = insist("POST", "/v2/" + id + "/run", R"({"input":{"output":7}})").field("id");
    eventually("a job does not end", [&] {
      const auto found = stored(id, job);
      return found && found->state == JobState::completed;
    });
  }
  void expectVersion(const std::string& id, const std::string& version) {
    eventually(("no version " + version).c_str(),
               [&] { return call("GET", "/v1/endpoints/" + id).field("version") == version; });
    EXPECT_EQ(kept(kEndpointKind, id, "version"), version);
  }

  void openPatiently() {
    try {
      openFaulty(kFixed);
    } catch (const StorageError&) {
      mended_ = true;
      plan_.heal();
      openFaulty(kFixed);
    }
    mend();
  }

  void begin(CallFault how) {
    how_ = how;
    mended_ = false;
    faultsBefore_ = plan_.failed().size();
  }
  void clear() {
    close();
    plan_.heal();
    std::filesystem::remove_all(dir_ / "jobq-data");
  }

  CallFault how_ = CallFault::before;
  bool mended_ = false;
  bool refused_ = false;  // a call was refused since the flag was cleared
  std::size_t faultsBefore_ = 0;
};

}  // namespace jobq::fault
