// The queue API of api.md, as far as it is built. What is not here answers 404.
#include "core/base/words.h"
#include "core/http/error_reply.h"
#include "core/http/exchange.h"
#include "core/http/job_json.h"
#include "core/http/routes.h"
#include "core/jobs/job_service.h"
#include "core/jobs/submission.h"
#include "jobq/json.h"

namespace jobq {
namespace {

constexpr std::size_t kRunLimit = 10UL << 20;
constexpr std::size_t kRunsyncLimit = 20UL << 20;

Reply noJob(const Call& call) {
  return errorReply(
      call.path, 404,
      "there is no job " + clipped(call.params.at("id")) + " here: it never was, or its result has expired");
}

// `wait`, or the reply that refuses it.
std::variant<Millis, Reply> readWait(const Call& call) {
  const auto wait = call.query.find("wait");
  if (wait == call.query.end()) return kWaitDefault;
  const auto number = json::toInteger({json::Kind::number, wait->second});
  if (!number || *number < kWaitMin.count() || *number > kWaitMax.count()) {
    return errorReply(call.path, 400, "wait must be an integer from 1000 to 300000 milliseconds");
  }
  return Millis(*number);
}

// A place to wait in, taken for as long as the call lasts. Where all are taken the call does not wait: it answers the
// job's present state at once.
struct Patience {
  Patience(const QueueRooms& rooms, Millis asked) : wait(place.grow(rooms.waiting, 1) ? asked : Millis(0)) {}
  Budget::Share place;
  const Millis wait;
};

// A large answer is memory for as long as its client takes to read it.
Reply wholeReply(const QueueRooms& rooms, Call& call, const Job& job) {
  Reply reply{200, wholeJob(job)};
  const std::size_t size = reply.body.size();
  if (size <= kFreeBody || call.answerMemory.grow(rooms.answerMemory, size)) return reply;
  return unavailable(call.path, "job " + job.id +
                                    " has a large output, and too many large ones are being read now: ask for its "
                                    "status again in a moment");
}

GoneSignal goneSignal(const Call& call) {
  return [caller = call.caller] { return caller->gone(); };
}

// Room 4 and 5: the body becomes a job, and the job is put in line by `submit`.
Reply accept(const QueueRooms& rooms, Call& call, std::optional<Millis> syncWait,
             const std::function<Reply(JobSpec)>& submit) {
  if (rooms.draining()) return unavailable(call.path, "the server is shutting down: try again in a moment");
  auto result = readSubmission(std::move(call.body), *call.endpoint, call.key->id, syncWait, rooms.rules);
  if (const auto* refusal = std::get_if<Refusal>(&result)) return errorReply(call.path, 400, refusal->message);
  return submit(std::get<JobSpec>(std::move(result)));
}

Reply run(const QueueRooms& rooms, Call& call) {
  return accept(rooms, call, std::nullopt, [&](JobSpec job) {
    const JobId id = job.id;
    rooms.jobs.submit(std::move(job), *call.endpoint);
    call.bodyMemory.giveBack();
    return Reply{200, briefJob(id, JobState::inQueue)};
  });
}

Reply runsync(const QueueRooms& rooms, Call& call) {
  const auto wait = readWait(call);
  if (const auto* refusal = std::get_if<Reply>(&wait)) return *refusal;
  return accept(rooms, call, std::get<Millis>(wait), [&](JobSpec job) {
    const JobId id = job.id;
    const Patience patience(rooms, std::get<Millis>(wait));
    bool stored = false;
    // A body counts until the storage has it: 400 of them that wait for one writer would be 8 GB.
    const auto durable = [&] {
      stored = true;
      call.bodyMemory.giveBack();
    };
    std::optional<Job> ended;
    try {
      ended = rooms.jobs.submitAndAwait(std::move(job), *call.endpoint, patience.wait, durable, goneSignal(call));
    } catch (const StorageError&) {
      // Who reads 503 sends the job again: what is stored is acknowledged, as if its wait had elapsed.
      if (stored) return Reply{200, briefJob(id, JobState::inQueue)};
      throw;
    }
    if (!ended) return errorReply(call.path, 404, "job " + id + " outlived its policy.ttl: send a longer one");
    return wholeReply(rooms, call, *ended);
  });
}

Reply status(const QueueRooms& rooms, Call& call) {
  const auto job = rooms.jobs.find({call.endpoint->id, call.params.at("id")});
  return job ? wholeReply(rooms, call, *job) : noJob(call);
}

Reply statusSync(const QueueRooms& rooms, Call& call) {
  const auto wait = readWait(call);
  if (const auto* refusal = std::get_if<Reply>(&wait)) return *refusal;
  const Patience patience(rooms, std::get<Millis>(wait));
  const auto job = rooms.jobs.await({call.endpoint->id, call.params.at("id")}, patience.wait, goneSignal(call));
  return job ? wholeReply(rooms, call, *job) : noJob(call);
}

// decisions.md, "Jobs": at once, whatever the handler does about it; a job that has ended stays as it is.
Reply cancel(const QueueRooms& rooms, Call& call) {
  const JobKey key{call.endpoint->id, call.params.at("id")};
  const CancelResult result = rooms.jobs.cancel(key);
  if (std::holds_alternative<Absent>(result)) return noJob(call);
  if (const auto* ended = std::get_if<WrongState>(&result)) return {200, briefJob(key.id, ended->state)};
  const auto& cancelled = std::get<Cancelled>(result);
  if (cancelled.wasRunning) rooms.stopRun(cancelled.lease);
  return {200, briefJob(key.id, JobState::cancelled)};
}

Reply retry(const QueueRooms& rooms, Call& call) {
  if (rooms.draining()) return unavailable(call.path, "the server is shutting down: try again in a moment");
  const JobKey key{call.endpoint->id, call.params.at("id")};
  const RequeueResult result = rooms.jobs.retry(key, *call.endpoint);
  if (std::holds_alternative<Absent>(result)) return noJob(call);
  if (const auto* wrong = std::get_if<WrongState>(&result)) {
    return errorReply(call.path, 400,
                      "job " + key.id + " is " + std::string(nameOf(wrong->state)) +
                          ": only a FAILED or TIMED_OUT job can be retried");
  }
  return {200, briefJob(key.id, JobState::inQueue)};
}

Reply health(const QueueRooms& rooms, Call& call) {
  const EndpointCounts jobs = rooms.jobs.counts(call.endpoint->id);
  WorkerCounts workers = rooms.workers(call.endpoint->id);
  workers += rooms.storage.workers().count(call.endpoint->id, rooms.node);
  std::string body;
  const auto group = [&body](const char* name, std::initializer_list<std::pair<const char*, std::uint64_t>> fields) {
    body += std::string(body.empty() ? "{" : ",") + "\"" + name + "\":";
    char before = '{';
    for (const auto& [key, value] : fields) {
      body += before + std::string("\"") + key + "\":" + std::to_string(value);
      before = ',';
    }
    body += '}';
  };
  group("jobs", {{"completed", jobs.completed},
                 {"failed", jobs.failed},
                 {"inProgress", jobs.inProgress},
                 {"inQueue", jobs.inQueue},
                 {"retried", jobs.retried}});
  group("workers", {{"idle", workers.idle},
                    {"initializing", workers.initializing},
                    {"ready", workers.ready},
                    {"running", workers.running},
                    {"throttled", workers.throttled},
                    {"unhealthy", workers.unhealthy}});
  return {200, body + "}"};
}

}  // namespace

void addQueueRoutes(Router& router, const QueueRooms& rooms) {
  const auto add = [&](std::vector<std::string> methods, const std::string& path, std::size_t limit, bool body,
                       Reply (*route)(const QueueRooms&, Call&)) {
    router.add({std::move(methods), "/v2/{endpoint}" + path, Scope::client, limit, body,
                [rooms, route](Call& call) { return route(rooms, call); }});
  };
  constexpr std::size_t kIgnored = 1UL << 20;  // bodies that carry no parameters
  add({"POST"}, "/run", kRunLimit, true, run);
  add({"POST"}, "/runsync", kRunsyncLimit, true, runsync);
  add({"GET", "POST"}, "/status/{id}", kIgnored, false, status);
  add({"GET", "POST"}, "/status-sync/{id}", kIgnored, false, statusSync);
  add({"POST"}, "/cancel/{id}", kIgnored, false, cancel);
  add({"POST"}, "/retry/{id}", kIgnored, false, retry);
  add({"GET"}, "/health", kIgnored, false, health);
}

}  // namespace jobq
