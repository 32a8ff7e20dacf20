#include "connection/open_sockets.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

namespace jobq::mysql {

void OpenSockets::cutAll() noexcept {
  isCut_ = true;
  const Lock lock(mutex_);
  for (const auto& [descriptor, generation] : descriptors_) ::shutdown(descriptor, SHUT_RDWR);
}

void OpenSockets::cutBefore(std::uint64_t generation) noexcept {
  const Lock lock(mutex_);
  oldest_ = generation;
  for (const auto& [descriptor, of] : descriptors_) {
    if (of < generation) ::shutdown(descriptor, SHUT_RDWR);
  }
}

OpenSocket::OpenSocket(std::shared_ptr<OpenSockets> sockets, int socket, std::uint64_t generation)
    : sockets_(std::move(sockets)), descriptor_(::fcntl(socket, F_DUPFD_CLOEXEC, 0)) {
  if (descriptor_ < 0) return;
  const Lock lock(sockets_->mutex_);
  sockets_->descriptors_.emplace(descriptor_, generation);
  // The cut may have come while the connection was being opened.
  if (sockets_->isCut_ || generation < sockets_->oldest_) ::shutdown(descriptor_, SHUT_RDWR);
}

OpenSocket::~OpenSocket() {
  if (descriptor_ < 0) return;
  const Lock lock(sockets_->mutex_);
  sockets_->descriptors_.erase(descriptor_);
  ::close(descriptor_);
}

}  // namespace jobq::mysql
