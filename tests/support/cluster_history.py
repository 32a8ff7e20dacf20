"""The checker of the cluster proofs: the answers to callers, the runs of handlers, and the rules for both.

    verdict = check(plans, calls, runs, webhooks, interruptions)
    print(verdict)
    assert not verdict.faults

All times are nanoseconds of CLOCK_MONOTONIC, a common clock of the callers and the journals of all nodes of a machine.
Each rule is a generator of sentences over a JobHistory; tests/cluster/test_history_rules.py shows that each rule can
fail.
"""

import contextlib
import json
from collections import Counter
from dataclasses import dataclass, field, replace
from itertools import combinations, pairwise

FINAL = {"COMPLETED", "FAILED", "CANCELLED", "TIMED_OUT"}
ENDS = {"output", "failed", "stopped"}
DEATHS = {"killed", "stopped"}  # interruptions that end the process


@dataclass(frozen=True)
class Plan:
    """The intended course of a job."""
    number: int
    kind: str  # poll, runsync, webhook, stream, cancel or retry
    chunks: int = 0
    fails: bool = False  # the first run fails as told


@dataclass(frozen=True)
class Call:
    """A call with the answer. `status` is 0 if no whole answer came."""
    number: int
    action: str  # run, runsync, status, stream, cancel or retry
    asked: int
    answered: int
    status: int
    job: str | None = None
    state: str | None = None
    output: object = None
    error: str | None = None
    retries: int = 0
    worker: str | None = None  # empty if the job never ran
    attempt: int | None = None  # the attempt of the chunks of a stream
    chunks: tuple = ()
    node: str | None = None


@dataclass(frozen=True)
class Run:
    """A run of a handler, from the journal of a node."""
    number: int
    job: str
    attempt: int
    node: str
    began: int
    ended: int | None = None
    end: str | None = None  # output, failed or stopped; no value if the process ended before


@dataclass(frozen=True)
class Interruption:
    """A node was killed, stopped, paused, or cut off from the database between two moments."""
    kind: str
    node: str
    begin: int
    end: int


@dataclass
class JobHistory:
    plan: Plan
    calls: list = field(default_factory=list)
    runs: list = field(default_factory=list)
    webhooks: list = field(default_factory=list)  # bodies, with the field `webhookId`
    interruptions: list = field(default_factory=list)  # of all nodes

    def ids(self):
        return {call.job for call in self.calls if call.job} | {run.job for run in self.runs}

    def is_acknowledged(self):
        return any(call.action in ("run", "runsync") and call.job for call in self.calls)

    def sights(self):
        """Returns the calls that showed a state, by the time of the answers."""
        return [call for call in self.calls if call.state]

    def ends(self):
        return [call for call in self.sights() if call.state in FINAL]

    def is_retried(self, begin, end):
        """Returns whether a call of /retry may have taken effect between the two moments."""
        return any(call.action == "retry" and call.status in (0, 200, 502, 503) and call.asked <= end
                   and call.answered >= begin for call in self.calls)

    def interrupted(self, run, before, kinds=None):
        """Returns the interruptions of the run's node between the begin of the run and the moment `before`."""
        return [each for each in self.interruptions if each.node == run.node and each.end >= run.began
                and each.begin <= before and (kinds is None or each.kind in kinds)]


def one_submission_is_one_job(job):
    if len(job.ids()) > 1:
        yield f"one submission became {len(job.ids())} jobs: {', '.join(sorted(job.ids()))}"


def acknowledged_jobs_end(job):
    sights = job.sights()
    if job.is_acknowledged() and (not sights or sights[-1].state not in FINAL):
        yield f"it was acknowledged and has no end: it was seen last {sights[-1].state if sights else 'nowhere'}"


def jobs_are_there(job):
    for call in job.calls:
        if call.status == 404:
            yield f"/{call.action} answered 404"


def ends_stay(job):
    for first in job.ends():
        for later in job.sights():
            if later.asked <= first.answered:
                continue
            same = later.state == first.state and (later.action == "cancel" or first.action == "cancel"
                                                   or later.action == "stream" or first.action == "stream"
                                                   or later.output == first.output)
            if not same and not (first.state == "FAILED" and job.is_retried(first.asked, later.answered)):
                yield f"it was seen {first.state} and later {later.state} ({first.output} and {later.output})"


def ends_are_earned(job):
    for sight in job.ends():
        if sight.state == "COMPLETED":
            if not any(run.end == "output" and run.ended <= sight.answered for run in job.runs):
                yield "it was seen COMPLETED, and no run had returned an output"
        elif sight.state == "FAILED":
            if not any(run.end == "failed" and run.ended <= sight.answered for run in job.runs):
                yield f"it was seen FAILED ({sight.error}), and no run had failed"
        elif sight.state == "TIMED_OUT":
            yield "it was seen TIMED_OUT: no job has so short a time"
        elif not any(call.action == "cancel" and call.asked <= sight.answered for call in job.calls):
            yield "it was seen CANCELLED, and no caller had cancelled it"


