// Tests of libraries that do not fit: each kind gets a specific message, and the host continues.
#include "core/plugin/plugin_host.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <fstream>

#include "core/base/data_dir.h"
#include "core/plugin/plugin_file.h"
#include "jobq/abi.h"
#include "jobq/queue_policy.h"
#include "testkit/loaded_plugin.h"
#include "testkit/manual_clock.h"
#include "testkit/temporary_folder.h"
#include "testkit/thrown_text.h"

namespace {

using namespace jobq;
using testing::AllOf;
using testing::HasSubstr;
namespace fs = std::filesystem;

class PluginHostTest : public testing::Test {
 protected:
  static fs::path fixture(const std::string& name) { return fs::path(JOBQ_FIXTURE_DIR) / ("libjobq_" + name + ".so"); }

  fs::path put(const std::string& from, const std::string& as = "libjobq_it.so") {
    fs::copy_file(fixture(from), dir_ / as, fs::copy_options::overwrite_existing);
    return dir_ / as;
  }
  void write(const std::string& bytes) { std::ofstream(dir_ / "libjobq_it.so", std::ios::binary) << bytes; }

  static std::string rejectionOf(const PluginHost::Library& library) {
    return library.loaded ? "" : library.loaded.failure().message();
  }
  // Returns the reason for rejecting the only library of the folder, or an empty string after loading.
  std::string rejection() {
    PluginHost host(settings_, log_);
    host.load({dir_});
    EXPECT_EQ(host.libraries().size(), 1U);
    return rejectionOf(host.libraries().at(0));
  }

  static std::string refusal(const PluginManifest& manifest) {
    return testkit::thrownText<Error>([&] { return checkManifest(manifest); });
  }

