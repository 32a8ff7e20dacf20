// The events of the log as operators read them in etc/events.md.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "jobq/log.h"

namespace jobq {

/// Lines of one kind in the log, or of several kinds with one meaning.
struct LogEvent {
  std::string_view names;  ///< names as in the log, with ", " between two; the name of a plugin's event begins with the
                           ///< kind and the name of the plugin
  std::string_view meaning;  ///< a sentence
  std::string_view action;   ///< action of the operator, a sentence; empty if the event needs no action
};

/// Events of one program with one level.
struct LogEventSection {
  std::string_view title;  ///< a heading of etc/events.md
  LogLevel level;
  std::span<const LogEvent> events;
};

/// Returns every event of jobqd, of jobq-worker and of the plugins of this repository; constant. An event that is
/// written with two levels is in two sections.
std::span<const LogEventSection> logEventSections();

/// Returns etc/events.md. Pure; any thread.
std::string logEventsPage();

}  // namespace jobq
