// Tests of the commands of jobqctl about keys, plugins, templates, endpoints, releases, webhooks and backups: requests
// sent, texts printed, exit codes (core/cli/*_commands.cpp, core/cli/commands/backup_command.cpp).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "cli_fixture.h"
#include "testkit/temporary_folder.h"

namespace jobq::cli {
namespace {

namespace fs = std::filesystem;

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

class CliManagementTest : public testing::Test, protected CliFixture {};

TEST_F(CliManagementTest, AKeyIsMadeForClientsUnlessScopesAreGiven) {
  const std::string made =
      R"({"id":"k1","name":"ci","scopes":["client"],"endpoints":[],"expiresAt":null,"key":"secret"})";
  expectEnd(runWith(made, {"key", "create", "ci"}), 0,
            "id         k1\nname       ci\nscopes     client\nendpoints  all\nexpires    -\nkey        secret\n"
            "\nThe key is shown only now: the server keeps no copy of it.\n");
  expectEnd(runWith(made, {"key", "create", "a \"b\"", "--scope", "admin", "--scope", "worker", "--endpoint", "e1",
                           "--expires", "2027-01-01T00:00:00Z", "--json"}),
            0, made + "\n");
  EXPECT_THAT(server_.calls(),
              ElementsAre(R"(POST /v1/keys {"name":"ci","scopes":["client"]})",
                          R"(POST /v1/keys {"name":"a \"b\"","scopes":["admin","worker"],"endpoints":["e1"],)"
                          R"("expiresAt":"2027-01-01T00:00:00Z"})"));
}

TEST_F(CliManagementTest, KeysAreListedAndRevoked) {
  expectEnd(runWith(R"([{"id":"k1","name":"ci\u001b","scopes":["client","admin"],"endpoints":["a","b"],)"
                    R"("createdAt":"T1","expiresAt":null,"lastUsedAt":"T2"}])",
                    {"key", "list"}),
            0,
            "ID  NAME  SCOPES        ENDPOINTS  CREATED  EXPIRES  LAST USED\n"
            "k1  ci?   client,admin  a,b        T1       -        T2\n");
  expectEnd(runWith("", {"key", "revoke", "a/b"}), 0, "The key a/b is revoked.\n");
  expectEnd(runWith("", {"key", "revoke", "k", "--json"}), 0, "");
  EXPECT_THAT(server_.calls(), ElementsAre("GET /v1/keys?limit=1000", "DELETE /v1/keys/a%2Fb", "DELETE /v1/keys/k"));
  EXPECT_EQ(runWith("{}", {"key", "list"}).code, 3) << "no array";
  server_.answer(R"({"message":"the key is the last admin key"})", "409 Conflict");
  expectEnd(run({"key", "revoke", "k"}), 1, "the key is the last admin key");
}

TEST_F(CliManagementTest, TheKeyInUseIsShown) {
  const std::string own = R"({"id":"k1","name":"ci","scopes":["read","submit"],"endpoints":["a"],"expiresAt":"T1"})";
  expectEnd(runWith(own, {"me"}), 0,
            "id         k1\nname       ci\nscopes     read,submit\nendpoints  a\nexpires    T1\n");
  expectEnd(runWith(own, {"me", "--json"}), 0, own + "\n");
  EXPECT_THAT(server_.calls(), ElementsAre("GET /v1/me", "GET /v1/me"));
}

// A list of the server has up to 1,000 elements a page, in the order of the ids.
class LongListTest : public CliManagementTest {
 protected:
  /// Returns `count` elements, whose ids begin with `prefix` and have four digits.
  static std::string page(const std::string& prefix, int count) {
    std::string text;
    for (int i = 0; i < count; ++i) {
      text += (i == 0 ? "" : ",") + (R"({"id":")" + prefix) + std::to_string(1'000 + i) + "\"}";
    }
    return text;
  }
};

TEST_F(LongListTest, ALongListIsReadPageByPage) {
  for (const char* kind : {"key", "endpoint", "template"}) {
    server_.answer("[" + page("a", 1'000) + "]");
    server_.answer("[" + page("b", 1'000) + "]");
    server_.answer("[" + page("c", 2) + "]");
    expectEnd(run({kind, "list", "--json"}), 0,
              "[" + page("a", 1'000) + "," + page("b", 1'000) + "," + page("c", 2) + "]\n");
  }
  server_.answer("[" + page("a", 1'000) + "]");
  server_.answer("[]");
  expectEnd(run({"key", "list", "--json"}), 0, "[" + page("a", 1'000) + "]\n");
  const std::vector<std::string> calls = server_.calls();
  EXPECT_EQ(calls.at(0), "GET /v1/keys?limit=1000");
  EXPECT_EQ(calls.at(1), "GET /v1/keys?limit=1000&cursor=a1999");
  EXPECT_EQ(calls.at(2), "GET /v1/keys?limit=1000&cursor=b1999");
}

TEST_F(LongListTest, AServerWithoutPagesAnswersOnce) {
  for (const int count : {1'000, 1'001}) {
    const std::string whole = "[" + page("a", count) + "]";
    server_.answer(whole);
    server_.answer(whole);
    expectEnd(run({"key", "list", "--json"}), 0, whole + "\n");
  }
}

constexpr const char* kPlugins =
    R"([{"file":"a.so","state":"loaded","entries":[{"kind":"storage","name":"x","version":"1","selected":true,)"
    R"("options":[{"key":"x.size","type":"size","value":"1MB","default":"2MB","range":"","help":"how much"}],)"
    R"("scripts":[]},{"kind":"handler","name":"lua","version":"2","selected":false,"options":[],"scripts":[)"
    R"({"name":"good","state":"loaded"},{"name":"bad","state":"faulty","reason":"line 1"}]}]},)"
    R"({"file":"b.so","state":"rejected","reason":"no library","entries":[]},)"
    R"({"file":"c.so","state":"loaded","entries":[{"kind":"filter","name":"x","version":"3","selected":false}]}])";

TEST_F(CliManagementTest, PluginsAreListedWithTheReasonOfARejection) {
  expectEnd(runWith(kPlugins, {"plugin", "list"}), 0,
            "FILE  STATE     KIND     NAME  VERSION  SELECTED  REASON\n"
            "a.so  loaded    storage  x     1        yes       -\n"
            "a.so  loaded    handler  lua   2        no        faulty scripts: bad\n"
            "b.so  rejected  -        -     -        -         no library\n"
            "c.so  loaded    filter   x     3        no        -\n");
}

TEST_F(CliManagementTest, APluginIsDescribedByNameOrByKindAndName) {
  expectEnd(runWith(kPlugins, {"plugin", "describe", "storage.x"}), 0,
            "name      x\nkind      storage\nversion   1\nselected  yes\nfile      a.so\n\n"
            "KEY     VALUE  TYPE  DEFAULT  RANGE  HELP\n"
            "x.size  1MB    size  2MB      -      how much\n");
  expectEnd(runWith(kPlugins, {"plugin", "describe", "lua"}), 0,
            "name      lua\nkind      handler\nversion   2\nselected  no\nfile      a.so\n\n"
            "The plugin has no options.\n\n"
            "SCRIPT  STATE   REASON\n"
            "good    loaded  -\n"
            "bad     faulty  line 1\n");
  expectEnd(runWith(kPlugins, {"plugin", "describe", "filter.x", "--json"}), 0,
            R"({"kind":"filter","name":"x","version":"3","selected":false})"
            "\n");
  expectEnd(runWith(kPlugins, {"plugin", "describe", "x"}), 2,
            "'x' names more than one plugin: write storage.x or filter.x");
  expectEnd(runWith(kPlugins, {"plugin", "describe", "y"}), 1,
            "no plugin is named 'y'; `jobqctl plugin list` shows them");
}

TEST_F(CliManagementTest, TemplatesAreMadeChangedShownAndDeleted) {
  const std::string form = R"({"id":"t1","name":"n","env":{"A":"1"},"ports":[]})";
  const std::string shown = "id     t1\nname   n\nenv    {\"A\":\"1\"}\nports  []\n";
  expectEnd(runWith(form, {"template", "create", "--name", "n", "--image", "plugin/echo", "--env", "A=1", "--env",
                           "B=x=y", "--volume", "7", "--public", "true"}),
            0, shown);
  expectEnd(runWith(form, {"template", "update", "t/1", "--port", "80/http", "--port", "22/tcp"}), 0, shown);
  expectEnd(runWith(form, {"template", "show", "t1", "--json"}), 0, form + "\n");
  expectEnd(runWith("", {"template", "delete", "t1"}), 0, "The template t1 is deleted.\n");
  EXPECT_EQ(run({"template", "update", "t1", "--category", "CPU"}).code, 2) << "fixed after the creation";
  const auto calls = server_.calls();
  ASSERT_EQ(calls.size(), 4U);
  EXPECT_THAT(calls[0], StartsWith("POST /v1/templates {"));
  for (const char* part : {R"("name":"n")", R"("imageName":"plugin/echo")", R"("env":{"A":"1","B":"x=y"})",
                           R"("volumeInGb":7)", R"("isPublic":true)"}) {
    EXPECT_THAT(calls[0], HasSubstr(part));
  }
  EXPECT_EQ(calls[1], R"(POST /v1/templates/t%2F1/update {"ports":["80/http","22/tcp"]})");
  EXPECT_EQ(calls[2], "GET /v1/templates/t1");
  EXPECT_EQ(calls[3], "DELETE /v1/templates/t1");
}

TEST_F(CliManagementTest, TemplatesAreListed) {
  expectEnd(runWith(R"([{"id":"t1","name":"n","imageName":"plugin/echo","category":"CPU","containerDiskInGb":1,)"
                    R"("volumeInGb":2,"isServerless":true,"isPublic":false,"runtimeInMin":3}])",
                    {"template", "list"}),
            0,
            "ID  NAME  IMAGE        CATEGORY  DISK GB  VOLUME GB  SERVERLESS  PUBLIC  RUNTIME MIN\n"
            "t1  n     plugin/echo  CPU       1        2          true        false   3\n");
}

TEST_F(CliManagementTest, EndpointsAreListed) {
  expectEnd(runWith(R"([{"id":"e1","name":"n","image":"plugin/echo","templateId":"t1","workersMin":0,"workersMax":3,)"
                    R"("version":2,"release":{"state":"rolling"},"paused":true,"static":false},)"
                    R"({"id":"e2","static":true}])",
                    {"endpoint", "list"}),
            0,
            "ID  NAME  IMAGE        TEMPLATE  WORKERS  VERSION  RELEASE  PAUSED  FROM\n"
            "e1  n     plugin/echo  t1        0-3      2        rolling  yes     template\n"
            "e2  -     -            -         ---      -        -        no      file\n");
}

TEST_F(CliManagementTest, AnEndpointIsShownWithWorkersOnDemand) {
  const std::string endpoint =
      R"({"id":"e1","workers":[{"id":"w","node":"n","state":"idle","slsVersion":2,"image":"plugin/echo","lastStartedAt":"T"}]})";
  expectEnd(runWith(endpoint, {"endpoint", "show", "e1"}), 0, "id  e1\n");
  expectEnd(runWith(endpoint, {"endpoint", "show", "e1", "--workers"}), 0,
            "id  e1\n\n"
            "WORKER  STATE  VERSION  IMAGE        STARTED  NODE\n"
            "w       idle   2        plugin/echo  T        n\n");
  expectEnd(runWith(endpoint, {"endpoint", "show", "e1", "--workers", "--json"}), 0, endpoint + "\n");
  EXPECT_THAT(server_.calls(), ElementsAre("GET /v1/endpoints/e1", "GET /v1/endpoints/e1?includeWorkers=true",
                                           "GET /v1/endpoints/e1?includeWorkers=true"));
}

TEST_F(CliManagementTest, EndpointsAreMadeChangedPausedAndDeleted) {
  const std::string endpoint = R"({"id":"e1"})";
  expectEnd(runWith(endpoint, {"endpoint", "create", "--template", "t1", "--workers-max", "5"}), 0, "id  e1\n");
  expectEnd(runWith(endpoint, {"endpoint", "update", "e1", "--filters", ""}), 0, "id  e1\n");
  expectEnd(runWith(endpoint, {"endpoint", "update", "e1", "--filters", "a,b"}), 0, "id  e1\n");
  expectEnd(runWith(endpoint, {"endpoint", "pause", "e1"}), 0,
            "The endpoint e1 is paused: its jobs wait, running jobs continue.\n");
  expectEnd(runWith(endpoint, {"endpoint", "resume", "e1"}), 0, "The endpoint e1 is no longer paused.\n");
  expectEnd(runWith("", {"endpoint", "delete", "e1"}), 0, "The endpoint e1 is deleted with all its jobs.\n");
  EXPECT_THAT(server_.calls(),
              ElementsAre(R"(POST /v1/endpoints {"templateId":"t1","workersMax":5})",
                          R"(POST /v1/endpoints/e1/update {"filters":[]})",
                          R"(POST /v1/endpoints/e1/update {"filters":["a","b"]})", "POST /v1/endpoints/e1/pause",
                          "POST /v1/endpoints/e1/resume", "DELETE /v1/endpoints/e1"));
}

TEST_F(CliManagementTest, AReleaseIsShownAndTheOutcomeIsTheExitCode) {
  const auto release = [](const std::string& state) {
    return R"({"id":"e1","release":{"version":7,"state":")" + state +
           R"(","reason":"no memory"},"workers":[{"slsVersion":7},{"slsVersion":6},{"slsVersion":7}]})";
  };
  EXPECT_EQ(runWith(release("halted"), {"release", "status", "e1"}).code, 0)
      << "only --wait fails for a halted release";
  expectEnd(runWith(release("halted"), {"release", "status", "e1", "--wait"}), 5,
            "ENDPOINT  VERSION  STATE   WORKERS            REASON\n"
            "e1        7        halted  2 have 7, 1 has 6  no memory\n");
  EXPECT_EQ(runWith(release("complete"), {"release", "status", "e1", "--wait"}).code, 0);
  EXPECT_EQ(runWith(release("rolling"), {"release", "status", "e1", "--wait", "--timeout", "0s"}).code, 6);
  server_.answer(release("rolling"));
  server_.answer(release("complete"));
  EXPECT_THAT(run({"release", "status", "e1", "--wait"}).text, HasSubstr("complete")) << "the command asks again";
  expectEnd(runWith(R"([{"id":"e2"}])", {"release", "status"}), 0,
            "ENDPOINT  VERSION  STATE  WORKERS  REASON\n"
            "e2        -        -      none     -\n");
  expectEnd(run({"release", "status", "--timeout", "5s"}), 2, "--timeout has a meaning only with --wait");
  EXPECT_EQ(server_.calls().back(), "GET /v1/endpoints?includeWorkers=true");
  EXPECT_EQ(server_.calls().front(), "GET /v1/endpoints/e1?includeWorkers=true");
}

TEST_F(CliManagementTest, WebhooksAreListedAndReplayed) {
  expectEnd(runWith(R"([{"id":"j.0","state":"owed","jobId":"j","jobStatus":"FAILED","url":"http://h/","dueAt":"T",)"
                    R"("attempts":[{"status":200,"reason":""},{"status":500,"reason":"slow"}]},)"
                    R"({"id":"j.1","state":"delivered","attempts":[]}])",
                    {"webhook", "list", "--job", "j&", "--endpoint", "e", "--limit", "5"}),
            0,
            "ID   STATE      JOB  JOB STATUS  ATTEMPTS  LAST       DUE  URL\n"
            "j.0  owed       j    FAILED      2         500: slow  T    http://h/\n"
            "j.1  delivered  -    -           0         -          -    -\n");
  expectEnd(run({"webhook", "list"}), 2,
            "webhook list needs --job ID, --endpoint ID or --state STATE: name a job, an endpoint or a state");
  expectEnd(runWith(R"({"id":"j.0","state":"owed"})", {"webhook", "replay", "j.0"}), 0,
            "The webhook j.0 is owed again; `jobqctl webhook list` shows its outcome.\n");
  EXPECT_THAT(server_.calls(),
              ElementsAre("GET /v1/webhooks?jobId=j%26&endpointId=e&limit=5", "POST /v1/webhooks/j.0/replay"));
}

class CliBackupTest : public CliManagementTest {
 protected:
  static std::string contentOf(const fs::path& file) {
    std::ifstream in(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  const testkit::TemporaryFolder folder_;
  const fs::path made_ = folder_ / "new/deep";
};

TEST_F(CliBackupTest, OnlyACompleteCopyHasTheFinalName) {
  server_.answer("content", "200 OK", "Content-Type: application/octet-stream\r\n");
  const std::string file = (made_ / "jobq.db").string();
  expectEnd(run({"backup", made_.string()}), 0,
            "file   " + file +
                "\nbytes  7\n\nThe copy does not hold the server's secret.key: copy that file once, and "
                "keep it apart from the backups.\n");
  EXPECT_EQ(contentOf(file), "content");
  struct stat status {};
  ASSERT_EQ(::stat(file.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0600U);
  ASSERT_EQ(::stat(made_.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0700U);
  expectEnd(run({"backup", made_.string()}), 2, made_.string() + " has a jobq.db already: name another directory");
  EXPECT_THAT(server_.calls(), ElementsAre("POST /v1/backup"));
}

TEST_F(CliBackupTest, AFailedCopyLeavesNoFile) {
  server_.answer(R"({"message":"another backup is being written"})", "409 Conflict");
  expectEnd(run({"backup", made_.string()}), 1, "another backup is being written");
  server_.answerRaw("HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\nContent-Length: 9\r\n\r\nhalf");
  expectEnd(run({"backup", made_.string()}), 3, "the connection ended in the middle of the server's answer");
  EXPECT_TRUE(fs::is_empty(made_));
}

TEST_F(CliBackupTest, ADirectoryFailureIsNamed) {
  std::ofstream(folder_ / "file") << "x";
  EXPECT_THAT(run({"backup", (folder_ / "file").string()}).text,
              StartsWith("the directory " + (folder_ / "file").string() + " cannot be made"));
  EXPECT_EQ(run({"backup", made_.string(), "--timeout", "1ms"}).code, 2);
  EXPECT_FALSE(fs::exists(made_));
  EXPECT_THAT(server_.calls(), IsEmpty());
}

}  // namespace
}  // namespace jobq::cli
