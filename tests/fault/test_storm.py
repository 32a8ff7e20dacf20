"""A storm of cancels: 10,000 jobs, half of them cancelled at random moments. Every end is legal, every waiter is
answered, no worker's place is lost. The seed is printed; JOBQ_SEED=... repeats the storm, as far as threads allow."""

import heapq
import os
import random
import threading
import time
from collections import Counter

import pytest
from jobq_server import SHORT_DRAIN, until
from keep_alive import KeepAlive
from pace import HANG
from waiting_callers import WaitingCallers, allow_descriptors


class Rider:
    """The share of one connection in the storm: submits jobs, cancels half of them later, retries failed jobs."""

    LATEST = 0.4  # seconds between a submission and the cancel; most cancels come while the job waits or runs

    def __init__(self, server, endpoint, seed, numbers, waiters_begun):
        self.server, self.path, self.dice = server, f"/v2/{endpoint}", random.Random(seed)
        self.numbers = numbers
        self.waiters_begun = waiters_begun
        self.jobs = {}  # id -> the number of the job's task, `None` for a failing job
        self.said = {}  # id -> the states answered by /cancel
        self.retried = Counter()  # id -> the number of accepted calls of /retry
        self.faults = []
        self.thread = threading.Thread(target=self._ride, daemon=True)

    def _ride(self):
        try:
            with KeepAlive(self.server) as self.connection:
                self._submit_and_cancel()
        except Exception as error:  # pylint: disable=broad-except
            self.faults.append(repr(error))

    def _submit_and_cancel(self):
        due = []  # (when, operation, id)
        for number in self.numbers:
            fails = self.dice.random() < 0.05
            order = {"sleepMs": self.dice.randint(0, 20), "output": number}
            job = self._submit({**order, "fail": "as told"} if fails else order, None if fails else number)
            if fails:
                heapq.heappush(due, (self._later(), "retry", job))
            if self.dice.random() < 0.5:
                heapq.heappush(due, (self._later(), "cancel", job))
            while due and due[0][0] <= time.monotonic():
                self._do(*heapq.heappop(due)[1:])
        while due:
            self._do(*heapq.heappop(due)[1:])
        assert self.waiters_begun.wait(HANG), "waited for the calls of all waiters"
        self._meet_every_moment()

    def _meet_every_moment(self):
        """Moments met at random on most machines only: a late cancel, the cancel of a running job, a retry."""
        late = self._submit({"output": 0}, 0)
        self.connection.ask("GET", f"{self.path}/status-sync/{late}?wait=30000")
        self._do("cancel", late)
        running = self._submit({"sleepMs": 600000, "output": 0}, 0)
        until(lambda: self.connection.ask("GET", f"{self.path}/status/{running}")[1]["status"] == "IN_PROGRESS",
              f"job {running} runs", HANG)
        self._do("cancel", running)
        failed = self._submit({"fail": "as told"}, None)
        self.connection.ask("GET", f"{self.path}/status-sync/{failed}?wait=30000")
        self._do("retry", failed)

    def _submit(self, order, number):
        job = self._ask("/run", {"input": order})["id"]
        self.jobs[job] = number
        return job

    def _later(self):
        return time.monotonic() + self.dice.random() ** 3 * self.LATEST

    def _do(self, operation, job):
        if operation == "cancel":
            self.said.setdefault(job, []).append(self._ask(f"/cancel/{job}", None)["status"])
            return
        status, answer = self.connection.ask("POST", f"{self.path}/retry/{job}")
        if status == 200:
            self.retried[job] += 1
        elif status != 400:
            self.faults.append(f"/retry answered {status}: {answer}")

    def _ask(self, path, body):
        status, answer = self.connection.ask("POST", self.path + path, body)
        if status != 200:
            raise AssertionError(f"{path} answered {status}: {answer}")
        return answer


