// Scripts edited during runs. The next job runs the new text. A text that does not compile changes only the
// reports.
#include <sys/stat.h>

#include <atomic>
#include <cstdlib>
#include <future>
#include <optional>
#include <thread>

#include "lua_fixture.h"
#include "script_folder.h"
#include "stdlib/library.h"

namespace jobq::lua::test {
namespace {

std::string returning(const std::string& what) { return "return function() return '" + what + "' end"; }

class ScriptFolderTest : public LuaTest {
 protected:
  static std::string run(JobHandler& handler) {
    FakeJobContext context;
    return outcome(handler, "{}", context);
  }
  static std::string faultOf(const HandlerFactory& factory, const std::string& name) {
    for (const ScriptReport& report : factory.scripts()) {
      if (report.name == name) return report.fault.value_or("");
    }
    return "unknown";
  }
};

TEST_F(ScriptFolderTest, TheNextJobRunsTheNewText) {
  scripts.write("edited", returning("one"));
  const auto factory = handlers();
  const auto handler = factory->make(envFor("edited"));
  EXPECT_EQ(run(*handler), "\"one\"");
  scripts.write("edited", returning("longer"));
  EXPECT_EQ(run(*handler), "\"longer\"");
  scripts.replace("edited", returning("by rename"));
  EXPECT_EQ(run(*handler), "\"by rename\"");
  EXPECT_EQ(log.lines(),
            std::vector<std::string>(2, "script.reloaded: edited.lua was edited: the next job runs the new text"));
}

TEST_F(ScriptFolderTest, AByteOrderMarkIsNoPartOfTheText) {
  scripts.write("marked", "\xEF\xBB\xBF" + returning("one"));
  EXPECT_EQ(run(*handlers()->make(envFor("marked"))), "\"one\"");
}

// The edits have equal length and fall into one step of the file system's clock.
TEST_F(ScriptFolderTest, EditsWithinATickAreSeen) {
  scripts.write("fast", returning("0000"));
  const auto factory = handlers();
  const auto handler = factory->make(envFor("fast"));
  for (int i = 0; i < 200; ++i) {
    const std::string text = std::to_string(1000 + i);
    scripts.write("fast", returning(text));
    ASSERT_EQ(run(*handler), "\"" + text + "\"");
  }
}

TEST_F(ScriptFolderTest, BrokenTextLeavesTheOldTextInForce) {
  scripts.write("broken", returning("old"));
  const auto factory = handlers();
  const auto handler = factory->make(envFor("broken"));
  EXPECT_EQ(run(*handler), "\"old\"");
  EXPECT_EQ(faultOf(*factory, "broken"), "");
  scripts.write("broken", "return function(");
  EXPECT_EQ(run(*handler), "\"old\"");
  const std::string fault = "broken.lua:1: <name> or '...' expected near <eof>";
  EXPECT_EQ(faultOf(*factory, "broken"), fault);
  EXPECT_EQ(factory->fault("broken"), std::nullopt) << "the former script stays in use";
  EXPECT_EQ(log.lines(),
            (std::vector<std::string>{
                "script.faulty: broken.lua was edited and does not run; the previous text stays in use: " + fault}));
  const auto later = factory->make(envFor("broken"));
  EXPECT_EQ(run(*later), "\"old\"");
  scripts.write("broken", returning("mended"));
  EXPECT_EQ(run(*handler), "\"mended\"");
  EXPECT_EQ(run(*later), "\"mended\"");
  EXPECT_EQ(faultOf(*factory, "broken"), "");
}

TEST_F(ScriptFolderTest, ARemovedFileLeavesItsTextInForce) {
  scripts.write("gone", returning("still here"));
  const auto factory = handlers();
  const auto handler = factory->make(envFor("gone"));
  std::filesystem::remove(scripts.file("gone"));
  EXPECT_EQ(run(*handler), "\"still here\"");
  EXPECT_EQ(faultOf(*factory, "gone"), "gone.lua cannot be read: put it into the folder of scripts");
  scripts.write("gone", returning("back"));
  EXPECT_EQ(run(*handler), "\"back\"");
  EXPECT_EQ(faultOf(*factory, "gone"), "");
}

TEST_F(ScriptFolderTest, UnusedScriptsAreReported) {
  scripts.write("good", returning("x"));
  scripts.write("bad", "return 5");
  std::filesystem::create_directory(scripts.folder() / "folder.lua");
  std::ofstream(scripts.folder() / "notes.txt") << "no script";
  const auto factory = handlers();
  std::vector<std::string> told;
  for (const ScriptReport& report : factory->scripts()) told.push_back(report.name + ": " + report.fault.value_or(""));
  ASSERT_EQ(told.size(), 3U);
  EXPECT_EQ(told[0], "bad: bad.lua returns no function: end the script with `return function(...) ... end`");
  EXPECT_EQ(told[1].substr(0, 8), "folder: ");
  EXPECT_GT(told[1].size(), 8U);
  EXPECT_EQ(told[2], "good: ");
  EXPECT_EQ(factory->fault("absent"), "absent.lua cannot be read: put it into the folder of scripts");
  EXPECT_EQ(factory->fault(""), "lua is not a handler: use lua/<script>");
}

// Opening a pipe waits for its writer, and a device never ends: a listing of the scripts would never return.
TEST_F(ScriptFolderTest, SpecialFilesAreNoScripts) {
  ASSERT_EQ(mkfifo(scripts.file("pipe").c_str(), 0600), 0);
  std::filesystem::create_directory(scripts.file("folder"));
  std::filesystem::create_symlink("/dev/zero", scripts.file("device"));
  std::filesystem::create_symlink("nowhere", scripts.file("nothing"));
  const auto factory = handlers();
  for (const std::string name : {"pipe", "folder", "device", "nothing"}) {
    const std::string fault = name + ".lua cannot be read: put it into the folder of scripts";
    EXPECT_EQ(factory->fault(name), fault);
    EXPECT_EQ(faultOf(*factory, name), name == "nothing" ? "unknown" : fault);
  }
}

TEST_F(ScriptFolderTest, APipeInThePlaceOfAScriptLeavesItInForce) {
  scripts.write("replaced", returning("the text before"));
  const auto factory = handlers();
  const auto handler = factory->make(envFor("replaced"));
  ASSERT_EQ(run(*handler), "\"the text before\"");
  std::filesystem::remove(scripts.file("replaced"));
  ASSERT_EQ(mkfifo(scripts.file("replaced").c_str(), 0600), 0);
  EXPECT_EQ(run(*handler), "\"the text before\"");
  EXPECT_EQ(faultOf(*factory, "replaced"), "replaced.lua cannot be read: put it into the folder of scripts");
  std::filesystem::remove(scripts.file("replaced"));
  scripts.write("replaced", returning("a text again"));
  EXPECT_EQ(run(*handler), "\"a text again\"");
}

TEST_F(ScriptFolderTest, FiltersAreReloadedToo) {
  scripts.write("door", "return function() return false, 'closed' end");
  const auto factory = filters();
  const auto filter = factory->make("door");
  EXPECT_EQ(review(*filter, "{}").text, "rejected: closed");
  scripts.write("door", "return function() end");
  EXPECT_EQ(review(*filter, "{}").text, "accepted");
  scripts.write("door", "return");
  EXPECT_EQ(review(*filter, "{}").text, "accepted");
}

// Libraries that hold up the first trial after hold(), until release().
class HeldLibraries final : public LibraryOpener {
 public:
  void hold() { isHeld_ = true; }
  void release() { released_.set_value(); }
  /// Becomes ready when the held trial begins.
  std::future<void> held() { return trying_.get_future(); }

