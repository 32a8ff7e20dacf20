// Tests of the choice of a command, of the help texts and of scripts run without a server (core/cli/command_choice.cpp,
// core/cli/command_help.cpp, core/cli/commands/completion_command.cpp, core/cli/commands/lua_commands.cpp).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "cli_fixture.h"
#include "testkit/temporary_folder.h"

namespace jobq::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

class CliTextTest : public testing::Test, protected CliFixture {
 protected:
  static std::string nameOf(std::vector<std::string> words) { return extractCommand(words).name; }
};

TEST_F(CliTextTest, ACommandIsNamedByTheFirstWords) {
  std::vector<std::string> words{"job", "show", "ep", "j"};
  EXPECT_STREQ(extractCommand(words).name, "job show");
  EXPECT_THAT(words, ElementsAre("ep", "j")) << "the arguments are left";
  EXPECT_EQ(nameOf({"run", "ep", "{}"}), "run");
  EXPECT_EQ(nameOf({"top"}), "top");
}

TEST_F(CliTextTest, AWrongCommandIsNamedWithTheWayOut) {
  expectEnd(run({}), 2, "a command is missing; `jobqctl --help` lists the commands");
  expectEnd(run({"walk\x1b"}), 2, "'walk?' is not a command; `jobqctl --help` lists the commands");
  for (const auto& [given, meant] : std::vector<std::pair<std::vector<std::string>, std::string>>{
           {{"helth", "ep"}, "health"}, {{"jobs", "list", "ep"}, "job list"}, {{"endpoint-list"}, "endpoint list"}}) {
    expectEnd(
        run(given), 2,
        "'" + given[0] + "' is not a command: did you mean `" + meant + "`?; `jobqctl --help` lists the commands");
  }
  expectEnd(run({"key", "create", "ci", "--scpe", "client"}), 2,
            "there is no option --scpe: did you mean --scope?; --help lists the options");
  expectEnd(run({"key"}), 2, "'key' needs a second word: key create, key list, key revoke");
  expectEnd(run({"webhook", "send"}), 2, "'webhook' needs a second word: webhook list, webhook replay");
  EXPECT_THAT(run({"key", "list", "--scope", "admin"}).text, HasSubstr("scope"))
      << "the option belongs to a different command";
  EXPECT_THAT(server_.calls(), IsEmpty());
}

TEST_F(CliTextTest, OptionsMayStandBeforeTheCommand) {
  EXPECT_THAT(leadingWords({"--url", "http://h", "--json", "job", "show", "ep"}), ElementsAre("job", "show"));
  EXPECT_THAT(leadingWords({"--url=http://h", "run", "ep", "{}"}), ElementsAre("run"));
  EXPECT_THAT(leadingWords({"no", "such", "command"}), ElementsAre("no", "such", "command"));
  EXPECT_THAT(leadingWords({"--help"}), IsEmpty());
}

TEST_F(CliTextTest, NoNameIsTheBeginningOfALongerName) {
  std::set<std::string> names;
  for (const Command& command : commands()) {
    EXPECT_TRUE(names.insert(command.name).second) << command.name;
    EXPECT_NE(command.run, nullptr) << command.name;
    EXPECT_STRNE(command.help, "") << command.name;
  }
  for (const std::string& name : names) {
    for (const std::string& other : names) EXPECT_FALSE(other.starts_with(name + " ")) << other;
  }
}

TEST_F(CliTextTest, EachHelpNamesTheCommands) {
  const std::string program = programHelp();
  for (const Command& command : commands()) {
    EXPECT_THAT(program, HasSubstr("\n  " + std::string(command.name)));
    const std::string help = commandHelp(command);
    EXPECT_THAT(help, StartsWith("usage: jobqctl " + std::string(command.name)));
    EXPECT_THAT(help, HasSubstr(command.help));
    for (const OptionRow& option : command.options) EXPECT_THAT(help, HasSubstr("--" + std::string(option.name)));
    for (const OptionRow& option : commonOptions()) EXPECT_THAT(help, HasSubstr("--" + std::string(option.name)));
  }
  EXPECT_THAT(groupHelp("key"), HasSubstr("\n  key create NAME"));
  EXPECT_THAT(groupHelp("key"), HasSubstr("\n  key revoke ID"));
  EXPECT_THAT(groupHelp("key"), Not(HasSubstr("webhook")));
}

TEST_F(CliTextTest, ACompletionIsPrintedForThreeShells) {
  for (const char* shell : {"bash", "zsh", "fish"}) expectEnd(run({"completion", shell}), 0, completionOf(shell));
  const auto unknown = run({"completion", "csh"});
  EXPECT_EQ(unknown.code, 2);
  EXPECT_THAT(unknown.text, HasSubstr("csh"));
}

class CliLuaTest : public CliTextTest {
 protected:
  std::string script(const std::string& name) const {
    std::ofstream(folder_ / name) << "return {}";
    return (folder_ / name).string();
  }
  const testkit::TemporaryFolder folder_;
  const std::string plugins_ = folder_.path().string();  ///< a folder without a plugin
};

TEST_F(CliLuaTest, AFileWithoutAScriptIsNamed) {
  expectEnd(run({"lua", "run", "/nowhere/a.lua"}), 2, "the file '/nowhere/a.lua' cannot be read: check its name");
  for (const char* name : {"a.txt", "a b.lua", "lua"}) {
    expectEnd(run({"lua", "check", script(name)}), 2,
              "a script's file is named like word_count.lua, with letters, digits, _ and -");
  }
}

TEST_F(CliLuaTest, AWrongSettingIsNamed) {
  expectEnd(run({"lua", "run", script("a.lua"), "--plugins", plugins_, "--set", "lua.memory"}), 2,
            "--set takes NAME=VALUE, not 'lua.memory'");
  expectEnd(run({"lua", "check", script("a.lua"), "--plugins", plugins_, "--set", "net.allowPrivate=yes"}), 2,
            "--set net.allowPrivate takes true or false, not 'yes'");
}

}  // namespace
}  // namespace jobq::cli
