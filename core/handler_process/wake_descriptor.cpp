#include "core/handler_process/wake_descriptor.h"

#include <sys/eventfd.h>

#include <cerrno>
#include <system_error>

namespace jobq::worker {

WakeDescriptor::WakeDescriptor() : event_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!event_.isOpen()) throw std::system_error(errno, std::generic_category(), "no event can be made");
}

void WakeDescriptor::notify() const noexcept { (void)::eventfd_write(event_.number(), 1); }

void WakeDescriptor::clear() const noexcept {
  eventfd_t count = 0;
  (void)::eventfd_read(event_.number(), &count);
}

}  // namespace jobq::worker
