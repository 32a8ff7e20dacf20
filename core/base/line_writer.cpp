#include "core/base/line_writer.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>

namespace jobq {
namespace {

constexpr int kLongestWait = 200;  // ms

/// Bytes that a ready pipe takes without a wait (PIPE_BUF of pipe(7)).
constexpr std::size_t kBytesAtOnce = 4'096;

}  // namespace

void LineWriter::write(std::string_view line) {
  Lock lock(mutex_);
  if (lost_ > 0 && writeLine(losses_.lossLine(lost_))) lost_ = 0;
  if (lost_ > 0 || !writeLine(line)) ++lost_;
}

bool LineWriter::writeLine(std::string_view line) {
  std::string text = isCut_ ? "\n" : "";
  text.append(line).push_back('\n');
  return writeBytes(text);
}

bool LineWriter::writeBytes(std::string_view bytes) {
  while (!bytes.empty()) {
    if (!isReady()) return false;
    const ssize_t written = ::write(descriptor_, bytes.data(), std::min(bytes.size(), kBytesAtOnce));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(written));
    isCut_ = !bytes.empty();
  }
  return true;
}

bool LineWriter::isReady() {
  pollfd target{descriptor_, POLLOUT, 0};
  int ready = 0;
  do {
    ready = ::poll(&target, 1, isStalled_ ? 0 : kLongestWait);
  } while (ready < 0 && errno == EINTR);
  isStalled_ = ready <= 0;
  return !isStalled_;
}

}  // namespace jobq
