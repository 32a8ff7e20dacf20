#include "core/base/line_writer.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>

namespace jobq {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr milliseconds kLongestWait{200};
constexpr milliseconds kNoticeableWait{50};
constexpr milliseconds kBetweenWaits{5'000};
constexpr int kPause = 5;  // ms

/// Bytes that a ready pipe takes at once (PIPE_BUF of pipe(7)). A longer write would block at a pipe that could not be
/// opened again.
constexpr std::size_t kBytesAtOnce = 4'096;

mode_t kindOf(int descriptor) {
  struct stat status {};
  return ::fstat(descriptor, &status) == 0 ? status.st_mode & S_IFMT : 0;
}

/// Opens a pipe or a terminal again, because other programs with the same terminal share the flag O_NONBLOCK of the
/// first opening. Returns -1 for another kind of file, and if the opening is refused.
int openWithoutWaits(int descriptor) {
  if (kindOf(descriptor) != S_IFIFO && ::isatty(descriptor) == 0) return -1;
  const std::string path = "/proc/self/fd/" + std::to_string(descriptor);
  return ::open(path.c_str(), O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

}  // namespace

LineWriter::LineWriter(int descriptor, const LossReport& losses)
    : own_(openWithoutWaits(descriptor)),
      descriptor_(own_ >= 0 ? own_ : descriptor),
      isSocket_(kindOf(descriptor) == S_IFSOCK),
      losses_(losses) {}

LineWriter::~LineWriter() {
  if (own_ >= 0) ::close(own_);
}

void LineWriter::write(std::string_view line) {
  Lock lock(mutex_);
  if (!writeLines(std::string(line).append("\n"))) ++lost_;
}

void LineWriter::reportLosses() {
  Lock lock(mutex_);
  if (lost_ > 0) (void)writeLines("");
}

// The report and the next line are one write: a short report alone fits into a full pipe again and again.
bool LineWriter::writeLines(std::string_view lines) {
  std::string text = isCut_ ? "\n" : "";
  if (lost_ > 0) text.append(losses_.lossLine(lost_)).append("\n");
  text.append(lines);
  if (!writeBytes(text)) return false;
  lost_ = 0;
  return true;
}

bool LineWriter::writeBytes(std::string_view bytes) {
  const auto began = steady_clock::now();
  const auto end = began >= nextWait_ ? began + kLongestWait : began;
  const bool neverBlocks = own_ >= 0 || isSocket_;
  bool hasAsked = false;  // the reader takes bytes, by the answer of the system
  while (!bytes.empty()) {
    if (!neverBlocks && !hasAsked && !(hasAsked = waitForReader(end))) break;
    const std::size_t size = std::min(bytes.size(), kBytesAtOnce);
    const ssize_t written = isSocket_ ? ::send(descriptor_, bytes.data(), size, MSG_DONTWAIT | MSG_NOSIGNAL)
                                      : ::write(descriptor_, bytes.data(), size);
    if (written > 0) {
      bytes.remove_prefix(static_cast<std::size_t>(written));
      isCut_ = !bytes.empty();
      hasAsked = false;
    } else if (written < 0 && errno == EAGAIN) {
      // A terminal may take nothing although the system calls it ready.
      if (hasAsked) (void)::poll(nullptr, 0, kPause);
      if (!(hasAsked = waitForReader(end)) || steady_clock::now() >= end) break;
    } else if (written == 0 || errno != EINTR) {
      return false;
    }
  }
  if (!bytes.empty() || steady_clock::now() >= began + kNoticeableWait) nextWait_ = began + kBetweenWaits;
  return bytes.empty();
}

bool LineWriter::waitForReader(steady_clock::time_point end) const {
  for (;;) {
    const auto left = std::chrono::ceil<milliseconds>(end - steady_clock::now());
    pollfd target{descriptor_, POLLOUT, 0};
    const int ready = ::poll(&target, 1, static_cast<int>(std::max(left, milliseconds(0)).count()));
    if (ready >= 0 || errno != EINTR) return ready > 0;
  }
}

}  // namespace jobq
