// The calls of the queue API, one function each, and what several of them need. queue_routes.cpp has the table.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <variant>

#include "core/base/bounded_integer.h"
#include "core/http/budget.h"
#include "core/http/call.h"
#include "core/http/routes.h"
#include "core/jobs/completion_notifier.h"
#include "core/jobs/job_service.h"
#include "jobq/job.h"
#include "jobq/time.h"

namespace jobq {

// submit_calls.cpp
Reply run(const QueueRooms& rooms, Call& call);
Reply runsync(const QueueRooms& rooms, Call& call);

// job_calls.cpp
Reply status(const QueueRooms& rooms, Call& call);
Reply statusSync(const QueueRooms& rooms, Call& call);
Reply cancel(const QueueRooms& rooms, Call& call);
Reply retry(const QueueRooms& rooms, Call& call);

// stream_calls.cpp. The text's array of chunks, and the object that SDKs want.
Reply streamArray(const QueueRooms& rooms, Call& call);
Reply streamObject(const QueueRooms& rooms, Call& call);

// log_calls.cpp
Reply logs(const QueueRooms& rooms, Call& call);

// endpoint_calls.cpp
Reply health(const QueueRooms& rooms, Call& call);
Reply requests(const QueueRooms& rooms, Call& call);
Reply purgeQueue(const QueueRooms& rooms, Call& call);

/// Counts the call towards its rate limit: called once its parameters and its body are known to be good, before
/// anything is done. Returns the 429 when the rate is exceeded.
std::optional<Reply> countUnderstood(Call& call);

/// 404: the job of the path.
Reply noJob(const Call& call);

/// Returns the 400 for a query parameter that is there more than once: one of its values would be dropped unseen.
std::optional<Reply> refuseTwice(const Call& call, const char* name);

/// A query parameter that is an integer, `fallback` when it is absent, or the 400 that names it and its range.
std::variant<std::int64_t, Reply> readNumber(const Call& call, const char* name, const Range& range,
                                             OutOfRange otherwise, std::int64_t fallback);

/// `wait`, in its range under the mount's rules.
std::variant<Millis, Reply> readWait(const QueueRooms& rooms, const Call& call, Millis fallback);

/// A place to wait in, taken for as long as the call lasts. Where all are taken the call does not wait: it answers the
/// present state at once.
struct WaitSlot {
  WaitSlot(const QueueRooms& rooms, Millis asked) : wait(place.grow(rooms.waiting, 1) ? asked : Millis(0)) {}
  Budget::Share place;
  const Millis wait;
};

/// The job, or 503 when too many large answers are being read already: a large answer is memory for as long as its
/// client takes to read it.
Reply wholeReply(const QueueRooms& rooms, Call& call, const Job& job);

DisconnectSignal disconnectSignal(const Call& call);

}  // namespace jobq
