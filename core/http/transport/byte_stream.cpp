#include "core/http/transport/byte_stream.h"

#include <linux/tcp.h>
#include <netinet/in.h>
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
/// TCP_CLOSE of <netinet/tcp.h>, which clang 14 does not read beside <linux/tcp.h>.
constexpr int kClosed = 7;

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
  if (isHurried() || left().count() == 0) return Verdict::late;
  const bool needsPlace = used() >= kGrace && !hasPlace();
  return needsPlace && !drawPlace() ? Verdict::noSlot : Verdict::wait;
}

bool TransferDeadline::drawPlace() noexcept {
  if (places_ != nullptr) return place_.grow(*places_, 1);
  readerPlace_ = readers_->enter(*reader_);
  return readerPlace_.isTaken();
}

std::chrono::milliseconds TransferDeadline::used() const noexcept {
  return std::chrono::duration_cast<std::chrono::milliseconds>(time_->steady() - start_);
}

std::chrono::milliseconds TransferDeadline::untilNextQuestion() const noexcept {
  if (hasPlace()) return left();
  return std::min(left(), std::max(kGrace - used(), std::chrono::milliseconds(1)));
}

std::chrono::milliseconds TransferDeadline::left() const noexcept {
  const auto allowed = kWaitLimit + std::chrono::seconds(bytes_ / kDemandedPace);
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

std::uint64_t ByteStream::bytesTaken() const noexcept {
  tcp_info info{};
  socklen_t size = sizeof info;
  return ::getsockopt(descriptor_, IPPROTO_TCP, TCP_INFO, &info, &size) == 0 ? info.tcpi_bytes_acked : 0;
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

bool ByteStream::wasReset() const noexcept {
  tcp_info info{};
  socklen_t size = sizeof info;
  return ::getsockopt(descriptor_, IPPROTO_TCP, TCP_INFO, &info, &size) == 0 && info.tcpi_state == kClosed;
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