@pytest.mark.timeout(1200)
class StormTest:
    JOBS = int(os.environ.get("JOBQ_STORM_JOBS", "10000"))
    RIDERS_JOBS = 3  # added by each rider in the end
    WORKERS = 32
    RIDERS = 8
    WAITERS = 400

    @pytest.fixture(autouse=True)
    def crowded_server(self, own_server, at_end):
        if not allow_descriptors(2 * self.WAITERS):
            pytest.skip(f"{self.WAITERS} callers need more descriptors than this machine allows")
        self.own_server, self.at_end = own_server, at_end

    def storm(self, storage):
        seed = int(os.environ.get("JOBQ_SEED", "0")) or random.randrange(1, 1 << 31)
        print(f"JOBQ_SEED={seed}", flush=True)
        self.server = self.own_server(**{"storage": storage, "endpoint.trial.workersMax": self.WORKERS, **SHORT_DRAIN})
        start = time.monotonic()
        waiters_begun = threading.Event()
        riders = [Rider(self.server, "trial", f"{seed} {n}", range(n, self.JOBS, self.RIDERS), waiters_begun)
                  for n in range(self.RIDERS)]
        for rider in riders:
            rider.thread.start()
        waiters = self.waiters(riders, random.Random(seed))
        waiters_begun.set()
        deadline = time.monotonic() + max(4 * HANG, self.JOBS / 50)
        for rider in riders:
            rider.thread.join(max(0.0, deadline - time.monotonic()))
            assert rider.faults == []
            assert not rider.thread.is_alive(), f"waited for the end of a rider's {self.JOBS // self.RIDERS} jobs"
        counters = self.server.quiet("trial")
        waiters.collect(HANG)
        print(f"{storage}: {self.JOBS} jobs on {self.WORKERS} workers in {time.monotonic() - start:.1f} s")
        return riders, waiters, counters

    def waiters(self, riders, dice):
        """Callers on /status-sync and /stream of random jobs, begun while the storm goes on."""
        callers = WaitingCallers(self.server)
        self.at_end.callback(callers.close)
        self.waited = []
        while len(self.waited) < self.WAITERS and any(rider.thread.is_alive() for rider in riders):
            known = list(dice.choice(riders).jobs)
            if not known:
                time.sleep(0.001)
                continue
            job = dice.choice(known[-20:])  # a recent job, hardly ended yet
            how = dice.choice(("/v2/trial/status-sync", "/sdk/v2/trial/stream"))
            self.waited.append(job)
            callers.call("GET", f"{how}/{job}?wait=60000")
            callers.collect(0)
        assert len(self.waited) == self.WAITERS or any(rider.faults for rider in riders)
        return callers

    def ends(self, riders):
        """Every job as reported by /status."""
        with KeepAlive(self.server) as connection:
            ends = {}
            for rider in riders:
                for job in rider.jobs:
                    status, ends[job] = connection.ask("GET", f"/v2/trial/status/{job}")
                    assert status == 200, ends[job]
            return ends

    def check_end(self, rider, job, end):
        number, said = rider.jobs[job], rider.said.get(job, [])
        state = end["status"]
        if "CANCELLED" in said:
            assert state == "CANCELLED", f"/cancel had said so: {end}"
        elif number is None:
            assert state == "FAILED", end
            assert end["error"] == "as told", end
        else:
            assert state == "COMPLETED", end
        if state == "COMPLETED":
            assert end["output"] == number, end
        else:
            assert "output" not in end
        for word in said[:1]:
            assert word in ("CANCELLED", "COMPLETED") if number is not None else ("CANCELLED", "FAILED"), end

    def check_waiters(self, waiters, riders, ends):
        """A single answer each: the end of the job, or after retries any of the ends."""
        assert len(waiters.answers) == len(self.waited)
        retried = sum((rider.retried for rider in riders), Counter())
        for number, status, answer in waiters.answers:
            job = self.waited[number]
            assert status == 200, answer
            allowed = {ends[job]["status"]} | ({"FAILED"} if retried[job] else set())
            assert answer["status"] in allowed, answer

    def check_counters(self, counters, riders, ends):
        """core/decisions/jobs.md: each outcome is counted once, with the outcome."""
        states = Counter(end["status"] for end in ends.values())
        retries = sum(sum(rider.retried.values()) for rider in riders)
        ran = sum(1 for end in ends.values() if end["status"] == "CANCELLED" and end["workerId"])
        said = Counter(word for rider in riders for words in rider.said.values() for word in words)
        late = said["COMPLETED"] + said["FAILED"]
        print(f"  {dict(states)}, {retries} retries; {ran} were cancelled while they ran, "
              f"{states['CANCELLED'] - ran} while they waited, {late} cancels came too late")
        assert sum(states.values()) == self.JOBS + self.RIDERS * self.RIDERS_JOBS
        assert counters == {"completed": states["COMPLETED"], "failed": states["FAILED"] + retries, "inProgress": 0,
                            "inQueue": 0, "retried": retries}
        for moment in (ran, states["CANCELLED"] - ran, late, retries):
            assert moment > 0, "the storm met every moment"

    def check_places(self):
        """All workers have long jobs at once."""
        until(lambda: self.server.health("trial")["workers"]["running"] == 0, "no worker runs", HANG)
        assert self.server.health("trial")["workers"]["unhealthy"] == 0
        jobs = [self.server.run("trial", {"sleepMs": 600000}) for _ in range(self.WORKERS)]

        def all_run():
            health = self.server.health("trial")
            return (health["workers"]["running"], health["jobs"]["inProgress"]) == (self.WORKERS, self.WORKERS)
        until(all_run, f"{self.WORKERS} long jobs run at once", HANG)
        for job in jobs:
            assert self.server.request("POST", f"/v2/trial/cancel/{job}").json()["status"] == "CANCELLED"
        until(lambda: self.server.health("trial")["workers"]["running"] == 0, "no worker runs", HANG)

    def play(self, storage):
        riders, waiters, counters = self.storm(storage)
        ends = self.ends(riders)
        for rider in riders:
            for job in rider.jobs:
                self.check_end(rider, job, ends[job])
        self.check_waiters(waiters, riders, ends)
        self.check_counters(counters, riders, ends)
        self.check_places()

    def test_on_memory(self):
        """core/http/API.md, "/cancel": CANCELLED at once and for good; an ended job stays unchanged."""
        self.play("memory")

    def test_on_sqlite(self):
        """The same on the durable storage."""
        self.play("sqlite")
