// The terminal while a live view runs: one picture that is drawn over and over, and a terminal as it was before at the
// end, whichever way that comes.
#pragma once

#include <string>

#include "jobq/time.h"

namespace jobq::ctl {

/// At most one at a time, on the main thread. While it lives, SIGINT ends the process at once with exit code 0, and
/// SIGTERM and SIGHUP as ever; the terminal is put back first. When standard output is no terminal, pictures are
/// printed one after the other.
class LiveScreen {
 public:
  LiveScreen();
  ~LiveScreen();
  LiveScreen(const LiveScreen&) = delete;
  LiveScreen& operator=(const LiveScreen&) = delete;

  /// On a terminal lines that do not fit are cut off. `picture` consists of whole lines without control characters.
  void draw(const std::string& picture);

  /// Waits; false when the person has typed q meanwhile, or the terminal is gone.
  bool pause(Millis duration);

 private:
  const bool drawn_;  ///< standard output is a terminal
};

}  // namespace jobq::ctl
