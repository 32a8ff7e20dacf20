// Room 5 (registry) and room 10 (sign-off): the verbs of a job, for whoever calls them. Knows the storage, rings the
// bell for the dispatcher, wakes the callers who wait.
#pragma once

#include <functional>
#include <optional>

#include "core/endpoints/endpoint.h"
#include "core/jobs/completion_watch.h"
#include "jobq/storage.h"

namespace jobq {

class Wakeup;

/// Any thread. StorageError passes through every verb.
class JobService {
 public:
  JobService(Storage& storage, Wakeup& wakeup, CompletionWatch& watch);

  /// Returns when the job is durable: only then may a caller be told its id.
  void submit(JobSpec job, const Endpoint& endpoint);

  /// submit(), then the job as it is when it ends or `wait` has passed. `durable` is called in between: the job's body
  /// is no longer in memory. `gone` ends the wait early.
  std::optional<Job> submitAndAwait(JobSpec job, const Endpoint& endpoint, Millis wait,
                                    const std::function<void()>& durable, const GoneSignal& gone);

  std::optional<Job> find(const JobKey& key);

  /// The job as it is when it ends or `wait` has passed; nothing when it is absent.
  std::optional<Job> await(const JobKey& key, Millis wait, const GoneSignal& gone);

  /// The job's waiters are answered at once; whoever runs it has to be told by the caller (Cancelled::lease).
  CancelResult cancel(const JobKey& key);

  /// /retry: to the end of the line.
  RequeueResult retry(const JobKey& key, const Endpoint& endpoint);

  EndpointCounts counts(const EndpointId& endpoint);

  /// Records how a run ended and wakes the job's waiters. Stale: somebody else has ended this attempt.
  Fenced finish(const LeaseRef& lease, Outcome outcome);

  /// Jobs that did not run to their end go back in line unharmed.
  void release(const std::vector<LeaseRef>& leases, const EndpointId& endpoint);

  /// Tells everyone concerned what a sweep did, but the workers (Swept::stopped).
  void announce(const Swept& swept);

 private:
  void insert(JobSpec job, const Endpoint& endpoint);

  Storage& storage_;
  Wakeup& wakeup_;
  CompletionWatch& watch_;
};

}  // namespace jobq
