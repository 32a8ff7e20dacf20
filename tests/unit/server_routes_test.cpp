// Tests of the routes about the server itself without a socket: health, description, plugins and backups
// (core/http/api/management/process_routes.cpp, plugin_routes.cpp, backup_routes.cpp, docs_page.h).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "copied_storage.h"
#include "core/http/api/docs_page.h"
#include "core/http/api/management/backups.h"
#include "core/http/api/openapi.h"
#include "core/http/api/routes.h"
#include "core/plugin/plugin_host.h"
#include "jobq/error.h"
#include "jobq/json.h"
#include "route_fixture.h"
#include "testkit/recording_log.h"
#include "testkit/temporary_folder.h"
#include "unit_storage.h"

namespace jobq {
namespace {

namespace fs = std::filesystem;

using test::expectAnswer;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

class ProcessRoutesTest : public testing::Test, protected test::RouteFixture {
 protected:
  ProcessRoutesTest() {
    addProcessRoutes(router_, *storage_, storage_.clock, {draining_, fenced_, drained_}, waiting_);
  }

  test::UnitStorage storage_;
  std::atomic<bool> draining_ = false;
  std::atomic<bool> fenced_ = false;
  std::atomic<bool> drained_ = false;
  Budget waiting_{4};
};

TEST_F(ProcessRoutesTest, TheRootNamesTheOtherRoutes) {
  expectAnswer(call("GET", "/"), 200,
               R"({"service":"jobq","docs":"/docs","openapi":"/openapi.json","queueApi":"/v2/{endpointId}",)"
               R"("sdkApi":"/sdk/v2/{endpointId}","managementApi":"/v1","alive":"/healthz","ready":"/readyz"})");
  EXPECT_EQ(scope_, Scope::none);
}

TEST_F(ProcessRoutesTest, TheServerIsReadyWhileTheStorageTakesWrites) {
  expectAnswer(call("GET", "/readyz"), 200, R"({"status":"ready"})");
  EXPECT_EQ(scope_, Scope::none);
  storage_.faults.failOperation("check");
  expectAnswer(call("GET", "/readyz"), 200, R"({"status":"ready"})");
  storage_.clock.advance(Millis(1'001));
  EXPECT_THROW((void)call("GET", "/readyz"), StorageError) << "the good check is older than a second";
  expectAnswer(call("GET", "/healthz"), 200, R"({"status":"alive"})");
  storage_.faults.heal();
  expectAnswer(call("GET", "/readyz"), 200, R"({"status":"ready"})");
}

TEST_F(ProcessRoutesTest, ADrainingServerIsAliveAndNotReady) {
  draining_ = true;
  const ApiResponse response = call("GET", "/readyz");
  expectAnswer(response, 503, R"({"error":"the server is shutting down"})");
  EXPECT_EQ(headersOf(response), "Retry-After: 1\n");
  expectAnswer(call("GET", "/healthz"), 200, R"({"status":"alive"})");
  EXPECT_EQ(scope_, Scope::none);
}

TEST_F(ProcessRoutesTest, ADrainedNodeIsAliveAndNotReady) {
  drained_ = true;
  expectAnswer(call("GET", "/readyz"), 503,
               R"({"error":"this node drains: `jobqctl node resume` or a restart ends that"})");
  expectAnswer(call("GET", "/healthz"), 200, R"({"status":"alive"})");
}

TEST_F(ProcessRoutesTest, AFencedNodeIsAliveAndNotReady) {
  fenced_ = true;
  expectAnswer(call("GET", "/readyz"), 503, R"({"error":"this node could not renew its leases and runs no jobs"})");
  expectAnswer(call("GET", "/healthz"), 200, R"({"status":"alive"})");
  fenced_ = false;
  expectAnswer(call("GET", "/readyz"), 200, R"({"status":"ready"})");
}

TEST_F(ProcessRoutesTest, TheDescriptionIsAJsonObject) {
  const ApiResponse response = call("GET", "/openapi.json");
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(response.constant.data(), openapiText().data()) << "no answer has a copy";
  const auto read = json::read(response.constant);
  const auto* document = std::get_if<json::Document>(&read);
  ASSERT_NE(document, nullptr);
  EXPECT_TRUE(document->find("paths"));
  EXPECT_TRUE(document->find("openapi"));
  EXPECT_EQ(scope_, Scope::none);
}

TEST_F(ProcessRoutesTest, ThePageOfTheDescriptionLoadsNoForeignResource) {
  const ApiResponse response = call("GET", "/docs");
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(response.constant.data(), docsPage().data()) << "no answer has a copy";
  EXPECT_EQ(headersOf(response),
            "Content-Type: text/html; charset=utf-8\n"
            "Content-Security-Policy: " +
                docsPolicy() + "\n");
  EXPECT_THAT(response.constant, StartsWith("<!DOCTYPE html>\n"));
  EXPECT_THAT(response.constant, testing::EndsWith("</html>\n"));
  EXPECT_THAT(response.constant, HasSubstr("fetch(\"openapi.json\")"));
  EXPECT_LE(response.constant.size(), 40'000) << "the whole page, with script and style";
  for (const char* foreign : {"://", " src=", " href=", " style=", "innerHTML", "document.write", "eval("}) {
    EXPECT_THAT(response.constant, Not(HasSubstr(foreign)));
  }
}

TEST_F(ProcessRoutesTest, ThePolicyOfThePageAllowsItsScriptAndStyleAlone) {
  const auto elements = [](const std::string& tag) {
    return std::pair(docsPage().find("<" + tag), docsPage().rfind("<" + tag));
  };
  for (const char* tag : {"script", "style>"}) {
    const auto [first, last] = elements(tag);
    EXPECT_NE(first, std::string::npos);
    EXPECT_EQ(first, last) << "a single element " << tag;
  }
  EXPECT_THAT(docsPolicy(), testing::MatchesRegex("default-src 'none'; script-src 'sha256-[A-Za-z0-9+/]{43}='; "
                                                  "style-src 'sha256-[A-Za-z0-9+/]{43}='; connect-src 'self'; .*"));
  for (const char* rule : {"base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'",
                           "require-trusted-types-for 'script'", "trusted-types 'none'"}) {
    EXPECT_THAT(docsPolicy(), HasSubstr(rule));
  }
}

/// The server uses one entry, which has a good script and a faulty one.
class OneUsed final : public PluginUse {
 public:
  bool isSelected(std::string_view kind, std::string_view name) const override {
    return kind == "storage" && name == "memory";
  }
  std::vector<ScriptReport> scripts(std::string_view kind, std::string_view name) const override {
    if (!isSelected(kind, name)) return {};
    return {{"good", std::nullopt}, {"bad", "line 1: no \"function\""}};
  }
};

class PluginRoutesTest : public testing::Test, protected test::RouteFixture {
 protected:
  PluginRoutesTest() { addPluginRoutes(router_, plugins_, use_); }

  const testkit::TemporaryFolder folder_;
  const std::map<std::string, std::string> settings_;
  testkit::RecordingLog log_;
  PluginHost plugins_{settings_, log_};
  const OneUsed use_;
};

TEST_F(PluginRoutesTest, WithoutLibrariesTheListIsEmpty) {
  plugins_.load({folder_.path()});
  expectAnswer(call("GET", "/v1/plugins"), 200, "[]");
  EXPECT_EQ(scope_, Scope::read);
}

TEST_F(PluginRoutesTest, LoadedAndRejectedLibrariesAreListed) {
  fs::create_symlink(JOBQ_PLUGIN_DIR "/libjobq_storage_memory.so", folder_ / "libjobq_memory.so");
  std::ofstream(folder_ / "libjobq_wrong.so") << "no library";
  plugins_.load({folder_.path()});
  const Result<void>& second = plugins_.libraries().at(1).loaded;
  ASSERT_FALSE(second);
  const std::string& rejection = second.failure().message();
  const auto& entry = plugins_.libraries().at(0).entries.at(0);
  expectAnswer(
      call("GET", "/v1/plugins"), 200,
      R"([{"file":"libjobq_memory.so","state":"loaded","entries":[{"kind":"storage","name":"memory","version":")" +
          entry.version + R"(","selected":true,"options":[],"scripts":[{"name":"good","state":"loaded"},)" +
          R"({"name":"bad","state":"faulty","reason":"line 1: no \"function\""}]}]},)" +
          R"({"file":"libjobq_wrong.so","state":"rejected","reason":)" + json::quoted(rejection) +
          R"(,"entries":[]}])");
}