  void open(lua_State* lua) const override {
    openStandardLibraries(lua);
    if (!isHeld_.exchange(false)) return;
    trying_.set_value();
    EXPECT_EQ(released_.get_future().wait_for(testkit::kHangDeadline), std::future_status::ready);
  }

 private:
  mutable std::atomic<bool> isHeld_ = false;
  mutable std::promise<void> trying_;
  mutable std::promise<void> released_;
};

// The trial run of a new text takes up to a second. Only users of the same script wait.
TEST_F(ScriptFolderTest, ATrialHoldsUpNoOtherScript) {
  scripts.write("quick", returning("quick"));
  scripts.write("slow", returning("slow"));
  HeldLibraries libraries;
  ScriptFolder folder(scripts.folder(), log, 1U << 20, libraries);
  const ScriptPtr before = folder.newest("quick").script;
  libraries.hold();
  auto slow = std::async(std::launch::async, [&] { return folder.newest("slow").script->name; });
  auto begun = libraries.held();
  testkit::resultOf("the trial of the slow script to begin", begun);
  EXPECT_EQ(folder.newest("quick").script, before);
  scripts.write("quick", returning("edited"));
  EXPECT_NE(folder.newest("quick").script, before);
  EXPECT_EQ(folder.fault("absent"), "absent.lua cannot be read: put it into the folder of scripts");
  libraries.release();
  EXPECT_EQ(testkit::resultOf("the slow script", slow), "slow");
}

// Workers on many threads see only whole texts, old or new, and in the end all see the last text.
TEST_F(ScriptFolderTest, ManyThreadsRunAScriptDuringEdits) {
  const auto textOf = [](int version) { return returning(std::to_string(version) + std::string(3000, 'x')); };
  scripts.write("busy", textOf(0));
  const auto factory = handlers();
  constexpr int kVersions = 60;
  std::atomic<int> written = 0;
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      const auto handler = factory->make(envFor("busy"));
      for (int last = 0; last < kVersions;) {
        const std::string out = run(*handler);
        const int seen = out.size() > 3000 ? std::atoi(out.c_str() + 1) : -1;
        if (seen < last || seen > written + 1) ++wrong;
        if (seen < last) return;
        last = seen;
      }
    });
  }
  for (int version = 1; version <= kVersions; ++version) {
    written = version;
    scripts.replace("busy", textOf(version));
    (void)factory->scripts();
  }
  testkit::joinAll("the workers to see the last version", threads);
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace jobq::lua::test
