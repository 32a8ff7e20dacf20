// The parts of launcher_process that need no process: reports of guards, last lines, logs, environments.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "guarded_process.h"
#include "last_line.h"
#include "mailbox.h"
#include "process_end.h"
#include "testkit/temporary_folder.h"
#include "worker_environment.h"
#include "worker_log.h"

namespace jobq::test {
namespace {

using namespace jobq::process;
using Kind = ProcessEnd::Kind;

std::string reasonOf(std::string_view report, std::string_view lastLine = "", int guardStatus = 0) {
  return exitOf("w1", readEnd(report, guardStatus), "prog", "/dir", lastLine).reason;
}
bool isFailure(std::string_view report) { return exitOf("w1", readEnd(report, 0), "prog", "/dir", "").isFailure; }

TEST(LauncherProcessEnd, AMissingInterpreterIsReported) {
  const testkit::TemporaryFolder folder;
  const auto reason = [&folder](std::string_view firstLine, const std::string& program) {
    std::ofstream(folder / "start.sh", std::ios::binary) << firstLine << "\necho hi\n";
    return exitOf("w1", readEnd("exec 2", 0), program, folder.path().string(), "").reason;
  };
  EXPECT_EQ(
      reason("#!/bin/bash\r", "./start.sh"),
      "it could not be started: ./start.sh: its interpreter /bin/bash is not found, because the line ends with CR "
      "and LF: save the script with the line ends of Unix");
  EXPECT_EQ(reason("#! /usr/bin/none -x", (folder / "start.sh").string()),
            "it could not be started: " + (folder / "start.sh").string() +
                ": its interpreter /usr/bin/none does not exist: install it, or correct the first line of the script");
  EXPECT_EQ(reason("#!/bin/bash", "./none.sh"), "it could not be started: ./none.sh: No such file or directory");
  EXPECT_EQ(reason("no script", "./start.sh"), "it could not be started: ./start.sh: No such file or directory");
}

TEST(LauncherProcessEnd, AFailedScriptWithAByteOrderMarkIsExplained) {
  const testkit::TemporaryFolder folder;
  const auto reason = [&folder](std::string_view firstLine, const char* end) {
    std::ofstream(folder / "start.py", std::ios::binary) << firstLine << "\nimport os\n";
    return exitOf("w1", readEnd(end, 0), "./start.py", folder.path().string(), "import: not found").reason;
  };
  EXPECT_EQ(
      reason("\xEF\xBB\xBF#!/usr/bin/env python3", "exit 127"),
      "it ended with exit code 127: import: not found; the script begins with a byte order mark, so its first line "
      "names no interpreter: save it without the mark");
  EXPECT_EQ(reason("\xEF\xBB\xBF#!/bin/sh", "exit 0"), "it ended with exit code 0: import: not found");
  EXPECT_EQ(reason("#!/bin/sh", "exit 1"), "it ended with exit code 1: import: not found");
}

std::string lastLineOf(std::string_view output) {
  LastLine last;
  last.add(output);
  return last.text();
}

std::string fileText(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}
mode_t modeOfPath(const std::filesystem::path& path) {
  struct stat now {};
  EXPECT_EQ(::stat(path.c_str(), &now), 0) << path;
  return now.st_mode & 07777;
}

TEST(LauncherProcessEnd, AReasonNamesTheCodeAndTheLastLine) {
  EXPECT_EQ(reasonOf("exit 3"), "it ended with exit code 3");
  EXPECT_EQ(reasonOf("exit 3", "no module named torch"), "it ended with exit code 3: no module named torch");
  EXPECT_EQ(reasonOf("signal 9", "out"), "it was ended by signal 9 (Killed): out");
  EXPECT_EQ(reasonOf("signal 64"), "it was ended by signal 64");
  EXPECT_EQ(reasonOf("refused 1"), "it could not be killed, because it runs as another user");
  EXPECT_EQ(reasonOf("exec 2"), "it could not be started: prog: No such file or directory");
  EXPECT_EQ(reasonOf("chdir 13"), "it could not be started: the working directory /dir: Permission denied");
}

TEST(LauncherProcessEnd, AGuardWithoutAReport) {
  EXPECT_EQ(reasonOf("", "", SIGKILL), "its guard was ended by signal 9 (Killed), and the worker with it");
  EXPECT_EQ(reasonOf("", "cannot load", 127 << 8), "its guard ended with exit code 127 and no report: cannot load");
  for (const char* const report : {"", "exit", "exit ", "exit x", "exit 1x", "end 1", "exit 99999999999"}) {
    EXPECT_EQ(readEnd(report, 0).kind, Kind::unknown) << report;
  }
}

TEST(LauncherProcessEnd, Code0AloneIsNoFailure) {
  EXPECT_FALSE(isFailure("exit 0"));
  for (const char* const report : {"exit 1", "signal 15", "exec 2", "chdir 2", "refused 1", ""})
    EXPECT_TRUE(isFailure(report));
}

TEST(LauncherLastLine, IsTheLastLineWithText) {
  EXPECT_EQ(lastLineOf(""), "");
  EXPECT_EQ(lastLineOf("\n \r\n\t"), "");
  EXPECT_EQ(lastLineOf("one\ntwo"), "two");
  EXPECT_EQ(lastLineOf("one\n  two  \r\n\n  \n"), "two");
  EXPECT_EQ(lastLineOf("10 %\r20 %\r"), "20 %");
  EXPECT_EQ(lastLineOf("\n"), "");
}

TEST(LauncherLastLine, IsPrintable) {
  EXPECT_EQ(lastLineOf("\x1b[1;31mred\x1b[0m\a \x1b"), "red");
  EXPECT_EQ(lastLineOf(std::string("a\0b\tc\x7f", 6)), "a b c");
  EXPECT_EQ(lastLineOf("\xc3\xa4 \xc3 \xff"), "\xc3\xa4 ? ?");
  EXPECT_EQ(lastLineOf("\x1b["), "");
}

TEST(LauncherLastLine, IsCutBetweenCharacters) {
  EXPECT_EQ(lastLineOf(std::string(200, 'x')).size(), 200U);
  const std::string cut = lastLineOf(std::string(5'000, 'x'));
  EXPECT_EQ(cut, std::string(197, 'x') + "...");
  std::string umlauts;
  for (int i = 0; i < 150; ++i) umlauts += "\xc3\xa4";
  EXPECT_EQ(lastLineOf(umlauts), umlauts.substr(0, 196) + "...");
}

TEST(LauncherLastLine, SurvivesThePartsOfAnOutput) {
  LastLine last;
  for (const char c : std::string(10'000, 'x') + "\nthe end\n") last.add(std::string_view(&c, 1));
  EXPECT_EQ(last.text(), "the end");
  last.add(std::string(100'000, '\n'));
  EXPECT_EQ(last.text(), "");
}

TEST(LauncherWorkerLog, HasTwoFilesOfBoundedSize) {
  const testkit::TemporaryFolder data;
  const std::filesystem::path folder = data / "workers" / "ep";
  WorkerLog log(folder, "w1", 10);
  EXPECT_FALSE(std::filesystem::exists(data / "workers")) << "no output, no file";
  EXPECT_EQ(log.append("0123456789"), 0);
  EXPECT_FALSE(std::filesystem::exists(folder / "w1.log.1"));
  EXPECT_EQ(log.append("abcdefghijklmnopqrstuvwxyz"), 0);
  EXPECT_EQ(fileText(folder / "w1.log.1"), "klmnopqrst") << "a file is full before the next file begins";
  EXPECT_EQ(fileText(folder / "w1.log"), "uvwxyz");
  EXPECT_EQ(modeOfPath(data / "workers"), 0700U);
  EXPECT_EQ(modeOfPath(folder), 0700U);
  EXPECT_EQ(modeOfPath(folder / "w1.log"), 0600U);
}

TEST(LauncherWorkerLog, SurvivesTheRemovalOfItsFiles) {
  const testkit::TemporaryFolder data;
  WorkerLog log(data / "workers" / "ep", "w1", 10);
  EXPECT_EQ(log.append("0123456789"), 0);
  std::filesystem::remove_all(data / "workers");
  EXPECT_EQ(log.append("abc"), 0);
  EXPECT_EQ(fileText(data / "workers/ep/w1.log"), "abc");
}

TEST(LauncherWorkerLog, FollowsNoSymbolicLink) {
  const testkit::TemporaryFolder data;
  const std::filesystem::path folder = data / "workers" / "ep";
  std::filesystem::create_directories(folder);
  std::ofstream(data / "secret") << "mine";
  std::filesystem::create_symlink(data / "secret", folder / "w1.log");
  WorkerLog log(folder, "w1", 10);
  EXPECT_EQ(log.append("abc"), ELOOP);
  EXPECT_EQ(fileText(data / "secret"), "mine");
}

TEST(LauncherWorkerLog, TheOldestLogsOfEndedWorkersGo) {
  const testkit::TemporaryFolder folder;
  const auto now = std::filesystem::file_time_type::clock::now();
  int age = 100;
  for (const char* const name : {"a.log", "b.log.1", "b.log", "c.log.1", "c.log", "d.log", "other"}) {
    std::ofstream(folder / name) << "x";
    std::filesystem::last_write_time(folder / name, now - std::chrono::seconds(--age));
  }
  removeOldLogs(folder, {"a"}, 2);
  std::set<std::string> left;
  for (const auto& file : std::filesystem::directory_iterator(folder)) left.insert(file.path().filename());
  EXPECT_EQ(left, (std::set<std::string>{"a.log", "c.log.1", "c.log", "d.log", "other"}));
  removeOldLogs(folder / "none", {}, 0);
}

TEST(LauncherEnvironment, TheVariablesOfTheTemplateWin) {
  const std::map<std::string, std::string> inherited{{"PATH", "/bin"}, {"HOME", "/root"}};
  const auto all =
      process::environmentOf("m/w1", {{"HOME", "/home"}, {"A", "1"}, {"JOBQ_LAUNCHED_WORKER", "x"}}, inherited);
  EXPECT_EQ(all, (std::map<std::string, std::string>{
                     {"A", "1"}, {"HOME", "/home"}, {"JOBQ_LAUNCHED_WORKER", "m/w1"}, {"PATH", "/bin"}}));
}

TEST(LauncherEnvironment, ATextUnfitForAnyProcessIsAFault) {
  const std::string nul("a\0b", 3);
  const ProcessLaunch good{"w1", "/", "", {"true"}, {{"A", "="}}};
  EXPECT_EQ(textFaultOf(good), std::nullopt);
  ProcessLaunch launch = good;
  launch.arguments.push_back(nul);
  EXPECT_EQ(textFaultOf(launch), "an argument has a NUL character");
  for (const std::string& name : {std::string(), std::string("A=B"), nul}) {
    launch = good;
    launch.environment = {{name, "1"}};
    EXPECT_EQ(textFaultOf(launch), "a variable's name is empty or has '=' or a NUL character");
  }
  launch = good;
  launch.environment = {{"A", nul}};
  EXPECT_EQ(textFaultOf(launch), "the variable A has a NUL character");
}

TEST(LauncherMailbox, AStopWithdrawsAStart) {
  Mailbox mailbox;
  mailbox.addStart({"w1", "ep", {}, {}});
  mailbox.addStart({"w2", "ep", {}, {}});
  mailbox.addStop("w1", {});
  mailbox.addStop("w3", {});
  const Mailbox::Requests requests = mailbox.drainRequests();
  ASSERT_EQ(requests.starts.size(), 1U);
  EXPECT_EQ(requests.starts[0].worker, "w2");
  ASSERT_EQ(requests.stops.size(), 1U);
  EXPECT_EQ(requests.stops[0].worker, "w3");
  const auto exits = mailbox.drainExits();
  ASSERT_EQ(exits.size(), 1U);
  EXPECT_EQ(exits[0].worker, "w1");
  EXPECT_FALSE(exits[0].isFailure);
  EXPECT_TRUE(mailbox.drainExits().empty());
  mailbox.addStop("w2", {});
  EXPECT_EQ(mailbox.drainRequests().stops.size(), 1U) << "the start was drained before";
}

}  // namespace
}  // namespace jobq::test
