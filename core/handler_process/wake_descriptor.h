// A descriptor that lets a thread wake another thread out of poll().
#pragma once

#include "core/handler_process/descriptor.h"

namespace jobq::worker {

/// Readable from notify() until clear(). Any thread may call notify().
class WakeDescriptor {
 public:
  /// Throws std::system_error.
  WakeDescriptor();

  void notify() const noexcept;
  void clear() const noexcept;
  int number() const { return event_.number(); }

 private:
  Descriptor event_;
};

}  // namespace jobq::worker