class BackupRoutesTest : public testing::Test, protected test::RouteFixture {
 protected:
  BackupRoutesTest() { addBackupRoutes(router_, {backups_, "memory", draining_}); }

  test::UnitStorage memory_;
  test::CopiedStorage storage_{*memory_};
  const testkit::TemporaryFolder folder_;
  Backups backups_{storage_, folder_};
  std::atomic<bool> draining_ = false;
  std::atomic<bool> fenced_ = false;
};

TEST_F(BackupRoutesTest, ACopyIsTheBodyOfTheAnswer) {
  const ApiResponse response = call("POST", "/v1/backup");
  EXPECT_EQ(scope_, Scope::admin);
  expectAnswer(response, 200, "");
  EXPECT_EQ(headersOf(response), "Content-Type: application/octet-stream\nCache-Control: no-store\n");
  ASSERT_TRUE(response.file);
  std::string text(response.file->size(), '\0');
  EXPECT_EQ(::read(response.file->descriptor(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
  EXPECT_EQ(text, "content");
}

TEST_F(BackupRoutesTest, ASecondCopyIsRefusedUntilTheFirstIsSent) {
  {
    const ApiResponse first = call("POST", "/v1/backup");
    ASSERT_EQ(first.status, 200);
    const ApiResponse second = call("POST", "/v1/backup");
    expectAnswer(second, 409, R"({"message":"another backup is being written or sent: try again when it has ended"})");
    EXPECT_FALSE(second.file);
  }
  EXPECT_EQ(call("POST", "/v1/backup").status, 200);
}

TEST_F(BackupRoutesTest, AShutdownBeginsNoCopy) {
  storage_.endless = true;
  backups_.stop();
  const ApiResponse stopped = call("POST", "/v1/backup");
  expectAnswer(
      stopped, 503,
      R"({"message":"the backup was stopped, because the server is shutting down: call POST /v1/backup again after its next start"})");
  EXPECT_EQ(headersOf(stopped), "Retry-After: 1\n");
  draining_ = true;
  expectAnswer(call("POST", "/v1/backup"), 503,
               R"({"message":"the server is shutting down: call POST /v1/backup again after its next start"})");
  EXPECT_EQ(storage_.begun, 1) << "the draining server asks for no copy";
}

TEST_F(BackupRoutesTest, AStorageWithoutCopiesIsNamed) {
  Backups none(*memory_, folder_);
  Router router;
  addBackupRoutes(router, {none, "memory", draining_});
  router_ = std::move(router);
  expectAnswer(call("POST", "/v1/backup"), 409,
               R"({"message":"the storage memory cannot be copied by the server: use storage = sqlite, )"
               R"(or the tools of its own database"})");
}

TEST_F(BackupRoutesTest, AFailingCopyIsNoAnswerAndGivesThePlaceBack) {
  storage_.broken = true;
  EXPECT_THROW((void)call("POST", "/v1/backup"), StorageError);
  storage_.broken = false;
  EXPECT_EQ(call("POST", "/v1/backup").status, 200);
}

}  // namespace
}  // namespace jobq