def outputs_are_own(job):
    number = job.plan.number
    for sight in job.ends():
        output = sight.output
        if sight.state != "COMPLETED" or sight.action == "stream":
            continue
        if sight.action == "cancel":  # answers the state alone
            continue
        if not isinstance(output, dict) or (output.get("echo"), output.get("square")) != (number, number * number):
            yield f"its output is {output}"


def late_results_stay_hidden(job):
    for sight in job.ends():
        shown = sight.output.get("attempt") if isinstance(sight.output, dict) else None
        for run in job.runs:
            if shown is not None and run.attempt > shown:
                yield f"the output of attempt {shown} was shown, although attempt {run.attempt} began at {run.node}"


def attempts_grow(job):
    for earlier, later in pairwise(job.runs):
        if later.attempt <= earlier.attempt:
            yield (f"attempt {later.attempt} began at {later.node} after attempt {earlier.attempt} had begun at "
                   f"{earlier.node}")


def further_runs_are_earned(job):
    for earlier, later in pairwise(job.runs):
        if earlier.end == "failed" and job.is_retried(earlier.began, later.began):
            continue
        if not job.interrupted(earlier, later.began):
            yield (f"attempt {later.attempt} began at {later.node}, and neither was {earlier.node} interrupted in "
                   f"attempt {earlier.attempt} ({earlier.end}) nor the job retried")


def successes_are_single(job):
    successes = [run for run in job.runs if run.end == "output"]
    for earlier, later in pairwise(successes):
        if not job.interrupted(earlier, later.began):
            yield f"attempts {earlier.attempt} and {later.attempt} both returned an output, without an interruption"


def runs_do_not_overlap(job):
    for earlier, later in combinations(job.runs, 2):
        ended = earlier.ended
        if ended is None:
            deaths = [each.begin for each in job.interrupted(earlier, 1 << 63, DEATHS)]
            if not deaths:
                continue  # runs_end() objects
            ended = min(deaths)
        if ended > later.began and not job.interrupted(earlier, later.began, {"paused"}):
            yield (f"attempt {later.attempt} began at {later.node} while attempt {earlier.attempt} still ran at "
                   f"{earlier.node}, for {(ended - later.began) / 1e6:.1f} ms")


def is_under_way(run, interruptions):
    """Returns whether the handler has not ended, and the node has not died since the begin of the run."""
    return run.end is None and not any(each.node == run.node and each.kind in DEATHS and each.end >= run.began
                                       for each in interruptions)


def runs_end(job):
    for run in job.runs:
        if run.end is None and not job.interrupted(run, 1 << 63, DEATHS):
            yield f"attempt {run.attempt} began at {run.node} and never ended"


def is_claimed_before_the_cancel(job, run):
    """The handler of a claimed job may begin after the cancel: with a requested stop, or at a node that learns of the
    cancel up to a second later. The end of the job then names a worker."""
    return run.end == "stopped" or any(sight.worker for sight in job.ends())


def nothing_runs_after_the_end(job):
    for sight in job.ends():
        for run in job.runs:
            if run.began <= sight.answered or (sight.state == "FAILED" and job.is_retried(sight.asked, run.began)):
                continue
            if sight.state == "CANCELLED" and is_claimed_before_the_cancel(job, run):
                continue
            yield f"attempt {run.attempt} began at {run.node} after the job had been seen {sight.state}"


def losses_are_earned(job):
    most = len([each for each in job.interruptions if each.kind != "stopped"])
    for sight in job.sights():
        asked = sum(1 for call in job.calls if call.action == "retry" and call.asked <= sight.answered)
        if sight.retries > most + asked:
            yield f"it was seen with {sight.retries} retries after {most} interruptions and {asked} calls of /retry"


def webhooks_come(job):
    if job.plan.kind != "webhook" or not job.is_acknowledged():
        return
    if not job.webhooks:
        yield "its webhook was never called"
    states = {call.state for call in job.ends()}
    for body in job.webhooks:
        if body.get("status") not in states or body.get("id") not in job.ids():
            yield f"its webhook said {body.get('status')} of {body.get('id')}, and callers saw {states} of {job.ids()}"
    if len({body["webhookId"] for body in job.webhooks}) > 1:
        yield "its webhook came under several ids"


def streams_are_whole(job):
    """The last attempt's chunks, each once and in order."""
    pages = [call for call in job.calls if call.action == "stream" and call.status == 200]
    if not any(page.state == "COMPLETED" for page in pages):
        return
    last = max(page.attempt for page in pages)
    chunks = [chunk for page in pages if page.attempt == last for chunk in page.chunks]
    wanted = [(last, place) for place in range(job.plan.chunks)]
    seen = [(chunk["attempt"], chunk["place"]) for chunk in chunks if chunk["number"] == job.plan.number]
    if seen != wanted or len(seen) != len(chunks):
        yield f"the stream of attempt {last} has the chunks {chunks}"


