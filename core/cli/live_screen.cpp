#include "core/cli/live_screen.h"

#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <iostream>

namespace jobq::cli {
namespace {

// Switches to the alternate screen, so that the former content of the terminal is visible again afterwards, and hides
// the cursor.
constexpr char kEnter[] = "\x1b[?1049h\x1b[?25l";
constexpr char kLeave[] = "\x1b[?25h\x1b[?1049l";

// State to be restored by the signal handler. Written before the handler is installed, and only read afterwards.
struct Kept {
  bool drawn = false;
  bool typed = false;
  termios before{};
};
Kept kept;

// Calls only functions that are safe in a signal handler.
void restoreTerminal() {
  if (kept.typed) (void)tcsetattr(STDIN_FILENO, TCSANOW, &kept.before);
  if (kept.drawn) (void)!write(STDOUT_FILENO, kLeave, sizeof kLeave - 1);
}

extern "C" void endAtSignal(int signal) {
  restoreTerminal();
  if (signal == SIGINT) _exit(0);
  (void)::signal(signal, SIG_DFL);
  (void)raise(signal);
}

constexpr int kSignals[] = {SIGINT, SIGTERM, SIGHUP};

void handleSignals(void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  sigemptyset(&action.sa_mask);
  for (const int signal : kSignals) (void)sigaction(signal, &action, nullptr);
}

// Keys arrive one by one and are not shown. Ctrl-Z is disabled, because a stopped process would leave the terminal in
// raw mode.
void readKeysRaw() {
  termios raw = kept.before;
  raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
  raw.c_cc[VSUSP] = _POSIX_VDISABLE;
  raw.c_cc[VMIN] = 1;
  raw.c_cc[VTIME] = 0;
  (void)tcsetattr(STDIN_FILENO, TCSANOW, &raw);
}

struct Size {
  std::size_t rows = 24;
  std::size_t columns = 80;
};

Size screenSize() {
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_row == 0 || size.ws_col == 0) return {};
  return {size.ws_row, size.ws_col};
}

// Returns the first `columns` UTF-8 characters of the line.
std::string cut(const std::string& line, std::size_t columns) {
  std::size_t characters = 0;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const bool begins = (static_cast<unsigned char>(line[i]) & 0xc0) != 0x80;
    if (begins && ++characters > columns) return line.substr(0, i);
  }
  return line;
}

}  // namespace

LiveScreen::LiveScreen() : drawn_(isatty(STDOUT_FILENO) == 1) {
  kept.drawn = drawn_;
  kept.typed = drawn_ && isatty(STDIN_FILENO) == 1 && tcgetattr(STDIN_FILENO, &kept.before) == 0;
  handleSignals(endAtSignal);
  if (kept.typed) readKeysRaw();
  if (drawn_) std::cout << kEnter << std::flush;
}

LiveScreen::~LiveScreen() {
  handleSignals(SIG_DFL);
  restoreTerminal();
}

void LiveScreen::draw(const std::string& picture) {
  if (!drawn_) {
    std::cout << picture << std::flush;
    return;
  }
  const Size size = screenSize();
  std::string out = "\x1b[H";
  std::size_t row = 0;
  for (std::size_t at = 0; at < picture.size() && row < size.rows; ++row) {
    const std::size_t end = std::min(picture.find('\n', at), picture.size());
    out += std::string(row == 0 ? "" : "\n") + cut(picture.substr(at, end - at), size.columns) + "\x1b[K";
    at = end + 1;
  }
  std::cout << out << "\x1b[J" << std::flush;
}

bool LiveScreen::pause(Millis duration) {
  const auto end = std::chrono::steady_clock::now() + duration;
  for (;;) {
    const auto left = std::chrono::ceil<Millis>(end - std::chrono::steady_clock::now());
    if (left <= Millis{0}) return true;
    pollfd keys{STDIN_FILENO, POLLIN, 0};
    const int ready = poll(&keys, kept.typed ? 1 : 0, static_cast<int>(left.count()));
    if (ready < 0 && errno != EINTR) return false;
    if (ready <= 0) continue;
    char key = 0;
    if (read(STDIN_FILENO, &key, 1) != 1 || key == 'q' || key == 'Q') return false;
  }
}

}  // namespace jobq::cli