  const testkit::TemporaryFolder dir_;
  std::map<std::string, std::string> settings_;
  testkit::SilentLog log_;
  testkit::ManualClock clock_;
};

TEST_F(PluginHostTest, AGoodLibraryIsLoadedWithItsOptions) {
  put("good");
  settings_ = {{"queue.fixture.step", "4"}, {"queue.fixture.name", "mine"}};
  PluginHost host(settings_, log_);
  host.load({dir_});
  ASSERT_EQ(host.libraries().size(), 1U);
  EXPECT_TRUE(host.libraries()[0].loaded);
  const PluginHost::Entry& entry = host.libraries()[0].entries.at(0);
  EXPECT_EQ(entry.name, "fixture");
  EXPECT_EQ(entry.version, "2.3.4");
  ASSERT_EQ(entry.options.size(), 5U);
  EXPECT_EQ(entry.options[0].key, "queue.fixture.step");
  EXPECT_EQ(entry.options[0].range, "1 to 10");
  EXPECT_EQ(entry.options[1].fallback, "500ms");
  EXPECT_EQ(entry.options[2].fallback, "1MB");
  EXPECT_NO_THROW(host.checkSettings());
  const auto policy = host.create<QueuePolicy>("fixture", {clock_, dir_, dir_, dir_, false}, log_);
  EXPECT_EQ(policy->rank({}, {}, {}), 4);
  EXPECT_EQ(policy->group({}), "mine");
}

TEST_F(PluginHostTest, AStrippedLibraryIsLoaded) {
  const fs::path file = put("good");
  ASSERT_EQ(std::system(("strip --strip-all " + file.string()).c_str()), 0);
  EXPECT_EQ(rejection(), "");
}

TEST_F(PluginHostTest, AWrongSettingNamesKeyAndRange) {
  put("good");
  settings_ = {{"queue.fixture.step", "11"}};
  PluginHost host(settings_, log_);
  host.load({dir_});
  EXPECT_THROW((void)host.create<QueuePolicy>("fixture", {clock_, dir_, dir_, dir_, false}, log_), ConfigError);
  EXPECT_THROW(host.checkValues(PluginKind::queuePolicy, "fixture"), ConfigError);
  settings_ = {{"queue.fixture.step", "10"}};
  EXPECT_NO_THROW(host.checkValues(PluginKind::queuePolicy, "fixture"));
  settings_ = {{"queue.fixture.stop", "1"}};
  EXPECT_THAT(testkit::thrownText<ConfigError>([&] { return host.checkSettings(); }),
              AllOf(HasSubstr("queue.fixture.stop"), HasSubstr("queue.fixture.step")));
}

// core/decisions/plugins.md: a library with one name in several kinds has one group of settings.
TEST_F(PluginHostTest, OneNameInTwoKindsHasOneGroupOfSettings) {
  fs::copy_file(fs::path(JOBQ_PLUGIN_DIR) / "libjobq_lua.so", dir_ / "libjobq_lua.so");
  settings_ = {{"lua.memory", "2MB"}};
  PluginHost host(settings_, log_);
  host.load({dir_});
  ASSERT_TRUE(host.libraries().at(0).loaded);
  ASSERT_EQ(host.libraries()[0].entries.size(), 2U);
  for (const PluginHost::Entry& entry : host.libraries()[0].entries) EXPECT_EQ(entry.options.at(0).key, "lua.memory");
  EXPECT_NO_THROW(host.checkSettings());
  settings_ = {{"lua.memory", "2"}};
  EXPECT_THROW(host.checkValues(PluginKind::handler, "lua"), ConfigError);
  EXPECT_THROW(host.checkValues(PluginKind::admissionFilter, "lua"), ConfigError);
  settings_ = {{"handler.lua.memory", "2MB"}};
  EXPECT_THROW(host.checkSettings(), ConfigError);
}

TEST_F(PluginHostTest, ADifferentFingerprintNamesFieldBothValuesAndRemedy) {
  put("other_mode");
  EXPECT_THAT(rejection(),
              AllOf(HasSubstr("debug_mode: the plugin has on, this server off"), HasSubstr("rebuild the plugin")));
}

TEST_F(PluginHostTest, AFieldUnknownToTheServerIsNamed) {
  PluginManifest manifest = readPluginFile(fixture("good"));
  manifest.fields["sdk"] = "0123456789abcdef";
  EXPECT_THAT(refusal(manifest), HasSubstr("sdk: the plugin has 0123456789abcdef, this server none"));
}

// The sdk's headers without comments and with different spacing.
TEST_F(PluginHostTest, CommentsAndWhiteSpaceDoNotChangeTheFingerprint) {
  put("reworded");
  EXPECT_EQ(rejection(), "");
  const PluginManifest good = readPluginFile(fixture("good"));
  const PluginManifest reworded = readPluginFile(fixture("reworded"));
  EXPECT_EQ(reworded.fields, good.fields);
  EXPECT_EQ(reworded.entries, good.entries);
}

TEST_F(PluginHostTest, ADifferentLayoutNamesTypeBothLayoutsAndRemedy) {
  put("other_layout");
  EXPECT_THAT(rejection(), AllOf(HasSubstr("layout.queue.JobPolicy: the plugin has 32/8 "), HasSubstr("priority@24+8"),
                                 HasSubstr("this server 24/8 "), HasSubstr("priority@20+4"), HasSubstr("rebuild")));
}

TEST_F(PluginHostTest, OnlyTheTypesOfItsOwnKindsAreAskedOfALibrary) {
  const PluginManifest good = readPluginFile(fixture("good"));
  EXPECT_TRUE(good.fields.contains("layout.queue.JobSpec"));
  EXPECT_FALSE(good.fields.contains("layout.storage.JobSpec"));
  EXPECT_FALSE(good.fields.contains("layout.handler.HandlerEnv"));
  PluginManifest without = good;
  without.fields.erase("layout.queue.JobSpec");
  EXPECT_THAT(refusal(without), HasSubstr("layout.queue.JobSpec: the plugin has none"));
  PluginManifest more = good;
  more.fields["layout.queue.Unheard"] = "8/8 ;";
  EXPECT_THAT(refusal(more), HasSubstr("layout.queue.Unheard: the plugin has 8/8 ;, this server none"));
}

TEST_F(PluginHostTest, ANewerMinorIsRefusedBeforeItsCodeRuns) {
  put("newer_minor");
  EXPECT_THAT(rejection(),
              AllOf(HasSubstr("ABI minor: the plugin has " + std::to_string(jobq::abi::kMinor + 1)),
                    HasSubstr("this server " + std::to_string(jobq::abi::kMinor)), HasSubstr("upgrade the server")));
}

TEST_F(PluginHostTest, ADifferentMajorIsNamed) {
  put("other_major");
  const std::string present = "this server " + std::to_string(jobq::abi::kMajor);
  EXPECT_THAT(rejection(), AllOf(HasSubstr("ABI major: the plugin has 2"), HasSubstr(present)));
}

TEST_F(PluginHostTest, ALibraryWithoutTheSymbolIsNoPlugin) {
  put("no_symbol");
  EXPECT_THAT(rejection(), AllOf(HasSubstr("no symbol jobq_plugin_v6"), HasSubstr("JOBQ_PLUGIN")));
}

TEST_F(PluginHostTest, ATruncatedFileIsNeverLoaded) {
  const fs::path file = put("good");
  const auto size = fs::file_size(file);
  for (const auto part : {size - 1, size / 2, size / 10, std::uintmax_t{64}, std::uintmax_t{10}}) {
    put("good");
    fs::resize_file(file, part);
    EXPECT_THAT(rejection(), HasSubstr("not a whole shared library")) << part;
  }
}

TEST_F(PluginHostTest, AFileWithoutALibraryIsNamed) {
  write("#!/bin/sh\necho I am a text file\n");
  EXPECT_THAT(rejection(), HasSubstr("not a whole shared library"));
  write("");
  EXPECT_THAT(rejection(), HasSubstr("not a whole shared library"));
}

TEST_F(PluginHostTest, CorruptSectionHeadersAreNamed) {
  const fs::path file = put("good");
  std::string bytes = *readFile(file);
  std::uint64_t table = 0;
  std::memcpy(&table, bytes.data() + 40, sizeof table);  // e_shoff
  std::string far = bytes;
  const std::uint64_t beyond = bytes.size() * 2;
  std::memcpy(far.data() + 40, &beyond, sizeof beyond);
  write(far);
  EXPECT_THAT(rejection(), HasSubstr("not a whole shared library"));
  for (std::size_t i = table; i < bytes.size(); ++i) bytes[i] = '\x5a';
  write(bytes);
  EXPECT_THAT(rejection(), HasSubstr("not a whole shared library"));
}

TEST_F(PluginHostTest, RandomDamageNeverKillsTheHost) {
  const std::string good = *readFile(put("good"));
  std::uint32_t seed = 12345;
  const auto random = [&seed] { return seed = seed * 1664525U + 1013904223U, seed >> 8; };
  for (int round = 0; round < 200; ++round) {
    std::string bytes = good;
    // The damage hits only the head and the section table: damaged code would be loaded, and is outside of the check's
    // purpose.
    std::uint64_t table = 0;
    std::memcpy(&table, bytes.data() + 40, sizeof table);
    for (int i = 0; i < 3; ++i) {
      const std::size_t at = round % 2 == 0 ? 16 + random() % 48 : table + random() % (bytes.size() - table);
      bytes[at] = static_cast<char>(random());
    }
    write(bytes);
    try {
      checkManifest(readPluginFile(dir_ / "libjobq_it.so"));
    } catch (const Error& error) {
      EXPECT_STRNE(error.what(), "");
    }
  }
}

TEST_F(PluginHostTest, AMissingDependencyIsNamed) {
  put("needy");
  EXPECT_THAT(rejection(), AllOf(HasSubstr("cannot be loaded"), HasSubstr("libjobqfixture_dependency.so")));
}

TEST_F(PluginHostTest, TheSecondOfTwoEqualEntriesIsRejected) {
  put("good", "libjobq_a.so");
  put("good", "libjobq_b.so");
  PluginHost host(settings_, log_);
  host.load({dir_});
  ASSERT_EQ(host.libraries().size(), 2U);
  EXPECT_TRUE(host.libraries()[0].loaded);
  EXPECT_THAT(rejectionOf(host.libraries()[1]), HasSubstr("another library offers queue fixture"));
}

TEST_F(PluginHostTest, AnAbsentEntryIsListedWithThePresentEntries) {
  put("good");
  write("broken");
  put("good", "libjobq_ok.so");
  PluginHost host(settings_, log_);
  host.load({dir_, dir_ / "no such folder"});
  EXPECT_THAT(testkit::thrownText<ConfigError>([&] {
                return host.create<QueuePolicy>("it", {clock_, dir_, dir_, dir_, false}, log_);
              }),
              AllOf(HasSubstr("no queue plugin named it"), HasSubstr("fixture"), HasSubstr("rejected")));
}

}  // namespace
