// Tests of the plugin objects in use: one for each name, made at the first use (core/plugin_instances.h).
#include "core/plugin_instances.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <string>

#include "jobq/error.h"
#include "testkit/manual_clock.h"
#include "testkit/recording_log.h"
#include "testkit/temporary_folder.h"

namespace {

using namespace jobq;
using testing::HasSubstr;
using testing::ThrowsMessage;

class PluginInstancesTest : public testing::Test {
 protected:
  PluginInstancesTest() {
    namespace fs = std::filesystem;
    for (const char* folder : {"handlers", "filters"}) fs::create_directory(dir_ / folder);
    fs::copy_file(fs::path(JOBQ_FIXTURE_DIR) / "libjobq_good.so", dir_ / "libjobq_good.so");
    fs::copy_file(fs::path(JOBQ_PLUGIN_DIR) / "libjobq_lua.so", dir_ / "libjobq_lua.so");
    host_.load({dir_});
    config_.queuePolicy = "fixture";
    config_.storage = "missing";
  }

  const testkit::TemporaryFolder dir_;
  testkit::ManualClock clock_;
  testkit::RecordingLog log_;
  const std::map<std::string, std::string> settings_;
  Config config_;
  PluginHost host_{settings_, log_};
  PluginInstances instances_{config_, host_, {clock_, dir_, dir_ / "handlers", dir_ / "filters", false}, log_};
};

TEST_F(PluginInstancesTest, ANameLeadsToOneInstance) {
  EXPECT_EQ(*instances_.handler("lua"), *instances_.handler("lua"));
  EXPECT_EQ(*instances_.policy("fixture"), *instances_.policy("")) << "the policy of the server";
  EXPECT_EQ(&instances_.filter("check"), &instances_.filter("check"));
  EXPECT_NE(&instances_.filter("check"), &instances_.filter("other")) << "two scripts have two instances";
}

TEST_F(PluginInstancesTest, AMissingPluginIsNamed) {
  EXPECT_THAT(instances_.handler("none").failure().message(), HasSubstr("none"));
  EXPECT_THAT(instances_.policy("none").failure().message(), HasSubstr("none"));
  EXPECT_THAT([&] { (void)instances_.makeStorage(); }, ThrowsMessage<ConfigError>(HasSubstr("missing")));
}

TEST_F(PluginInstancesTest, AMissingFilterHasAFault) {
  EXPECT_THAT(instances_.filter("plugin/none").check().failure().message(), HasSubstr("none"));
  EXPECT_THAT(instances_.filter("not a name").check().failure().message(), HasSubstr("not a name"));
  EXPECT_THAT(instances_.filter("check").check().failure().message(), HasSubstr("check"))
      << "the script does not exist";
}

TEST_F(PluginInstancesTest, OnlyUsedPluginsAreSelected) {
  EXPECT_TRUE(instances_.isSelected("storage", "missing")) << "named by the configuration";
  EXPECT_FALSE(instances_.isSelected("storage", "memory"));
  EXPECT_FALSE(instances_.isSelected("handler", "lua"));
  EXPECT_TRUE(instances_.scripts("handler", "lua").empty());
  (void)instances_.handler("lua");
  EXPECT_TRUE(instances_.isSelected("handler", "lua"));
  EXPECT_FALSE(instances_.isSelected("filter", "lua"));
  (void)instances_.policy("");
  EXPECT_TRUE(instances_.isSelected("queue", "fixture"));
}

}  // namespace
