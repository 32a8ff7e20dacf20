// The calls of remote workers, as the public worker SDK makes them (core/decisions/remote_workers.md): job-take,
// job-take-batch, job-stop and ping. core/http/api/worker/worker_reports.cpp has the reports.
#include "core/http/api/worker/worker_calls.h"

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/call_timer.h"
#include "core/base/ids.h"
#include "core/base/words.h"
#include "core/http/api/error_response.h"
#include "core/http/api/query_parameters.h"
#include "core/http/api/queue/queue_calls.h"
#include "core/model/worker_environment.h"
#include "core/workers/remote/remote_workers.h"
#include "jobq/json_writer.h"

namespace jobq {
namespace {

/// A refused call for jobs is answered so much later, because workers call again at once.
constexpr Millis kRefusalDelay{3'000};

/// Bytes of the name of a check, and of the reason, in the ping of an unhealthy worker.
constexpr std::size_t kLongestCheck = 64;
constexpr std::size_t kLongestReason = 1'024;

/// Letters of the `batchId` of jobs that share an answer.
constexpr std::size_t kBatchLetters = 14;

/// Worker SDKs put the variable into the path as it is.
constexpr const char* kNoWorkerId =
    "RUNPOD_POD_ID is empty, so the path names no worker: unset the variable, or set it to 1 to 128 letters, digits "
    "and "
    ". _ -";

/// A job with the clear text of its secret.
struct OpenedJob {
  RemoteRunPtr run;
  std::string s3Config;
};

// Returns the jobs as an array, or the first job alone. The memory of the text is reserved: a growing text of 20 MB is
// copied at each growth.
std::string textOf(const std::vector<OpenedJob>& jobs, bool isArray) {
  const std::string batch = jobs.size() > 1 ? newName(kBatchLetters) : "";
  std::size_t bytes = 2;
  for (const OpenedJob& job : jobs) bytes += job.run->textSize() + 1;
  std::string text;
  text.reserve(bytes);
  if (isArray) {
    json::appendArray(text, [&](json::ArrayWriter& out) {
      for (const OpenedJob& job : jobs) {
        out.element([&](std::string& to) { job.run->moveText(to, job.s3Config, batch); });
      }
    });
  } else {
    jobs.front().run->moveText(text, jobs.front().s3Config, batch);
  }
  return text;
}

/// The places of a refused call among the waiting calls and among the refused ones.
struct RefusalPlaces {
  Budget::Reservation waiting;
  Budget::Reservation refused;
};

/// A refusal that is sent later.
class LateRefusal final : public PendingCall {
 public:
  LateRefusal(const WorkerDeps& deps, RefusalPlaces places, ApiResponse refusal, SuspendedCall call)
      : deps_(deps), places_(std::move(places)), refusal_(std::move(refusal)), at_(deps.clock.now() + kRefusalDelay) {
    deps.lateCalls.resumeAt(at_, call);
  }

  std::optional<ApiResponse> poll(ApiRequest& request) override {
    if (deps_.clock.now() < at_ && !request.client->hasLeft() && !deps_.lateCalls.isStopped()) return std::nullopt;
    return refusal_;
  }

 private:
  const WorkerDeps deps_;
  const RefusalPlaces places_;
  const ApiResponse refusal_;
  const Instant at_;
};

/// A parked call for jobs.
class TakeCall final : public PendingCall {
 public:
  TakeCall(const WorkerDeps& deps, Budget::Reservation place, RemoteWorkerKey key, std::shared_ptr<RemoteTake> take,
           bool isBatch)
      : deps_(deps), place_(std::move(place)), key_(std::move(key)), take_(std::move(take)), isBatch_(isBatch) {}
  // The connection ended, or an exception ended the call: no worker gets the jobs.
  ~TakeCall() override {
    try {
      if (take_) (void)deps_.workers.pollTake(key_, *take_, true);
    } catch (...) {
      // No memory: the jobs are lost by the rules.
    }
  }

  std::optional<ApiResponse> poll(ApiRequest& request) override {
    const auto jobs = deps_.workers.pollTake(key_, *take_, request.client->hasLeft(), &request.room);
    if (!jobs) return std::nullopt;
    ApiResponse answer = answerWith(*jobs, request.room);
    take_.reset();
    return answer;
  }

 private:
  ApiResponse answerWith(const std::vector<RemoteRunPtr>& jobs, AnswerRoom& room) {
    std::vector<OpenedJob> opened;
    for (const RemoteRunPtr& run : jobs) {
      try {
        opened.push_back({run, run->openS3Config()});
      } catch (const Error& error) {  // the secret cannot be opened
        (void)run->finish(Failed{error.what(), ""});
        const RemoteWorkers::Reported ended{run->lease().job, run};
        deps_.workers.noteResults(key_, {&ended, 1}, false);
      }
    }
    if (opened.empty()) return ApiResponse{204, ""};
    ApiResponse response{200, textOf(opened, isBatch_)};
    room.noteText(response.body.size());
    return response;
  }

  const WorkerDeps deps_;
  const Budget::Reservation place_;
  const RemoteWorkerKey key_;
  std::shared_ptr<RemoteTake> take_;
  const bool isBatch_;
};

/// A parked call for jobs to stop.
class StopCall final : public PendingCall {
 public:
  StopCall(const WorkerDeps& deps, Budget::Reservation place, RemoteWorkerKey key, std::shared_ptr<RemoteStopWait> wait)
      : deps_(deps), place_(std::move(place)), key_(std::move(key)), wait_(std::move(wait)) {}
  ~StopCall() override {
    try {
      (void)deps_.workers.pollStopWait(key_, *wait_, true);
    } catch (...) {
      // No memory: the next call replaces the current call.
    }
  }

  std::optional<ApiResponse> poll(ApiRequest& request) override {
    const auto stops = deps_.workers.pollStopWait(key_, *wait_, request.client->hasLeft());
    if (!stops) return std::nullopt;
    if (stops->empty()) return ApiResponse{204, ""};
    return ApiResponse{200, json::object([&](json::ObjectWriter& out) { out.member("jobsToStop", *stops); })};
  }

 private:
  const WorkerDeps deps_;
  const Budget::Reservation place_;
  const RemoteWorkerKey key_;
  const std::shared_ptr<RemoteStopWait> wait_;
};

// Too many calls are parked: the public SDK waits for 5 seconds after a 429.
ApiResponse busy(const WorkerDeps& deps, const ApiRequest& request) {
  return tooMany(
      request.path,
      limitReached("too many calls wait", deps.waiting.whole(), "server.waiting") + "; call again in 5 seconds",
      Millis(5'000));
}

// Returns the worker of the call. Fails if the image of the endpoint is a handler of the server.
Result<RemoteWorkerKey> readServingWorker(const WorkerDeps& deps, ApiRequest& request) {
  const EndpointId& endpoint = request.endpoint->spec.id;
  if (deps.workers.isServed(endpoint)) return readWorker(request);
  return invalid("the endpoint " + endpoint +
                 " has no remote workers: its image is a handler of the server; take jobs of an "
                 "endpoint whose template has a container image");
}

RouteResult parkForJobs(const WorkerDeps& deps, ApiRequest& request, bool isBatch) {
  auto key = readServingWorker(deps, request);
  if (!key) return refuseLate(deps, request, badRequest(request, key.failure()));
  const auto most = isBatch ? readNumber(request, "batch_size", {1, RemoteWorkers::kMostAtOnce}, OutOfRange::clamp, 1)
                            : Result<std::int64_t>(1);
  if (!most) return refuseLate(deps, request, badRequest(request, most.failure()));
  if (const auto once = checkOnce(request, "job_in_progress"); !once) {
    return refuseLate(deps, request, badRequest(request, once.failure()));
  }
  const auto held = request.query.find("job_in_progress");
  const std::optional<bool> holdsJobs = held == request.query.end() ? std::nullopt : std::optional(held->second != "0");
  Budget::Reservation place;
  if (!place.grow(deps.waiting, 1)) return busy(deps, request);
  auto begun = deps.workers.beginTake(*key, static_cast<std::size_t>(*most), holdsJobs, request.client->call());
  if (!begun) return busy(deps, request);
  keepOwner(deps, request, *key, WorkerCall::question);
  return begin(std::make_unique<TakeCall>(deps, std::move(place), *std::move(key), std::move(begun), isBatch), request);
}

// Returns the failed check and the reason, as the ping of an unhealthy worker names both.
std::string reasonOf(const ApiRequest& request) {
  const auto check = request.query.find("check");
  const auto reason = request.query.find("reason");
  std::string text = check == request.query.end() ? "" : clipped(check->second, kLongestCheck);
  if (reason == request.query.end() || reason->second.empty()) return text;
  return text + (text.empty() ? "" : ": ") + clipped(reason->second, kLongestReason);
}

}  // namespace

void keepOwner(const WorkerDeps& deps, ApiRequest& request, const RemoteWorkerKey& key, WorkerCall call) {
  if (auto owner = deps.workers.connect(key, call)) {
    request.client->setOwner(std::move(owner));
  }
}

Result<RemoteWorkerKey> readWorker(ApiRequest& request) {
  // Some SDKs put `&` and parameters after a path without `?`.
  const char* last = request.params.contains("job") ? "job" : "worker";
  std::string& segment = request.params.at(last);
  const std::size_t cut = segment.find('&');
  if (cut != std::string::npos) {
    for (std::size_t at = cut + 1; at <= segment.size();) {
      const std::size_t end = std::min(segment.find('&', at), segment.size());
      const std::string pair = segment.substr(at, end - at);
      const std::size_t equals = std::min(pair.find('='), pair.size());
      request.query.emplace(pair.substr(0, equals), pair.substr(std::min(equals + 1, pair.size())));
      at = end + 1;
    }
    segment.resize(cut);
  }
  const std::string& worker = request.params.at("worker");
  if (worker.empty()) return invalid(kNoWorkerId);
  if (!isWorkerName(worker)) {
    return invalid("the id of the worker must have 1 to 128 letters, digits and . _ -, not " + clipped(worker));
  }
  return RemoteWorkerKey{request.endpoint->spec.id, worker};
}

RouteResult refuseLate(const WorkerDeps& deps, ApiRequest& request, ApiResponse refusal) {
  RefusalPlaces places;
  if (!places.refused.grow(deps.refused, 1) || !places.waiting.grow(deps.waiting, 1)) return busy(deps, request);
  return begin(std::make_unique<LateRefusal>(deps, std::move(places), std::move(refusal), request.client->call()),
               request);
}

RouteResult refusePathLate(const WorkerDeps& deps, ApiRequest& request, ApiResponse refusal) {
  if (refusal.status != 404) return refuseLate(deps, request, std::move(refusal));
  std::string_view path = request.path;
  path = path.substr(0, path.find('&'));
  if (path.ends_with('/')) path.remove_suffix(1);
  const bool endsWithCall =
      path.ends_with("/job-take") || path.ends_with("/job-take-batch") || path.ends_with("/job-stop");
  return refuseLate(
      deps, request,
      errorResponse(request.path, 404,
                    endsWithCall ? kNoWorkerId
                                 : "there is nothing at " + clipped(request.path) +
                                       ": `jobqctl worker env ENDPOINT` prints the variables of a worker"));
}

RouteResult awaitJob(const WorkerDeps& deps, ApiRequest& request) { return parkForJobs(deps, request, false); }

RouteResult awaitJobs(const WorkerDeps& deps, ApiRequest& request) { return parkForJobs(deps, request, true); }

RouteResult awaitStops(const WorkerDeps& deps, ApiRequest& request) {
  auto key = readWorker(request);
  if (!key) return refuseLate(deps, request, badRequest(request, key.failure()));
  Budget::Reservation place;
  if (!place.grow(deps.waiting, 1)) return busy(deps, request);
  auto wait = deps.workers.beginStopWait(*key, request.client->call());
  if (!wait) return busy(deps, request);
  keepOwner(deps, request, *key, WorkerCall::question);
  return begin(std::make_unique<StopCall>(deps, std::move(place), *std::move(key), std::move(wait)), request);
}

RouteResult ping(const WorkerDeps& deps, ApiRequest& request) {
  const auto key = readWorker(request);
  if (!key) return ApiResponse{200, "{}"};
  std::vector<JobId> jobs;
  const auto [first, last] = request.query.equal_range("job_id");
  for (auto at = first; at != last; ++at) {
    for (std::string_view rest = at->second; !rest.empty();) {
      const std::string_view id = rest.substr(0, rest.find(','));
      if (!id.empty()) jobs.emplace_back(id);
      rest.remove_prefix(std::min(id.size() + 1, rest.size()));
    }
  }
  const auto status = request.query.find("status");
  const bool isUnhealthy = status != request.query.end() && status->second == "unhealthy";
  deps.workers.notePing(*key, jobs, isUnhealthy, isUnhealthy ? reasonOf(request) : "");
  return ApiResponse{200, "{}"};
}

}  // namespace jobq
