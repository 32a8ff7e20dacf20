// Tests of the live view of `jobqctl top` on a terminal of the test, and without a terminal (core/cli/live_screen.h).
#include "core/cli/live_screen.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <iostream>
#include <string>
#include <string_view>
#include <system_error>

#include "jobq/time.h"

namespace jobq::cli {
namespace {

const std::string kEnter = "\x1b[?1049h\x1b[?25l";
const std::string kLeave = "\x1b[?25h\x1b[?1049l";
constexpr Millis kHang{60'000};

/// Puts other descriptors in the place of standard input and output until its end.
class Redirected {
 public:
  Redirected(int input, int output) : input_(::dup(STDIN_FILENO)), output_(::dup(STDOUT_FILENO)) {
    std::cout << std::flush;
    ::dup2(input, STDIN_FILENO);
    ::dup2(output, STDOUT_FILENO);
  }
  ~Redirected() {
    std::cout << std::flush;
    std::cout.clear();
    ::dup2(input_, STDIN_FILENO);
    ::dup2(output_, STDOUT_FILENO);
    ::close(input_);
    ::close(output_);
  }
  Redirected(const Redirected&) = delete;
  Redirected& operator=(const Redirected&) = delete;

 private:
  const int input_;
  const int output_;
};

/// A terminal that does not control the test's process. The test types keys and reads the screen at the other end.
class Terminal {
 public:
  explicit Terminal(unsigned short rows = 24, unsigned short columns = 80)
      : keyboard_(::posix_openpt(O_RDWR | O_NOCTTY)) {
    if (keyboard_ < 0 || ::grantpt(keyboard_) != 0 || ::unlockpt(keyboard_) != 0) {
      throw std::system_error(errno, std::generic_category(), "posix_openpt");
    }
    std::array<char, 100> name{};
    if (::ptsname_r(keyboard_, name.data(), name.size()) != 0) {
      throw std::system_error(errno, std::generic_category(), "ptsname_r");
    }
    screen_ = ::open(name.data(), O_RDWR | O_NOCTTY);
    winsize size{};
    size.ws_row = rows;
    size.ws_col = columns;
    ::ioctl(screen_, TIOCSWINSZ, &size);
  }
  ~Terminal() {
    unplug();
    ::close(screen_);
  }
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  int screen() const { return screen_; }
  void type(std::string_view keys) const {
    ASSERT_EQ(::write(keyboard_, keys.data(), keys.size()), static_cast<ssize_t>(keys.size()));
  }
  void unplug() {
    if (keyboard_ >= 0) ::close(keyboard_);
    keyboard_ = -1;
  }
  /// Returns the bytes written to the screen so far. The terminal has made "\r\n" of each line end.
  std::string shown() const {
    std::string text;
    std::array<char, 4'096> bytes{};
    for (pollfd waiting{keyboard_, POLLIN, 0}; ::poll(&waiting, 1, 0) == 1;) {
      const ssize_t got = ::read(keyboard_, bytes.data(), bytes.size());
      if (got <= 0) break;
      text.append(bytes.data(), static_cast<std::size_t>(got));
    }
    return text;
  }
  termios settings() const {
    termios now{};
    EXPECT_EQ(::tcgetattr(screen_, &now), 0);
    return now;
  }

 private:
  int keyboard_;
  int screen_ = -1;
};

TEST(LiveScreenTest, WithoutATerminalThePicturesFollowEachOther) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
  bool goesOn = false;
  {
    const Redirected redirected(ends[0], ends[1]);
    LiveScreen screen;
    screen.draw("first \n");
    screen.draw("a line of more than eighty characters: " + std::string(80, 'x') + "\n");
    goesOn = screen.pause(Millis{1});
  }
  ::close(ends[1]);
  std::array<char, 4'096> bytes{};
  const ssize_t got = ::read(ends[0], bytes.data(), bytes.size());
  ::close(ends[0]);
  ASSERT_GE(got, 0);
  EXPECT_EQ(std::string(bytes.data(), static_cast<std::size_t>(got)),
            "first \na line of more than eighty characters: " + std::string(80, 'x') + "\n");
  EXPECT_TRUE(goesOn) << "bytes on standard input are not keys";
}

TEST(LiveScreenTest, OnATerminalAPictureReplacesTheFormerPicture) {
  const Terminal terminal;
  std::string first;
  std::string second;
  {
    const Redirected redirected(terminal.screen(), terminal.screen());
    LiveScreen screen;
    screen.draw("one\ntwo\n");
    first = terminal.shown();
    screen.draw("three");
    second = terminal.shown();
  }
  EXPECT_EQ(first, kEnter + "\x1b[Hone\x1b[K\r\ntwo\x1b[K\x1b[J");
  EXPECT_EQ(second, "\x1b[Hthree\x1b[K\x1b[J");
  EXPECT_EQ(terminal.shown(), kLeave);
}

TEST(LiveScreenTest, APictureIsCutToTheScreen) {
  const Terminal terminal(3, 5);
  std::string shown;
  {
    const Redirected redirected(terminal.screen(), terminal.screen());
    LiveScreen screen;
    (void)terminal.shown();
    screen.draw("abcdefg\n\n\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\nbeyond\n");
    shown = terminal.shown();
  }
  EXPECT_EQ(shown, "\x1b[Habcde\x1b[K\r\n\x1b[K\r\n\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\x1b[K\x1b[J");
}

TEST(LiveScreenTest, ATerminalWithoutASizeHas24LinesOf80Characters) {
  const Terminal terminal(0, 0);
  std::string picture;
  for (int i = 0; i < 30; ++i) picture += std::string(90, static_cast<char>('a' + i % 26)) + "\n";
  std::string shown;
  {
    const Redirected redirected(terminal.screen(), terminal.screen());
    LiveScreen screen;
    (void)terminal.shown();
    screen.draw(picture);
    shown = terminal.shown();
  }
  std::string expected = "\x1b[H";
  for (int i = 0; i < 24; ++i) {
    expected += (i == 0 ? "" : "\r\n") + std::string(80, static_cast<char>('a' + i)) + "\x1b[K";
  }
  EXPECT_EQ(shown, expected + "\x1b[J");
}

TEST(LiveScreenTest, TheKeyQEndsAPauseAndOtherKeysDoNot) {
  const Terminal terminal;
  bool small = true;
  bool large = true;
  bool other = false;
  {
    const Redirected redirected(terminal.screen(), terminal.screen());
    LiveScreen screen;
    terminal.type("xyq");
    small = screen.pause(kHang);
    terminal.type("Q");
    large = screen.pause(kHang);
    terminal.type("x\x1b");
    other = screen.pause(Millis{5});
  }
  EXPECT_FALSE(small);
  EXPECT_FALSE(large);
  EXPECT_TRUE(other);
}

TEST(LiveScreenTest, AClosedTerminalEndsAPause) {
  Terminal terminal;
  bool goesOn = true;
  {
    const Redirected redirected(terminal.screen(), terminal.screen());
    LiveScreen screen;
    terminal.unplug();
    goesOn = screen.pause(kHang);
  }
  EXPECT_FALSE(goesOn);
}

TEST(LiveScreenTest, KeysAreNotShownUntilTheEnd) {
  const Terminal terminal;
  const termios before = terminal.settings();
  termios during{};
  {
    const Redirected redirected(terminal.screen(), terminal.screen());
    LiveScreen screen;
    during = terminal.settings();
  }
  const termios after = terminal.settings();
  EXPECT_EQ(before.c_lflag & (ICANON | ECHO), static_cast<tcflag_t>(ICANON | ECHO));
  EXPECT_EQ(during.c_lflag & (ICANON | ECHO), 0U);
  EXPECT_EQ(during.c_lflag & ISIG, static_cast<tcflag_t>(ISIG)) << "Ctrl-C is still a signal";
  EXPECT_EQ(during.c_cc[VSUSP], _POSIX_VDISABLE);
  EXPECT_EQ(after.c_lflag, before.c_lflag);
  EXPECT_EQ(after.c_cc[VSUSP], before.c_cc[VSUSP]);
}

/// Shows a picture in a separate process, which gets the signal.
[[noreturn]] void showAndRaise(const Terminal& terminal, int signal) {
  const Redirected redirected(terminal.screen(), terminal.screen());
  LiveScreen screen;
  screen.draw("picture\n");
  (void)::raise(signal);
  std::abort();
}

TEST(LiveScreenDeathTest, ASignalRestoresTheTerminalFirst) {
  GTEST_FLAG_SET(death_test_style, "fast");
  const struct {
    int signal;
    bool interrupted;  ///< the process ends with the exit code 0
  } cases[] = {{SIGINT, true}, {SIGTERM, false}, {SIGHUP, false}};
  for (const auto& each : cases) {
    const Terminal terminal;
    const termios before = terminal.settings();
    if (each.interrupted) {
      EXPECT_EXIT(showAndRaise(terminal, each.signal), testing::ExitedWithCode(0), "");
    } else {
      EXPECT_EXIT(showAndRaise(terminal, each.signal), testing::KilledBySignal(each.signal), "");
    }
    EXPECT_EQ(terminal.shown(), kEnter + "\x1b[Hpicture\x1b[K\x1b[J" + kLeave) << each.signal;
    EXPECT_EQ(terminal.settings().c_lflag, before.c_lflag) << each.signal;
  }
}

}  // namespace
}  // namespace jobq::cli
