#include "core/http/transport/byte_stream.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace jobq {
namespace {

constexpr std::chrono::milliseconds kWaitLimit{20'000};
constexpr std::chrono::milliseconds kGrace{1'000};
constexpr std::size_t kBytesASecond = 8192;

void removeFront(std::string_view& first, std::string_view& second, std::size_t bytes) {
  const std::size_t ofFirst = std::min(bytes, first.size());
  first.remove_prefix(ofFirst);
  second.remove_prefix(bytes - ofFirst);
}

class PlainStream final : public ByteStream {
 public:
  // A read with a time limit in the socket is a single system call; poll and read would be two.
  explicit PlainStream(int descriptor) : ByteStream(descriptor) {
    constexpr timeval kTime{0, std::chrono::microseconds(kLinger).count()};
    ::setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &kTime, sizeof kTime);
  }

  std::optional<std::size_t> read(char* to, std::size_t size, Wait wait) override {
    for (;;) {
      const ssize_t got = ::recv(descriptor(), to, size, wait == Wait::no ? MSG_DONTWAIT : 0);
      if (got >= 0) return static_cast<std::size_t>(got);
      if (errno == EAGAIN || errno == EWOULDBLOCK) return std::nullopt;
      if (errno != EINTR) return 0;
    }
  }

  std::optional<std::size_t> writeSome(std::string_view first, std::string_view second) override {
    std::size_t moved = 0;
    while (!first.empty() || !second.empty()) {
      iovec parts[] = {{const_cast<char*>(first.data()), first.size()},
                       {const_cast<char*>(second.data()), second.size()}};
      msghdr message{};
      message.msg_iov = parts;
      message.msg_iovlen = 2;
      const ssize_t sent = ::sendmsg(descriptor(), &message, MSG_DONTWAIT | MSG_NOSIGNAL);
      if (sent < 0 && errno == EINTR) continue;
      if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) break;
      if (sent < 0) return std::nullopt;
      moved += static_cast<std::size_t>(sent);
      removeFront(first, second, static_cast<std::size_t>(sent));
    }
    return moved;
  }
};

}  // namespace

TransferDeadline::Verdict TransferDeadline::mayWait() noexcept {
  if (places_ == nullptr || left().count() == 0) return Verdict::late;
  const bool needsPlace = used() >= kGrace && place_.amount() == 0;
  return needsPlace && !place_.grow(*places_, 1) ? Verdict::noSlot : Verdict::wait;
}

std::chrono::milliseconds TransferDeadline::used() const noexcept {
  return std::chrono::duration_cast<std::chrono::milliseconds>(time_->steady() - start_);
}

std::chrono::milliseconds TransferDeadline::untilNextQuestion() const noexcept {
  if (place_.amount() > 0) return left();
  return std::min(left(), std::max(kGrace - used(), std::chrono::milliseconds(1)));
}

std::chrono::milliseconds TransferDeadline::left() const noexcept {
  const auto allowed = kWaitLimit + std::chrono::seconds(bytes_ / kBytesASecond);
  return std::max(std::chrono::milliseconds(0), allowed - used());
}

ByteStream::~ByteStream() { ::close(descriptor_); }

bool ByteStream::write(std::string_view first, std::string_view second, TransferDeadline deadline) {
  for (;;) {
    const auto moved = writeSome(first, second);
    if (!moved) return false;
    deadline.moved(*moved);
    removeFront(first, second, *moved);
    if (first.empty() && second.empty()) return true;
    if (deadline.mayWait() != TransferDeadline::Verdict::wait) return false;
    await(POLLOUT, deadline.untilNextQuestion());
  }
}

void ByteStream::endSending() noexcept { ::shutdown(descriptor_, SHUT_WR); }

void ByteStream::shutDown() noexcept { ::shutdown(descriptor_, SHUT_RDWR); }

std::optional<std::size_t> ByteStream::drop(char* scrap, std::size_t size) noexcept {
  for (;;) {
    const ssize_t got = ::recv(descriptor_, scrap, size, MSG_DONTWAIT);
    if (got >= 0) return static_cast<std::size_t>(got);
    if (errno == EAGAIN || errno == EWOULDBLOCK) return std::nullopt;
    if (errno != EINTR) return 0;
  }
}

bool ByteStream::peerHasClosed() const noexcept {
  pollfd asked{descriptor_, POLLRDHUP, 0};
  return ::poll(&asked, 1, 0) == 1 && (asked.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
}

void ByteStream::await(short events, std::chrono::milliseconds atMost) const noexcept {
  pollfd waiting{descriptor_, events, 0};
  const auto end = std::chrono::steady_clock::now() + atMost;
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
    const int ready = ::poll(&waiting, 1, static_cast<int>(std::max<std::int64_t>(left.count(), 0)));
    if (ready >= 0 || errno != EINTR) return;
  }
}

std::unique_ptr<ByteStream> plainStream(int descriptor) { return std::make_unique<PlainStream>(descriptor); }

}  // namespace jobq
