// Tests of the server's log (core/base/logger.h), and of the settings of a plugin (core/plugin/plugin_config.h).
#include "core/base/logger.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <sstream>

#include "core/base/line_writer.h"
#include "core/plugin/plugin_config.h"
#include "jobq/error.h"
#include "jobq/json.h"
#include "jobq/secret_option.h"
#include "testkit/recording_log.h"
#include "testkit/thrown_text.h"
#include "testkit/wait_for.h"

namespace jobq {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::MatchesRegex;
using testing::Not;

/// Returns the text that `write` writes to standard error through a logger.
template <class Write>
std::string capturedText(LogLevel threshold, LogFormat format, Write&& write) {
  testing::internal::CaptureStderr();
  {
    Logger logger(threshold, format);
    write(logger);
  }
  return testing::internal::GetCapturedStderr();
}

TEST(LoggerTest, AnEventIsASingleLineWithTimeAndLevel) {
  const std::string text = capturedText(LogLevel::debug, LogFormat::text, [](Logger& logger) {
    logger.write(LogLevel::warning, "disk.full", "a gigabyte is left");
  });
  EXPECT_THAT(text, MatchesRegex("[0-9-]+T[0-9:]+\\.[0-9]+Z Warning disk\\.full: a gigabyte is left\n"));
}

TEST(LoggerTest, DropsEventsBelowTheThreshold) {
  const std::string text = capturedText(LogLevel::warning, LogFormat::text, [](Logger& logger) {
    logger.write(LogLevel::debug, "a", "");
    logger.write(LogLevel::information, "b", "");
    logger.write(LogLevel::warning, "c", "");
    logger.write(LogLevel::error, "d", "");
  });
  EXPECT_THAT(text, HasSubstr(" c: "));
  EXPECT_THAT(text, HasSubstr(" d: "));
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 2);
}

TEST(LoggerTest, EscapesLineEndsAndControlCharacters) {
  const std::string text = capturedText(LogLevel::debug, LogFormat::text, [](Logger& logger) {
    logger.write(LogLevel::error, "script", "one\n2026-01-01T00:00:00Z Error forged: two\x1b[2J\r\x7f\ttab \xc3\xa9");
  });
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1);
  EXPECT_THAT(text, HasSubstr("one\\n2026-01-01T00:00:00Z Error forged: two?[2J??\ttab \xc3\xa9\n"));
}

TEST(LoggerTest, AsJsonAnEventIsASingleObject) {
  const std::string text = capturedText(LogLevel::debug, LogFormat::json, [](Logger& logger) {
    for (const LogLevel level : {LogLevel::debug, LogLevel::information, LogLevel::warning, LogLevel::error}) {
      logger.write(level, "an.event", "a \"message\"\nof two lines");
    }
  });
  std::vector<std::string> levels;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const auto read = json::read(line);
    ASSERT_TRUE(std::holds_alternative<json::Document>(read)) << line;
    const auto& document = std::get<json::Document>(read);
    levels.push_back(json::toText(*document.find("level")).value());
    EXPECT_EQ(json::toText(*document.find("event")), "an.event");
    EXPECT_EQ(json::toText(*document.find("message")), "a \"message\"\nof two lines");
    EXPECT_TRUE(document.find("time"));
  }
  EXPECT_THAT(levels, ElementsAre("debug", "information", "warning", "error"));
}

TEST(LoggerTest, APluginsLinesCarryTheNameOfThePlugin) {
  testkit::RecordingLog log;
  PrefixedLog prefixed(log, "storage.sqlite");
  prefixed.write(LogLevel::information, "opened", "in 3 ms");
  EXPECT_THAT(log.lines(), ElementsAre("storage.sqlite.opened: in 3 ms"));
}

/// A pipe whose reading end the test holds.
class PipeTest : public testing::Test {
 protected:
  PipeTest() { EXPECT_EQ(::pipe2(ends_, O_CLOEXEC), 0); }
  ~PipeTest() override {
    ::close(ends_[0]);
    ::close(ends_[1]);
  }

