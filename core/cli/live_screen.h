// The terminal during a live view: a picture is drawn again and again, and the former state of the terminal is restored
// at the end, also after a signal.
#pragma once

#include <string>

#include "jobq/time.h"

namespace jobq::cli {

/// Live view on standard output. At most one object at a time, on the main thread. While the object exists, SIGINT ends
/// the process at once with exit code 0, and SIGTERM and SIGHUP end the process as usual; the terminal is restored
/// first. If standard output is no terminal, the pictures are printed one after the other.
class LiveScreen {
 public:
  LiveScreen();
  ~LiveScreen();
  LiveScreen(const LiveScreen&) = delete;
  LiveScreen& operator=(const LiveScreen&) = delete;

  /// Draws `picture`, whole lines without control characters. On a terminal, lines beyond the width and the height of
  /// the screen are cut off.
  void draw(const std::string& picture);

  /// Waits for `duration` milliseconds. Returns false if the user typed q meanwhile, or if the terminal is gone.
  bool pause(Millis duration);

 private:
  const bool drawn_;  ///< standard output is a terminal
};

}  // namespace jobq::cli
