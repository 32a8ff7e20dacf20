// Tests of etc/jobq.properties: units, defaults, overrides, and the errors that stop the start.
#include "core/config/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "core/config/units.h"
#include "core/start_check.h"
#include "jobq/error.h"
#include "testkit/pace.h"
#include "testkit/temporary_folder.h"
#include "testkit/thrown_text.h"

namespace {

using namespace jobq;
using testing::HasSubstr;
using testing::Not;
using testing::Optional;

class ConfigTest : public testing::Test {
 protected:
  Config load(const std::string& text, const std::vector<std::pair<std::string, std::string>>& overrides = {}) {
    std::ofstream(dir_ / "jobq.properties") << text;
    return loadConfig(dir_ / "jobq.properties", overrides);
  }
  std::string refusal(const std::string& text) {
    return testkit::thrownText<ConfigError>([&] { return load(text); });
  }
  const testkit::TemporaryFolder dir_;
};

TEST_F(ConfigTest, AnEmptyFileGivesTheDefaults) {
  const Config config = load("");
  EXPECT_EQ(config.server.host, "127.0.0.1");
  EXPECT_EQ(config.server.port, 8000);
  EXPECT_EQ(config.server.drain, Millis(30'000));
  EXPECT_EQ(config.dataDir, dir_ / "jobq-data");
  EXPECT_EQ(config.secretKeyFile, dir_ / "jobq-data/secret.key");
  EXPECT_EQ(config.storage, "sqlite");
  EXPECT_FALSE(config.allowPrivateAddresses);
  EXPECT_FALSE(config.pluginPath.empty());
}

// The cost of a line must not grow with the number of lines: eight times as many lines cost eight times as much
// processor time, and a quadratic reader 64 times as much.
TEST_F(ConfigTest, EachLineOfALongFileCostsAsMuchAsALineOfAShortFile) {
  const auto cost = [this](int endpoints) {
    std::string text;
    for (int i = 0; i < endpoints; ++i) {
      const std::string prefix = "endpoint.e" + std::to_string(i);
      text += prefix + ".image = plugin/echo\n" + prefix + ".workersMin = 0\n";
    }
    const auto before = testkit::threadProcessorTime();
    EXPECT_EQ(load(text).endpoints.size(), static_cast<std::size_t>(endpoints));
    return testkit::threadProcessorTime() - before;
  };
  (void)cost(1'000);
  const auto few = cost(1'000);
  EXPECT_LE(cost(8'000), 24 * few);
}

TEST_F(ConfigTest, AnEndpointIsOneInTheOrderOfItsKeys) {
  const Config config =
      load("endpoint.a.image = plugin/echo\nendpoint.a-b.image = plugin/echo\nendpoint.a.workersMax = 7\n",
           {{"endpoint.a-b.workersMax", "9"}});
  ASSERT_EQ(config.endpoints.size(), 2U);
  EXPECT_EQ(config.endpoints[0].id, "a-b");
  EXPECT_EQ(config.endpoints[0].workersMax, 9U);
  EXPECT_EQ(config.endpoints[1].id, "a");
  EXPECT_EQ(config.endpoints[1].workersMax, 7U);
}

TEST_F(ConfigTest, AFolderIsNoConfigurationFile) {
  std::string refusal;
  try {
    (void)loadConfig(dir_.path(), {});
  } catch (const ConfigError& error) {
    refusal = error.what();
  }
  EXPECT_THAT(refusal, HasSubstr("is a folder: name the configuration file"));
}

TEST_F(ConfigTest, AnEmptyDataDirectoryIsRefused) {
  EXPECT_EQ(refusal("data.dir =\n"),
            (dir_ / "jobq.properties").string() + ":1: data.dir is empty: name the data directory");
}

TEST_F(ConfigTest, WebhookSecretsAreReadAsBytes) {
  EXPECT_EQ(load("").webhookTransports, std::vector<std::string>{"http"});
  EXPECT_EQ(load("").webhookKey, "");
  const Config config = load(
      "webhook.transports = http, file\nwebhook.secret = whsec_Zm9v\n"
      "endpoint.a.image = plugin/echo\nendpoint.a.webhookSecret = just text\n");
  EXPECT_EQ(config.webhookTransports, (std::vector<std::string>{"http", "file"}));
  EXPECT_EQ(config.webhookKey, "foo");
  EXPECT_EQ(config.endpoints.at(0).webhookSecret, "just text");
  for (const char* text : {"whsec_", "whsec_Zm9", "whsec_***="}) {
    const std::string refused = refusal(std::string("webhook.secret = ") + text);
    EXPECT_THAT(refused, HasSubstr("webhook.secret")) << text;
    EXPECT_THAT(refused, Not(HasSubstr("Zm9"))) << "a secret is not repeated";
  }
  EXPECT_EQ(load("webhook.http.x = 1").pluginSettings.count("webhook.http.x"), 1U);
}

TEST_F(ConfigTest, OwedWebhooksHaveBounds) {
  EXPECT_EQ(load("").webhookMaxAge, Millis(86'400'000));
  EXPECT_EQ(load("").webhookMaxOwed, 100'000U);
  const Config config = load("webhook.maxAge = 90m\nwebhook.maxOwed = 7\n");
  EXPECT_EQ(config.webhookMaxAge, Millis(5'400'000));
  EXPECT_EQ(config.webhookMaxOwed, 7U);
  for (const char* text : {"24", "999ms", "31d", "soon"}) {
    EXPECT_THAT(refusal(std::string("webhook.maxAge = ") + text), HasSubstr("webhook.maxAge")) << text;
  }
  for (const char* text : {"0", "-1", "100000001", "many"}) {
    EXPECT_THAT(refusal(std::string("webhook.maxOwed = ") + text), HasSubstr("webhook.maxOwed")) << text;
  }
  EXPECT_THAT(refusal("webhook.maxage = 1h"), HasSubstr("webhook.maxAge")) << "the nearest setting";
}

TEST_F(ConfigTest, EachGpuForLaunchedWorkersIsNamedOnce) {
  EXPECT_TRUE(load("").launcherGpus.empty());
  EXPECT_EQ(load("launcher.gpus = 0, GPU-5a1c, nvidia.com/gpu=1\n").launcherGpus,
            (std::vector<std::string>{"0", "GPU-5a1c", "nvidia.com/gpu=1"}));
  EXPECT_THAT(refusal("launcher.gpus = 0, 1, 0\n"), HasSubstr("launcher.gpus names 0 twice"));
  EXPECT_THAT(refusal("launcher.gpus = 0 1\n"), HasSubstr("write ids such as 0, 1"));
}

TEST_F(ConfigTest, ValuesCarryUnitsAndPathsStartAtTheFile) {
  const Config config = load(
      "server.port = 9000\nserver.drain = 500ms\ndata.dir = d\nplugins.path = p:/q\n"
      "endpoint.a.image = plugin/echo\nendpoint.a.workersMax = 7\nendpoint.a.idleTimeout = 2m\n"
      "endpoint.a.env.NAME = value\nendpoint.env.image = plugin/x\nendpoint.env.env.NAME = "
      "other\nstorage.sqlite.readers = 2\n"
      "endpoint.b.image = ${endpoint.a.image}\nendpoint.b.queuePolicy = fifo\n");
  EXPECT_EQ(config.server.port, 9000);
  EXPECT_EQ(config.server.drain, Millis(500));
  EXPECT_EQ(config.dataDir, dir_ / "d");
  EXPECT_EQ(config.pluginPath, (std::vector<std::filesystem::path>{dir_ / "p", "/q"}));
  ASSERT_EQ(config.endpoints.size(), 3U);
  EXPECT_EQ(config.endpoints[0].workersMax, 7U);
  EXPECT_EQ(config.endpoints[0].idleTimeout, Millis(120'000));
  EXPECT_EQ(config.endpoints[0].env.at("NAME"), "value");
  EXPECT_EQ(config.endpoints[0].queuePolicy, "priority");
  EXPECT_EQ(config.endpoints[1].image, "plugin/echo") << "references are followed";
  EXPECT_EQ(config.endpoints[1].queuePolicy, "fifo");
  EXPECT_EQ(config.endpoints[2].env, (std::map<std::string, std::string>{{"NAME", "other"}}));
  EXPECT_EQ(config.pluginSettings.at("storage.sqlite.readers"), "2");
}

TEST_F(ConfigTest, TheDoorHasItsSettings) {
  const Config config = load(
      "server.threads = 4\nserver.waiting = 7\nserver.bodyMemory = 20MB\nserver.tls.certificate = "
      "c.pem\nserver.tls.key = /k.pem\n"
      "server.connectionsPerAddress = 7\n");
  EXPECT_EQ(config.server.connectionsPerAddress, 7U);
  EXPECT_EQ(config.server.threads, 4);
  EXPECT_EQ(config.server.waiting, 7);
  EXPECT_EQ(load("").server.waiting, 100'000);
  EXPECT_GE(load("").server.threads, 128);
  EXPECT_LE(load("").server.threads, 1024);
  EXPECT_EQ(config.server.bodyMemory, 20UL << 20);
  EXPECT_EQ(config.server.tlsCertificate, dir_ / "c.pem");
  EXPECT_EQ(config.server.tlsKey, "/k.pem");
  EXPECT_EQ(load("").server.bodyMemory, 1UL << 30);
  EXPECT_THAT(refusal("server.threads = 3\n"), HasSubstr("server.threads"));
  EXPECT_THAT(refusal("server.waiting = 0\n"), HasSubstr("server.waiting"));
  EXPECT_THAT(refusal("server.bodyMemory = 19MB\n"), HasSubstr("server.bodyMemory")) << "a 20 MB body never fits";
  EXPECT_THAT(refusal("server.tls.key = k.pem\n"), HasSubstr("belong together"));
}

TEST_F(ConfigTest, OriginsAreWrittenLikeInBrowsers) {
  EXPECT_TRUE(load("").server.corsOrigins.empty());
  EXPECT_EQ(load("server.cors.origins = https://a.example, http://localhost:3000\n").server.corsOrigins,
            (std::set<std::string>{"https://a.example", "http://localhost:3000"}));
  EXPECT_EQ(load("server.cors.origins = *\n").server.corsOrigins, std::set<std::string>{"*"});
  checkOrigins(load("server.cors.origins = https://a.example, http://localhost:3000, http://[::1]:8080\n"));
  checkOrigins(load("server.cors.origins = *\n"));
  const auto refusalOf = [this](const std::string& origin) {
    const auto check = [&] { checkOrigins(load("server.cors.origins = " + origin + "\n")); };
    EXPECT_THROW(check(), ConfigError) << origin;
    return testkit::thrownText<ConfigError>(check);
  };
  for (const std::string origin :
       {"a.example", "ftp://a", "https://", "null", "http://::", "https://[[", "http://a:0"}) {
    EXPECT_THAT(refusalOf(origin), HasSubstr("write origins such as https://app.example.com")) << origin;
  }
  for (const std::string origin :
       {"https://a.example/", "https://A.example", "https://a.example:443", "https://u@a.example"}) {
    EXPECT_THAT(refusalOf(origin), HasSubstr("browsers send https://a.example")) << origin;
  }
  EXPECT_THAT(refusalOf("https://b\xc3\xbc"
                        "cher.example"),
              HasSubstr("xn--"));
  EXPECT_THAT(refusalOf("http://[2001:db8::1:1:1:1:1]"), HasSubstr("browsers send http://[2001:db8:0:1:1:1:1:1]"));
  for (const std::string origin : {"http://1.2.3.4.", "http://[::ffff:127.0.0.1]"}) {
    EXPECT_THAT(refusalOf(origin), HasSubstr("server.cors.origins")) << origin;
  }
}

TEST_F(ConfigTest, OverridesWin) {
  EXPECT_EQ(load("server.port = 9000\n", {{"server.port", "9001"}}).server.port, 9001);
}

TEST_F(ConfigTest, AnUnknownKeyNamesTheNearestKey) {
  EXPECT_THAT(refusal("server.prot = 1\n"), HasSubstr("server.port"));
  EXPECT_THAT(refusal("endpoint.a.image = plugin/echo\nendpoint.a.workerMax = 1\n"),
              HasSubstr("endpoint.a.workersMax"));
}

TEST_F(ConfigTest, ARepeatedKeyInTheFileIsRefused) {
  EXPECT_THAT(refusal("server.port = 1\nstorage = memory\nserver.port: 2\n"), HasSubstr("server.port appears twice"));
  EXPECT_EQ(load("server.port = 1\n#server.port = 2\n", {{"server.port", "3"}, {"server.port", "4"}}).server.port, 4);
}

TEST_F(ConfigTest, PrivateAddressesBehindAnOpenPortAreAWarning) {
  for (const char* host : {"127.0.0.1", "127.8.0.1", "::1", "localhost"}) {
    EXPECT_EQ(exposureOf(load("net.allowPrivate = true\nserver.host = " + std::string(host))), std::nullopt) << host;
  }
  EXPECT_EQ(exposureOf(load("server.host = 0.0.0.0")), std::nullopt);
  EXPECT_THAT(exposureOf(load("net.allowPrivate = true\nserver.host = 0.0.0.0")),
              Optional(HasSubstr("net.allowPrivate")));
  EXPECT_THAT(exposureOf(load("net.allowPrivate = true\nserver.host = ::")), Optional(HasSubstr("server.host = ::")));
}

TEST_F(ConfigTest, TheShippedFileIsSafeAndTheDevelopmentFileIsForTrials) {
  const auto trials = [](const Config& config) {
    return std::count_if(config.endpoints.begin(), config.endpoints.end(),
                         [](const EndpointSpec& endpoint) { return endpoint.image == "plugin/trial"; });
  };
  const std::filesystem::path etc = std::filesystem::path(JOBQ_SOURCE_DIR) / "etc";
  const Config shipped = loadConfig(etc / "jobq.properties", {});
  EXPECT_FALSE(shipped.allowPrivateAddresses);
  EXPECT_EQ(trials(shipped), 0);
  const Config development = loadConfig(etc / "development.properties", {});
  EXPECT_TRUE(development.allowPrivateAddresses);
  EXPECT_EQ(trials(development), 1);
  EXPECT_NE(development.dataDir, shipped.dataDir);
}

TEST_F(ConfigTest, AWrongValueNamesKeyValueAndRange) {
  EXPECT_THAT(refusal("server.port = 70000\n"), HasSubstr("server.port = 70000 is not a whole number from 0 to 65535"));
  EXPECT_THAT(refusal("server.drain = 30\n"), HasSubstr("500ms 5s 10m"));
  EXPECT_THAT(refusal("log.level = loud\n"), HasSubstr("debug, information, warning, error"));
  EXPECT_THAT(refusal("net.allowPrivate = yes\n"), HasSubstr("true or false"));
  EXPECT_THAT(refusal("endpoint.a.workersMax = 2\n"), HasSubstr("endpoint.a.image is missing"));
  EXPECT_THAT(refusal("endpoint.a.image = plugin/echo\nendpoint.a.workersMin = 5\n"), HasSubstr("workersMin"));
  EXPECT_THAT(refusal("endpoint.a b.image = x\n"), HasSubstr("A-Z a-z 0-9 _ -"));
}

TEST_F(ConfigTest, PlannedFeaturesCannotBeSwitchedOn) {
  EXPECT_THAT(refusal("endpoint.a.image = plugin/echo\nendpoint.a.isolation = process\n"), HasSubstr("thread"));
}

TEST_F(ConfigTest, LimitsAreOnUnlessSwitchedOffAndCanBeChangedSeparately) {
  EXPECT_TRUE(load("").limits.enabled);
  EXPECT_TRUE(load("").limits.queue);
  const LimitsConfig limits = load(
                                  "limits.enabled = false\nlimits.run.requests = 7\nlimits.purgeQueue.window = 1m\n"
                                  "limits.requests.concurrent = 0\nlimits.statusSync.perWorker = 3\n")
                                  .limits;
  EXPECT_FALSE(limits.enabled);
  const auto at = [&limits](Operation operation) { return limits.operations[static_cast<std::size_t>(operation)]; };
  EXPECT_EQ(at(Operation::run).requests, 7U);
  EXPECT_EQ(at(Operation::run).window, std::nullopt);
  EXPECT_EQ(at(Operation::purgeQueue).window, Millis(60'000));
  EXPECT_EQ(at(Operation::requests).concurrent, 0U);
  EXPECT_EQ(at(Operation::statusSync).perWorker, 3U);
  EXPECT_THAT(refusal("limits.rum.requests = 7\n"), HasSubstr("limits.run.requests"));
  EXPECT_THAT(refusal("limits.run.requests = many\n"), HasSubstr("limits.run.requests"));
}

TEST_F(ConfigTest, AMissingFileIsNamed) { EXPECT_THROW(loadConfig(dir_ / "none.properties", {}), ConfigError); }

TEST(Units, SizesAndDurationsPrintAsWritten) {
  EXPECT_EQ(units::size("k", "10MB", 0, 1UL << 40), 10UL << 20);
  EXPECT_EQ(units::size("k", "512B", 0, 1UL << 40), 512U);
  EXPECT_EQ(units::printSize(10UL << 20), "10MB");
  EXPECT_EQ(units::printSize(1500), "1500B");
  EXPECT_EQ(units::print(Millis(90'000)), "90s");
  EXPECT_EQ(units::print(Millis(86'400'000)), "1d");
  EXPECT_EQ(units::print(Millis(0)), "0ms");
  for (const char* bad : {"", "10", "MB", "-1MB", "1.5MB", "1mb", "99999999999GB", "10 MB"}) {
    EXPECT_THROW(units::size("k", bad, 0, 1UL << 40), ConfigError) << bad;
  }
}

}  // namespace
