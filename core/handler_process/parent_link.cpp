#include "core/handler_process/parent_link.h"

#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <utility>

#include "core/base/service.h"

namespace jobq::worker {
namespace {

constexpr std::size_t kPieceBytes = 256UL << 10;

// No destructor runs, because a handler may be at work with the objects.
[[noreturn]] void leaveProcess() { ::_exit(1); }

}  // namespace

ParentLink::ParentLink(int socket) : socket_(socket) {
  reader_ = std::thread([this] {
    nameThread("messages");
    readAll();
  });
}

ParentLink::~ParentLink() {
  {
    Lock lock(mutex_);
    isIdle_ = true;
  }
  ::shutdown(socket_, SHUT_RD);
  reader_.join();
}

std::optional<Message> ParentLink::awaitWork() {
  Lock lock(mutex_);
  isIdle_ = true;
  while (!work_ && !isOver_) changed_.wait(mutex_);
  isIdle_ = !work_;
  return std::exchange(work_, std::nullopt);
}

std::stop_token ParentLink::stopToken() const {
  Lock lock(mutex_);
  return stop_.get_token();
}

void ParentLink::send(std::string_view bytes) const {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno != EINTR) leaveProcess();
    if (sent > 0) bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
}

Message ParentLink::awaitAnswer() {
  Lock lock(mutex_);
  while (!answer_) changed_.wait(mutex_);
  Message answer = *std::move(answer_);
  answer_.reset();
  return answer;
}

void ParentLink::readAll() {
  MessageReader reader;
  std::string piece(kPieceBytes, '\0');
  try {
    for (;;) {
      const ssize_t got = ::recv(socket_, piece.data(), piece.size(), 0);
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) break;
      reader.add(std::string_view(piece).substr(0, static_cast<std::size_t>(got)));
      while (auto message = reader.next()) accept(*std::move(message));
    }
  } catch (const MalformedMessage&) {
    leaveProcess();
  }
  Lock lock(mutex_);
  if (!isIdle_) leaveProcess();
  isOver_ = true;
  changed_.notifyAll();
}

void ParentLink::accept(Message message) {
  std::optional<std::stop_source> stopped;
  {
    Lock lock(mutex_);
    switch (message.kind) {
      case MessageKind::job: stop_ = std::stop_source(); [[fallthrough]];
      case MessageKind::setup: work_ = std::move(message); break;
      case MessageKind::noted:
      case MessageKind::refused: answer_ = std::move(message); break;
      case MessageKind::stop: stopped = stop_; break;
      default: throw MalformedMessage("a message that is not for a handler");
    }
    changed_.notifyAll();
  }
  if (stopped) stopped->request_stop();
}

}  // namespace jobq::worker