  /// Returns all bytes that wait in the pipe.
  std::string read() {
    int waiting = 0;
    EXPECT_EQ(::ioctl(ends_[0], FIONREAD, &waiting), 0);
    std::string bytes(static_cast<std::size_t>(waiting), '\0');
    if (waiting > 0) {
      EXPECT_EQ(::read(ends_[0], bytes.data(), bytes.size()), waiting);
    }
    return bytes;
  }

  class ShortReport final : public LossReport {
   public:
    std::string lossLine(std::uint64_t lost) const override { return "lost " + std::to_string(lost); }
  };

  int ends_[2] = {-1, -1};
  const ShortReport losses_{};
};

// The pipe holds 64 KiB, and the lines have more.
TEST_F(PipeTest, AnUnreadLogStopsNoWriter) {
  const testkit::HangGuard guard("the lines that nobody reads");
  Logger logger(LogLevel::debug, LogFormat::json, ends_[1]);
  const std::string message(1'000, 'x');
  constexpr int kLines = 1'000;
  for (int i = 0; i < kLines; ++i) logger.write(LogLevel::error, "an.event", message);
  const std::string first = read();
  const auto written = std::count(first.begin(), first.end(), '\n');
  EXPECT_GT(written, 0);
  ASSERT_LT(written, kLines);
  EXPECT_THAT(first, Not(HasSubstr("log.lost")));
  EXPECT_TRUE(first.ends_with('\n')) << "a line of less than 4,096 bytes is written whole or not at all";

  logger.write(LogLevel::error, "the.next", message);
  const std::string second = read();
  EXPECT_THAT(second, HasSubstr("\"event\":\"log.lost\""));
  EXPECT_THAT(second,
              HasSubstr("\"" + std::to_string(kLines - written) + " lines before this one could not be written"));
  EXPECT_LT(second.find("log.lost"), second.find("the.next"));
  EXPECT_EQ(std::count(second.begin(), second.end(), '\n'), 2);
  logger.write(LogLevel::error, "the.last", "");
  EXPECT_THAT(read(), Not(HasSubstr("log.lost"))) << "a loss is logged once";
}

TEST_F(PipeTest, ACutLongLineGetsTheEndBeforeTheNextLine) {
  LineWriter writer(ends_[1], losses_);
  const testkit::HangGuard guard("a line that nobody reads");
  writer.write(std::string(1 << 20, 'x'));
  const std::string cut = read();
  EXPECT_EQ(cut.find_first_not_of('x'), std::string::npos);
  writer.write("next");
  EXPECT_EQ(read(), "\nlost 1\nnext\n");
}

// The system calls a terminal ready that has less room than a line needs.
TEST_F(PipeTest, AnUnreadTerminalStopsNoWriter) {
  const testkit::HangGuard guard("the lines of a terminal that stands still");
  const int master = ::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
  ASSERT_GE(master, 0);
  ASSERT_EQ(::grantpt(master), 0);
  ASSERT_EQ(::unlockpt(master), 0);
  const int terminal = ::open(::ptsname(master), O_RDWR | O_NOCTTY | O_CLOEXEC);
  ASSERT_GE(terminal, 0);
  {
    LineWriter writer(terminal, losses_);
    for (int i = 0; i < 1'000; ++i) writer.write(std::string(1'000, 'x'));
  }
  EXPECT_EQ(::fcntl(terminal, F_GETFL) & O_NONBLOCK, 0) << "other programs share the terminal";
  ::close(terminal);
  ::close(master);
}

