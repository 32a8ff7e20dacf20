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

/// The objects with which the threads of a worker call the server. All of them outlive the threads.
struct CallDeps {
  const CallAddresses& addresses;
  const std::string& key;
  Clock& clock;
  Log& log;
  EndRequest& end;
};

/// Ends the worker if the server does not know its key. Returns true then.
bool isKeyRefused(const CallDeps& deps, const Answer& answer);

/// Sends the reports of one handler, in order, over one connection. Used by one thread.
class ReportSender {
 public:
  explicit ReportSender(const CallDeps& deps);

  /// Posts a report, again and again with pauses, until the server has the report or refuses it for ever, until `stop`,
  /// or until `latest`. The first try is made in any case. A report whose answer was lost may come twice. Returns the
  /// answer of a success, and an empty text otherwise.
  std::string post(const std::string& path, const std::string& body, const std::stop_token& stop, Instant latest);

  /// Reports that the handler of a job has died. The report is repeated until `latest` while the server answers that it
  /// cannot store now, but not after a call without an answer: the server may have given the job to this worker again
  /// meanwhile. A server that does not get the report, or does not know it, notices the loss by the pings.
  void postLoss(const JobId& job, const std::stop_token& stop, Instant latest);

 private:
  const CallDeps deps_;
  ServerConnection connection_;
};

}  // namespace jobq::worker
