#include "core/worker_program/report_sender.h"

#include <utility>

#include "core/client/exit_code.h"
#include "core/worker_program/call_pauses.h"
#include "core/worker_program/report_text.h"

namespace jobq::worker {

bool isKeyRefused(const CallDeps& deps, const Answer& answer) {
  if (answer.status != 401) return false;
  deps.end.fail("the server refuses the key: " + answer.refusal);
  return true;
}

ReportSender::ReportSender(const CallDeps& deps)
    : deps_(deps), connection_(deps.addresses.server(), deps.key, cli::kAnswerLimit, deps.clock) {}

std::string ReportSender::post(const std::string& path, const std::string& body, const std::stop_token& stop,
                               Instant latest) {
  CallPauses pauses("reports of jobs", deps_.clock, deps_.log, stop);
  std::string why;
  do {
    try {
      Answer answer = connection_.post(path, body);
      if (answer.isSuccess()) {
        pauses.noteSuccess();
        return std::move(answer.body);
      }
      if (isKeyRefused(deps_, answer)) return "";
      if (!answer.isTransient()) {
        deps_.log.write(LogLevel::error, "report.refused", "the server refuses a report of a job: " + answer.refusal);
        return "";
      }
      why = answer.refusal;
    } catch (const cli::CommandError& error) {
      why = error.what();
    }
  } while (deps_.clock.now() < latest && pauses.pause(why, latest));
  return "";
}

void ReportSender::postLoss(const JobId& job, const std::stop_token& stop, Instant latest) {
  const std::string& path = deps_.addresses.results();
  if (path.empty()) return;
  CallPauses pauses("reports of lost jobs", deps_.clock, deps_.log, stop);
  try {
    Answer answer;
    do {
      answer = connection_.post(path, lossText(job));
    } while (answer.isTransient() && deps_.clock.now() < latest && pauses.pause(answer.refusal, latest));
    (void)isKeyRefused(deps_, answer);
  } catch (const cli::CommandError&) {
    return;  // the calls for jobs and stops log the loss of the server
  }
}

}  // namespace jobq::worker
