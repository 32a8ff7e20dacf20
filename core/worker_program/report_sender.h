// Sending of reports about jobs to the server.
#pragma once

#include <stop_token>
#include <string>

#include "core/worker_program/call_addresses.h"
#include "core/worker_program/end_request.h"
#include "core/worker_program/server_connection.h"
#include "jobq/job.h"
#include "jobq/log.h"
#include "jobq/time.h"

namespace jobq::worker {

/// The objects with which the threads of a worker call the server. All members outlive the threads.
struct CallDeps {
  const CallAddresses& addresses;
  const std::string& key;
  Clock& clock;
  Log& log;
  EndRequest& end;
};

/// Ends the worker if the server does not know the key of the worker. Returns true then.
bool isKeyRefused(const CallDeps& deps, const Answer& answer);

/// Sends the reports of a handler, in order, over a single connection. Used by one thread.
class ReportSender {
 public:
  explicit ReportSender(const CallDeps& deps);

  /// Posts a report, again and again with pauses, until the server has the report or refuses the report for ever, until
  /// `stop`, or until `latest`. The first try is made in any case. A report may come twice if an answer was lost.
  /// Returns the answer of a success, and an empty text otherwise.
  std::string post(const std::string& path, const std::string& body, const std::stop_token& stop, Instant latest);

  /// Reports that the handler of a job has died. Repeats the report until `latest` while the server answers that
  /// storing is not possible now. If no answer comes, the report is not repeated, because the server may have given the
  /// job to the worker again meanwhile. A server that has no report, or is older, finds the loss in the pings.
  void postLoss(const JobId& job, const std::stop_token& stop, Instant latest);

 private:
  const CallDeps deps_;
  ServerConnection connection_;
};

}  // namespace jobq::worker