RULES = (one_submission_is_one_job, acknowledged_jobs_end, jobs_are_there, ends_stay, ends_are_earned, outputs_are_own,
         late_results_stay_hidden, attempts_grow, further_runs_are_earned, successes_are_single, runs_do_not_overlap,
         runs_end, nothing_runs_after_the_end, losses_are_earned, webhooks_come, streams_are_whole)


@dataclass
class Verdict:
    faults: list
    figures: dict

    def __str__(self):
        words = ", ".join(f"{count} {name}" for name, count in self.figures.items())
        return "\n".join([f"history: {words}; {len(self.faults)} faults", *self.faults[:20]])


def histories(plans, calls, runs, webhooks=(), interruptions=()):
    """Returns number -> JobHistory. Runs of numbers without a plan belong to other loads and are left out."""
    jobs = {number: JobHistory(plan, interruptions=list(interruptions)) for number, plan in plans.items()}
    for call in sorted(calls, key=lambda call: call.answered):
        jobs[call.number].calls.append(call)
    for run in sorted(runs, key=lambda run: run.began):
        if run.number in jobs:
            jobs[run.number].runs.append(run)
    for number, body in webhooks:
        jobs[number].webhooks.append(body)
    return jobs


def check(plans, calls, runs, webhooks=(), interruptions=()):
    jobs = histories(plans, calls, runs, webhooks, interruptions)
    faults = [f"job {number} ({job.plan.kind}): {rule.__name__}: {fault}\n{evidence(job)}"
              for number, job in jobs.items() for rule in RULES for fault in rule(job)]
    return Verdict(faults, figures_of(jobs))


def losses_of(job):
    """Returns the number of losses of the job, as counted by the server, by the last call that saw the job."""
    retries = max((call.retries for call in job.sights()), default=0)
    asked = sum(1 for call in job.calls if call.action == "retry" and call.status == 200)
    return max(0, retries - asked)


def figures_of(jobs):
    acknowledged = [job for job in jobs.values() if job.is_acknowledged()]
    states = Counter(job.ends()[-1].state for job in acknowledged if job.ends())
    return {"jobs": len(jobs), "acknowledged": len(acknowledged), "lost": len(acknowledged) - states.total(), **states,
            "runs": sum(len(job.runs) for job in jobs.values()),
            "returned twice": sum(1 for job in jobs.values()
                                        if sum(run.end == "output" for run in job.runs) > 1),
            "losses": sum(map(losses_of, jobs.values())),
            "calls without a good answer": sum(1 for job in jobs.values() for call in job.calls if call.status != 200)}


def evidence(job):
    """Returns all known events of a job, in the order of time."""
    lines = [(run.began, f"attempt {run.attempt} begins at {run.node}") for run in job.runs]
    lines += [(run.ended, f"attempt {run.attempt} ends at {run.node}: {run.end}") for run in job.runs if run.end]
    lines += [(call.asked, f"/{call.action} is asked") for call in job.calls]
    lines += [(call.answered, f"/{call.action} answers {call.status} {call.state or ''} {call.output or ''} "
                              f"(retries {call.retries}, {call.node})") for call in job.calls]
    lines += [(each.begin, f"{each.node} is {each.kind} until {each.end / 1e9:.6f}") for each in job.interruptions]
    return "\n".join(f"    {moment / 1e9:.6f} {text}" for moment, text in sorted(lines))


def read_journal(node, path):
    """Returns the runs in the journal of a node."""
    runs, begun = [], {}  # (job, attempt, process) -> the place of the latest run in `runs`
    with contextlib.suppress(FileNotFoundError), open(path, encoding="ascii") as file:
        for line in file:
            word, number, job, attempt, process, moment = line.split()
            if word == "begin":
                begun[job, attempt, process] = len(runs)
                runs.append(Run(int(number), job, int(attempt), node, int(moment)))
            else:
                assert word in ENDS, line
                place = begun[job, attempt, process]
                runs[place] = replace(runs[place], ended=int(moment), end=word)
    return runs


def call_of(number, action, asked, answered, status, headers, body):
    """Makes the Call of an answer: a job object, or the page of a stream."""
    given = {"node": headers.get("x-node")}
    if status == 200 and action == "stream":
        given.update(state=headers.get("x-job-status"), attempt=int(headers.get("x-job-attempt", "0")),
                     chunks=tuple(chunk["output"] for chunk in json.loads(body)))
    elif status == 200:
        said = json.loads(body)
        given.update(job=said["id"], state=said["status"], output=said.get("output"), error=said.get("error"),
                     retries=said.get("retries", 0), worker=said.get("workerId"))
        # A repeated /run answers IN_QUEUE for a job of any state.
        if action in ("run", "retry"):
            given["state"] = None
    return Call(number, action, asked, answered, status, **given)
