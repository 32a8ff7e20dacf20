// Table of the queue API (core/http/API.md, "Queue API"). The table is mounted twice (core/decisions/http.md): under
// /v2, and under /sdk/v2 for public SDKs, with another shape of /stream and with numbers out of range clamped. A path
// outside the table answers 404.
#include "core/base/words.h"
#include "core/http/api/error_response.h"
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
struct Row {
  const char* path;
  bool get;
  bool post;
  Operation operation;
  Answer answer;
  std::size_t bodyLimit = kIgnored;
  bool needsBody = false;
  bool hasHead = true;
  bool isQuick = false;
};

void mount(Router& router, const std::string& prefix, const QueueDeps& deps, Answer stream) {
  const Row rows[] = {
      {"/run", false, true, Operation::run, run, kRunLimit, true, true, deps.later.arePossible()},
      {"/runsync", false, true, Operation::runsync, runsync, kRunsyncLimit, true},
      {"/status/{id}", true, true, Operation::status, status},
      {"/status-sync/{id}", true, true, Operation::statusSync, statusSync},
      {"/stream/{id}", true, true, Operation::stream, stream},
      {"/logs/{id}", true, false, Operation::status, logs},
      {"/cancel/{id}", false, true, Operation::cancel, cancel},
      {"/retry/{id}", false, true, Operation::cancel, retry},
      {"/purge-queue", false, true, Operation::purgeQueue, purgeQueue},
      {"/openai/{route...}", false, true, Operation::openai, openAi, kRunsyncLimit, true},
      {"/openai/{route...}", true, false, Operation::status, openAi, kIgnored, false, false},
      {"/requests", true, false, Operation::requests, requests},
      {"/health", true, false, Operation::status, health},
  };
  for (const Row& row : rows) {
    std::vector<std::string> methods;
    if (row.get) methods.emplace_back("GET");
    if (row.post) methods.emplace_back("POST");
    router.add({std::move(methods),
                prefix + row.path,
                Scope::client,
                row.bodyLimit,
                row.needsBody,
                [deps, answer = row.answer](ApiRequest& request) { return answer(deps, request); },
                row.operation,
                {},
                row.hasHead,
                row.isQuick});
  }
}

}  // namespace

void addQueueRoutes(Router& router, const QueueDeps& deps) {
  router.add({.methods = {"GET"},
              .pattern = "/v1/jobs",
              .scope = Scope::client,
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
