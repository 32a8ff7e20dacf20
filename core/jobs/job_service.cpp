#include "core/jobs/job_service.h"

#include "core/jobs/wakeup.h"
#include "jobq/transitions.h"

namespace jobq {

JobService::JobService(Storage& storage, Wakeup& wakeup, CompletionWatch& watch)
    : storage_(storage), wakeup_(wakeup), watch_(watch) {}

void JobService::insert(JobSpec job, const Endpoint& endpoint) {
  // The only other results are about idempotency keys, and none is given.
  (void)storage_.jobs().insert(std::move(job), *endpoint.policy, std::nullopt);
}

void JobService::submit(JobSpec job, const Endpoint& endpoint) {
  const bool low = job.policy.lowPriority;
  insert(std::move(job), endpoint);
  wakeup_.ring(endpoint.id, low);
}

std::optional<Job> JobService::submitAndAwait(JobSpec job, const Endpoint& endpoint, Millis wait,
                                              const std::function<void()>& durable, const GoneSignal& gone) {
  const JobKey key{endpoint.id, job.id};
  const Instant deadline = storage_.now() + wait;
  CompletionWatch::Ticket ticket(watch_, key.id);
  const bool low = job.policy.lowPriority;
  insert(std::move(job), endpoint);
  durable();
  wakeup_.ringAndServe(endpoint.id, low);
  ticket.wait(deadline, gone);
  return find(key);
}

std::optional<Job> JobService::find(const JobKey& key) { return storage_.jobs().find(key); }

std::optional<Job> JobService::await(const JobKey& key, Millis wait, const GoneSignal& gone) {
  const Instant deadline = storage_.now() + wait;
  CompletionWatch::Ticket ticket(watch_, key.id);
  std::optional<Job> job = find(key);
  if (!job || terminal(job->state)) return job;
  ticket.wait(deadline, gone);
  return find(key);
}

CancelResult JobService::cancel(const JobKey& key) {
  CancelResult result = storage_.jobs().cancel(key);
  if (std::holds_alternative<Cancelled>(result)) watch_.announce(key.id);
  return result;
}

RequeueResult JobService::retry(const JobKey& key, const Endpoint& endpoint) {
  RequeueResult result = storage_.jobs().requeue(key, *endpoint.policy);
  if (std::holds_alternative<Requeued>(result)) wakeup_.ring(endpoint.id, false);
  return result;
}

EndpointCounts JobService::counts(const EndpointId& endpoint) { return storage_.jobs().counts(endpoint); }

Fenced JobService::finish(const LeaseRef& lease, Outcome outcome) {
  const Fenced fenced = storage_.leases().finish(lease, std::move(outcome));
  if (fenced == Fenced::accepted) watch_.announce(lease.job);
  return fenced;
}

void JobService::release(const std::vector<LeaseRef>& leases, const EndpointId& endpoint) {
  if (storage_.leases().release(leases) > 0) wakeup_.ring(endpoint, false);
}

void JobService::announce(const Swept& swept) {
  for (const JobKey& key : swept.finished) watch_.announce(key.id);
  for (const LeaseRef& lease : swept.stopped) watch_.announce(lease.job);
  for (const EndpointId& endpoint : swept.requeuedAt) wakeup_.ring(endpoint, false);
}

}  // namespace jobq
