// Table of the queue API (core/http/API.md, "Queue API"). The table is mounted twice (core/decisions/http.md): under
// /v2, and under /sdk/v2 for public SDKs, with another shape of /stream and with numbers out of range clamped. A path
// outside the table answers 404.
#include "core/base/words.h"
#include "core/http/api/error_response.h"
#include "core/http/api/queue/job_access.h"
#include "core/http/api/queue/queue_calls.h"
#include "core/jobs/later_submission.h"

namespace jobq {

std::optional<ApiResponse> countWellFormed(ApiRequest& request) {
  const auto counted = request.permit.count(request.rateLimitStatus);
  if (counted) return std::nullopt;
  return tooMany(request.path, counted.failure().sentence, counted.failure().rateLimitStatus->retryAfter);
}

JobKey jobOf(const ApiRequest& request) { return {request.endpoint->spec.id, request.params.at("id")}; }

ApiResponse noJob(const ApiRequest& request) {
  return errorResponse(
      request.path, 404,
      "there is no job " + clipped(request.params.at("id")) + " here: the id is wrong, or its result has expired");
}

Result<Millis> readWait(const QueueDeps& deps, const ApiRequest& request, Millis fallback) {
  return readMillis(request, "wait", {kWaitMin.count(), kWaitMax.count()}, deps.rules.numbers, fallback);
}

ApiResponse wholeResponse(ApiRequest& request, FoundJob found, JobFields more) {
  if (!found.hasRoom) {
    return noAnswerMemory(request.path, "the status of job " + found.job->id);
  }
  ApiResponse response{200, jobJson(*found.job, more)};
  found.job.reset();
  request.room.noteText(response.body.size());
  return response;
}

AdviceReader readerOf(const ApiRequest& request) {
  return request.key && request.key->isAdmin() ? AdviceReader::administrator : AdviceReader::client;
}

WaitingCaller waitingCaller(ApiRequest& request) {
  return {request.client->call(), request.client->hasLeft(), &request.room};
}

RouteResult begin(std::unique_ptr<PendingCall> call, ApiRequest& request) {
  auto response = call->poll(request);
  if (!response) return call;
  if (response->isOpen) return OpenAnswer{*std::move(response), std::move(call)};
  return *std::move(response);
}

namespace {

constexpr std::size_t kRunLimit = 10UL << 20;
constexpr std::size_t kRunsyncLimit = 20UL << 20;
constexpr std::size_t kIgnored = 1UL << 20;  // bytes of bodies that carry no parameters

using Answer = RouteResult (*)(const QueueDeps&, ApiRequest&);
using Reading = bool (*)(const ApiRequest&);

constexpr Reading kAlways = [](const ApiRequest&) { return true; };
constexpr Reading kNever = [](const ApiRequest&) { return false; };
constexpr Reading kWithoutTtl = [](const ApiRequest& request) { return !request.query.contains("ttl"); };
constexpr Reading kWithOffset = [](const ApiRequest& request) { return request.query.contains("offset"); };

constexpr RouteAccess kSubmission = Scope::client | Scope::submit;
constexpr RouteAccess kFollowing = kSubmission | Scope::read;
constexpr RouteAccess kListing = Scope::client | Scope::read;

struct Row {
  const char* path;
  bool hasGet = false;
  bool hasPost = false;
  RouteAccess access;
  Operation operation;
  Answer answer;
  Reading isReading = nullptr;  ///< of a call about a job: true if the call changes nothing
  std::size_t bodyLimit = kIgnored;
  bool needsBody = false;
  bool hasHead = true;
  bool isQuick = false;
};

RouteResult answerFor(const QueueDeps& deps, ApiRequest& request, Answer answer, Reading isReading) {
  if (isReading != nullptr) {
    if (auto refusal = refuseJobCall(deps, request, isReading(request))) {
      const auto tooMany = countWellFormed(request);
      return tooMany ? *tooMany : *std::move(refusal);
    }
  }
  return answer(deps, request);
}

void mount(Router& router, const std::string& prefix, const QueueDeps& deps, Answer stream) {
  const Row rows[] = {
      {.path = "/run",
       .hasPost = true,
       .access = kSubmission,
       .operation = Operation::run,
       .answer = run,
       .bodyLimit = kRunLimit,
       .needsBody = true,
       .isQuick = deps.later.arePossible()},
      {.path = "/runsync",
       .hasPost = true,
       .access = kSubmission,
       .operation = Operation::runsync,
       .answer = runsync,
       .bodyLimit = kRunsyncLimit,
       .needsBody = true},
      {.path = "/status/{id}",
       .hasGet = true,
       .hasPost = true,
       .access = kFollowing,
       .operation = Operation::status,
       .answer = status,
       .isReading = kWithoutTtl},
      {.path = "/status-sync/{id}",
       .hasGet = true,
       .hasPost = true,
       .access = kFollowing,
       .operation = Operation::statusSync,
       .answer = statusSync,
       .isReading = kAlways},
      {.path = "/stream/{id}",
       .hasGet = true,
       .hasPost = true,
       .access = kFollowing,
       .operation = Operation::stream,
       .answer = stream,
       .isReading = kWithOffset},
      {.path = "/logs/{id}",
       .hasGet = true,
       .access = kFollowing,
       .operation = Operation::status,
       .answer = logs,
       .isReading = kAlways},
      {.path = "/cancel/{id}",
       .hasPost = true,
       .access = kSubmission,
       .operation = Operation::cancel,
       .answer = cancel,
       .isReading = kNever},
      {.path = "/retry/{id}",
       .hasPost = true,
       .access = kSubmission,
       .operation = Operation::cancel,
       .answer = retry,
       .isReading = kNever},
      {.path = "/purge-queue",
       .hasPost = true,
       .access = Scope::client,
       .operation = Operation::purgeQueue,
       .answer = purgeQueue},
      {.path = "/openai/{route...}",
       .hasPost = true,
       .access = kSubmission,
       .operation = Operation::openai,
       .answer = openAi,
       .bodyLimit = kRunsyncLimit,
       .needsBody = true},
      {.path = "/openai/{route...}",
       .hasGet = true,
       .access = kSubmission,
       .operation = Operation::status,
       .answer = openAi,
       .hasHead = false},
      {.path = "/requests", .hasGet = true, .access = kListing, .operation = Operation::requests, .answer = requests},
      {.path = "/health",
       .hasGet = true,
       .access = kListing | Scope::monitor,
       .operation = Operation::status,
       .answer = health},
  };
  for (const Row& row : rows) {
    Route route{.pattern = prefix + row.path, .scope = row.access};
    if (row.hasGet) route.methods.emplace_back("GET");
    if (row.hasPost) route.methods.emplace_back("POST");
    route.bodyLimit = row.bodyLimit;
    route.needsBody = row.needsBody;
    route.run = [deps, answer = row.answer, isReading = row.isReading](ApiRequest& request) {
      return answerFor(deps, request, answer, isReading);
    };
    route.operation = row.operation;
    route.hasHead = row.hasHead;
    route.isQuick = row.isQuick;
    router.add(std::move(route));
  }
}

}  // namespace

void addQueueRoutes(Router& router, const QueueDeps& deps) {
  router.add({.methods = {"GET"},
              .pattern = "/v1/jobs",
              .scope = kListing,
              .run = [deps](ApiRequest& request) { return listJobs(deps, request); },
              .operation = Operation::status,
              .queryIsPath = true});
  mount(router, "/v2/{endpoint}", deps, streamArray);
  QueueDeps lenient = deps;
  lenient.rules.numbers = OutOfRange::clamp;
  lenient.rules.ignoresNearKeys = true;
  mount(router, "/sdk/v2/{endpoint}", lenient, streamObject);
}

}  // namespace jobq
