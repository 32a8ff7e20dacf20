// Tests of a host of the next ABI minor, compiled against headers with an additional virtual function, field and type
// (make_sdk.py). The present plugins are older plugins of such a host.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/plugin/plugin_file.h"
#include "core/plugin/plugin_host.h"
#include "jobq/abi.h"
#include "testkit/loaded_plugin.h"
#include "testkit/manual_clock.h"
#include "testkit/temporary_folder.h"
#include "testkit/thrown_text.h"

namespace {

using namespace jobq;
using testing::AllOf;
using testing::HasSubstr;
namespace fs = std::filesystem;

class NextMinorTest : public testing::Test {
 protected:
  static fs::path fixture(const std::string& name) { return fs::path(JOBQ_FIXTURE_DIR) / ("libjobq_" + name + ".so"); }

  // Loads the fixture's policy through the host.
  std::unique_ptr<QueuePolicy> load(const std::string& name) {
    fs::copy_file(fixture(name), dir_ / "libjobq_it.so");
    host_.load({dir_});
    EXPECT_TRUE(host_.libraries().at(0).loaded);
    return host_.create<QueuePolicy>("fixture", {clock_, dir_, dir_, dir_, false}, log_);
  }

  static std::string refusal(const PluginManifest& manifest) {
    return testkit::thrownText<Error>([&] { return checkManifest(manifest); });
  }

  const testkit::TemporaryFolder dir_;
  std::map<std::string, std::string> settings_;
  testkit::SilentLog log_;
  testkit::ManualClock clock_;
  PluginHost host_{settings_, log_};
};

TEST_F(NextMinorTest, AnOlderPluginIsLoadedAndTheMissingVirtualIsNotCalled) {
  const auto policy = load("good");
  EXPECT_EQ(policy->abiMinor(), jobq::abi::kMinor - 1);
  EXPECT_EQ(policy->rank({}, {}, {}), 1);
  EXPECT_EQ(policy->summary({}), "no summary");
}

TEST_F(NextMinorTest, APluginOfTheSameMinorIsAskedForIt) {
  const auto policy = load("next_minor");
  EXPECT_EQ(policy->abiMinor(), jobq::abi::kMinor);
  EXPECT_EQ(policy->rank({}, {}, {}), 3);
  EXPECT_EQ(policy->summary({}), "ranks on 2 processors");
}

TEST_F(NextMinorTest, AnOlderManifestLacksTypesAndTheEndOfOpenTypes) {
  const PluginManifest older = readPluginFile(fixture("good"));
  const PluginManifest same = readPluginFile(fixture("next_minor"));
  EXPECT_FALSE(older.fields.contains("layout.queue.Summary"));
  EXPECT_THAT(same.fields.at("layout.plugin.PluginEnv"),
              testing::StartsWith(older.fields.at("layout.plugin.PluginEnv")));
  EXPECT_NE(same.fields.at("layout.plugin.PluginEnv"), older.fields.at("layout.plugin.PluginEnv"));
}

TEST_F(NextMinorTest, AnOlderOpenTypeHasToBeAPrefix) {
  PluginManifest older = readPluginFile(fixture("good"));
  older.fields["layout.plugin.PluginEnv"] = "config@0+8,log@8+8,";
  EXPECT_THAT(refusal(older), AllOf(HasSubstr("layout.plugin.PluginEnv: the plugin has config@0+8,log@8+8,"),
                                    HasSubstr("this server config@0+8,clock@8+8,"), HasSubstr("rebuild")));
}

TEST_F(NextMinorTest, AnOlderClosedTypeHasToBeEqual) {
  PluginManifest older = readPluginFile(fixture("good"));
  older.fields["layout.queue.GroupState"] = "16/8 lastRank@0+16,;";
  EXPECT_THAT(refusal(older), HasSubstr("layout.queue.GroupState: the plugin has 16/8 lastRank@0+16,;"));
}

TEST_F(NextMinorTest, APluginOfTheSameMinorHasEveryTypeWhole) {
  PluginManifest same = readPluginFile(fixture("next_minor"));
  same.fields["layout.plugin.PluginEnv"] = readPluginFile(fixture("good")).fields["layout.plugin.PluginEnv"];
  EXPECT_THAT(refusal(same), HasSubstr("layout.plugin.PluginEnv: the plugin has"));
  same = readPluginFile(fixture("next_minor"));
  same.fields.erase("layout.queue.Summary");
  EXPECT_THAT(refusal(same), HasSubstr("layout.queue.Summary: the plugin has none"));
}

}  // namespace
