// A descriptor that lets a thread wake another thread out of poll().
#pragma once

#include "jobq/file_descriptor.h"

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
  FileDescriptor event_;
};

}  // namespace jobq::worker
