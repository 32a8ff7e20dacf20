#include "core/worker_program/result_sender.h"

#include <algorithm>
#include <cstddef>
#include <exception>
#include <string>
#include <utility>
#include <vector>

#include "core/client/exit_code.h"
#include "core/worker_program/call_pauses.h"
#include "core/worker_program/report_text.h"
#include "core/worker_program/server_connection.h"
#include "jobq/json_writer.h"

namespace jobq::worker {
namespace {

using Batch = std::vector<UnsentResult>;

std::string batchText(const Batch& batch) {
  return json::array([&batch](json::ArrayWriter& out) {
    for (const UnsentResult& result : batch) out.raw(namedText(result.job->job.id, result.report));
  });
}

class ResultSender {
 public:
  ResultSender(const CallDeps& deps, ResultQueue& results, JobsInHand& jobs, const std::stop_token& stop)
      : deps_(deps),
        results_(results),
        jobs_(jobs),
        connection_(deps.addresses.server(), deps.key, cli::kAnswerLimit, deps.clock),
        pauses_("reports of jobs", deps.clock, deps.log, stop),
        knowsBatches_(!deps.addresses.results().empty()) {}

  /// Returns most results of the next call.
  std::size_t most() const { return knowsBatches_ ? most_ : 1; }

  void send(Batch batch) {
    std::erase_if(batch, [](const UnsentResult& result) { return result.job->isAbandoned.load(); });
    if (batch.empty()) return;
    try {
      const Answer answer = post(batch);
      judge(answer, std::move(batch));
    } catch (const cli::CommandError& error) {
      sendLater(std::move(batch), error.what());
    }
  }

 private:
  Answer post(const Batch& batch) {
    if (batch.size() > 1) return connection_.post(deps_.addresses.results(), batchText(batch));
    return connection_.post(deps_.addresses.result(batch.front().job->job.id), batch.front().report);
  }

  void judge(const Answer& answer, Batch batch) {
    if (answer.isSuccess()) {
      pauses_.noteSuccess();
      most_ = ResultQueue::kMostAtOnce;
      return forget(batch);
    }
    if (isKeyRefused(deps_, answer)) return;
    const bool isUnknown = answer.status == 404 || answer.status == 405 || answer.status == 501;
    if (batch.size() > 1 && (isUnknown || !answer.isTransient())) return sendSingly(std::move(batch), isUnknown);
    if (answer.isTransient()) return sendLater(std::move(batch), answer.refusal);
    deps_.log.write(LogLevel::error, "report.refused", "the server refuses a report of a job: " + answer.refusal);
    forget(batch);
  }

  // An older server has no call for batches. Another refusal names the refused result only for single results.
  void sendSingly(Batch batch, bool isUnknown) {
    knowsBatches_ = knowsBatches_ && !isUnknown;
    for (UnsentResult& result : batch) result.isAlone = true;
    results_.putFirst(std::move(batch));
  }

  // A single result may be the reason why the server cannot store the batch: with halved batches the other results get
  // through.
  void sendLater(Batch batch, const std::string& why) {
    most_ = std::max<std::size_t>(batch.size() / 2, 1);
    const Instant now = deps_.clock.now();
    Batch over;
    Batch later;
    for (UnsentResult& result : batch) {
      const bool isOver = now >= result.latest || result.job->stop.stop_requested();
      (isOver ? over : later).push_back(std::move(result));
    }
    forget(over);
    if (later.empty()) return;
    results_.putBack(std::move(later));
    (void)pauses_.pause(why);
  }

  void forget(const Batch& batch) {
    std::vector<JobPtr> jobs;
    for (const UnsentResult& result : batch) jobs.push_back(result.job);
    jobs_.remove(jobs);
  }

  const CallDeps deps_;
  ResultQueue& results_;
  JobsInHand& jobs_;
  ServerConnection connection_;
  CallPauses pauses_;
  bool knowsBatches_;
  std::size_t most_ = ResultQueue::kMostAtOnce;
};

}  // namespace

void runResultLoop(const CallDeps& deps, ResultQueue& results, JobsInHand& jobs, const std::stop_token& stop) noexcept {
  try {
    ResultSender sender(deps, results, jobs, stop);
    for (Batch batch; !(batch = results.awaitBatch(sender.most())).empty();) sender.send(std::move(batch));
  } catch (const std::exception& error) {
    deps.end.fail(std::string("the worker cannot send results: ") + error.what());
  }
}

}  // namespace jobq::worker