TEST_F(PipeTest, TheEndOfTheServerReportsTheLosses) {
  const std::string message(1'000, 'x');
  {
    Logger logger(LogLevel::error, LogFormat::text, ends_[1]);
    for (int i = 0; i < 1'000; ++i) logger.write(LogLevel::error, "an.event", message);
    EXPECT_THAT(read(), Not(HasSubstr("log.lost")));
  }
  EXPECT_THAT(read(), HasSubstr("log.lost"));
}

TEST_F(PipeTest, AFullDiskLosesLines) {
  const int target = ::open("/dev/full", O_WRONLY | O_CLOEXEC);
  LineWriter writer(target, losses_);
  writer.write("one");
  writer.write("two");
  EXPECT_EQ(::dup2(ends_[1], target), target) << "the disk has space again";
  writer.write("three");
  EXPECT_EQ(read(), "lost 2\nthree\n");
  ::close(target);
}

class DeclaredConfigTest : public testing::Test {
 protected:
  std::map<std::string, std::string> settings_;
  DeclaredConfig config_{"limiter.window.", settings_};
};

TEST_F(DeclaredConfigTest, WithoutASettingTheFallbackCounts) {
  EXPECT_EQ(config_.text("name", "none", "a name"), "none");
  EXPECT_EQ(config_.integer("count", 5, 1, 9, "a count"), 5);
  EXPECT_EQ(config_.duration("wait", Millis(1'500), Millis(1), Millis(60'000), "a wait"), Millis(1'500));
  EXPECT_EQ(config_.size("log", 1'024, 1, 1UL << 30, "a size"), 1'024U);
  EXPECT_TRUE(config_.flag("on", true, "a switch"));
}

TEST_F(DeclaredConfigTest, ASettingIsReadWithTheUnit) {
  settings_ = {{"limiter.window.name", "x"},  {"limiter.window.count", "9"},  {"limiter.window.wait", "2s"},
               {"limiter.window.log", "4KB"}, {"limiter.window.on", "false"}, {"limiter.other.count", "1"}};
  EXPECT_EQ(config_.text("name", "none", ""), "x");
  EXPECT_EQ(config_.integer("count", 5, 1, 9, ""), 9);
  EXPECT_EQ(config_.duration("wait", Millis(1), Millis(1), Millis(60'000), ""), Millis(2'000));
  EXPECT_EQ(config_.size("log", 1, 1, 1UL << 30, ""), 4'096U);
  EXPECT_FALSE(config_.flag("on", true, ""));
}

TEST_F(DeclaredConfigTest, AWrongSettingNamesTheWholeKeyAndTheRange) {
  const auto refusal = [](auto&& ask) { return testkit::thrownText<ConfigError>(ask); };
  settings_ = {{"limiter.window.count", "10"}, {"limiter.window.wait", "90"}, {"limiter.window.on", "yes"}};
  const std::string count = refusal([this] { (void)config_.integer("count", 5, 1, 9, ""); });
  for (const char* part : {"limiter.window.count", "10", "1", "9"}) EXPECT_THAT(count, HasSubstr(part));
  EXPECT_THAT(refusal([this] { (void)config_.duration("wait", Millis(1), Millis(1), Millis(9), ""); }),
              HasSubstr("limiter.window.wait"));
  EXPECT_THAT(refusal([this] { (void)config_.flag("on", true, ""); }), HasSubstr("limiter.window.on"));
}

TEST_F(DeclaredConfigTest, ASecretIsReadAndNeverShown) {
  settings_ = {{"limiter.window.password", "hunter2"}, {"limiter.window.empty", ""}};
  EXPECT_EQ(readSecret(config_, "password", "a password"), "hunter2");
  EXPECT_EQ(readSecret(config_, "empty", ""), "");
  EXPECT_EQ(readSecret(config_, "absent", ""), "");
  ASSERT_EQ(config_.options().size(), 3U);
  EXPECT_EQ(config_.options()[0].type, std::string("secret"));
  EXPECT_EQ(config_.options()[0].value, "set");
  EXPECT_EQ(config_.options()[0].help, "a password");
  EXPECT_EQ(config_.options()[1].value, "");
  EXPECT_EQ(config_.options()[2].value, "");
}

TEST_F(DeclaredConfigTest, AskingDeclares) {
  settings_ = {{"limiter.window.count", "7"}};
  (void)config_.integer("count", 5, 1, 9, "how many");
  (void)config_.duration("wait", Millis(1'500), Millis(1), Millis(60'000), "how long");
  ASSERT_EQ(config_.options().size(), 2U);
  const PluginOption& count = config_.options()[0];
  EXPECT_EQ(count.key, "limiter.window.count");
  EXPECT_EQ(count.type, std::string("integer"));
  EXPECT_EQ(count.fallback, "5") << "the fallback applies without the setting";
  EXPECT_EQ(count.range, "1 to 9");
  EXPECT_EQ(count.help, "how many");
  EXPECT_EQ(config_.options()[1].fallback, "1500ms");
  EXPECT_EQ(config_.options()[1].range, "1ms to 1m");
}

}  // namespace
}  // namespace jobq
