"""5,000 callers wait at once, each with a job of its own: all are held without a thread each, all are answered, and no
resource stays behind."""

import os
import time

import pytest
from http_case import HttpTest
from jobq_server import SHORT_DRAIN, until
from pace import HANG
from process_watch import descriptors, memory, sockets, threads
from waiting_callers import WaitingCallers, allow_descriptors

MB = 1 << 20


@pytest.mark.timeout(600)
class WaitsTest(HttpTest):
    """The limits are on and raised."""

    CALLERS = 5000
    WORKERS = 64
    MOST_THREADS = WORKERS + 64
    MOST_MEMORY = 250 * MB  # resident while all wait
    REST = 60  # seconds that an idle thread of the server rests before it ends
    LONG = {"sleepMs": 600000}

    @pytest.fixture
    def server(self, own_server):
        if not allow_descriptors(self.CALLERS + 500):
            pytest.skip(f"{self.CALLERS} callers and their server need more descriptors than this machine allows")
        limits = {f"limits.{name}.requests": 1_000_000 for name in ("run", "runsync", "status", "cancel", "requests")}
        return own_server(**{"limits.enabled": "true", "limits.runsync.concurrent": 6000,
                             "endpoint.trial.workersMax": self.WORKERS, **limits, **SHORT_DRAIN})

    @pytest.fixture(autouse=True)
    def figures_before(self, question):
        self.pid = self.server.process.pid
        self.before = (threads(self.pid), descriptors(self.pid), sockets(self.pid))

    def crowd(self, endpoints):
        """All callers, in turns at these endpoints, once all of them wait."""
        callers = WaitingCallers(self.server)
        self.at_end.callback(callers.close)
        waiting = sum(self.server.health(endpoint)["jobs"]["inQueue"] for endpoint in endpoints)
        start = time.monotonic()
        for n in range(self.CALLERS):
            callers.call("POST", f"/v2/{endpoints[n % len(endpoints)]}/runsync?wait=300000", {"input": {"output": n}})
        until(lambda: sum(self.server.health(each)["jobs"]["inQueue"] for each in endpoints) == waiting + self.CALLERS,
              "all jobs are queued", HANG)
        until(lambda: threads(self.pid) <= self.MOST_THREADS, "the threads of the arrival have ended", HANG)
        assert callers.collect(0) == [], "nobody was answered before its job ended"
        self.resident = memory(self.pid)
        print(f"{self.CALLERS} callers wait after {time.monotonic() - start:.1f} s: {threads(self.pid)} threads, "
              f"{self.resident >> 20} MB resident")
        return callers

    def collect(self, callers):
        """Returns the answer of each caller by the number of the call."""
        start = time.monotonic()
        callers.collect(HANG)
        print(f"all answered {time.monotonic() - start:.2f} s after the last was released")
        assert len(callers.answers) == self.CALLERS
        return {number: (status, job) for number, status, job in callers.answers}

    def check_afterwards(self):
        """Their connections are gone, and nothing of them is in the way of the next. A resting thread
        keeps one descriptor of its own until its end."""
        until(lambda: sockets(self.pid) <= self.before[2] + 5, "their connections are closed", HANG)
        until(lambda: descriptors(self.pid) - threads(self.pid) <= self.before[1] - self.before[0] + 5,
              "their descriptors are closed", HANG)
        assert self.server.runsync("echo", {"n": 1})["output"] == {"n": 1}
        assert self.resident <= self.MOST_MEMORY

    def occupied(self):
        """Long jobs that keep every worker of `trial`."""
        jobs = [self.server.run("trial", self.LONG) for _ in range(self.WORKERS)]
        until(lambda: self.server.health("trial")["workers"]["running"] == self.WORKERS, "every worker is busy", HANG)
        return jobs

    def waiting_jobs(self, endpoint):
        jobs, more = [], True
        while more:
            page = self.assert_job(self.server.request(
                "GET", f"/v2/{endpoint}/requests?status=IN_QUEUE&limit=100&offset={len(jobs)}"))
            jobs += [job["id"] for job in page["requests"]]
            more = page["hasMore"]
        return jobs

    def cancel(self, endpoint, jobs):
        kept = self.server.connect()
        self.at_end.callback(kept.close)
        for job in jobs:
            answer = self.server.request("POST", f"/v2/{endpoint}/cancel/{job}", connection=kept)
            assert self.assert_job(answer)["status"] == "CANCELLED"

    def test_all_complete(self):
        """Each caller gets the output of its own job; a second crowd needs no more threads than the first."""
        most = []
        for _ in range(2):
            long = self.occupied()
            callers = self.crowd(["trial"])
            if most:
                until(lambda: threads(self.pid) <= most[0] + 20, "the threads of the first crowd to serve the second", HANG)
            most.append(threads(self.pid))
            self.cancel("trial", long)
            answers = self.collect(callers)
            wrong = [(n, answer) for n, answer in answers.items()
                     if (answer[0], answer[1].get("status"), answer[1].get("output")) != (200, "COMPLETED", n)]
            assert wrong[:3] == []
            assert self.server.quiet("trial")["inQueue"] == 0
        self.check_afterwards()
        if os.environ.get("JOBQ_WAITS_UNTIL_REST"):
            until(lambda: threads(self.pid) <= self.before[0] + 20, "the threads have ended", self.REST + HANG)
            until(lambda: descriptors(self.pid) <= self.before[1] + 25, "their descriptors are closed", HANG)
            print(f"{threads(self.pid)} threads left, {memory(self.pid) >> 20} MB resident")

    def test_half_are_cancelled_and_half_purged(self):
        """The jobs of one half are cancelled one by one (200, CANCELLED), the other half's are purged at once (404)."""
        long = self.occupied()
        callers = self.crowd(["trial", "parked"])
        assert self.server.request("POST", "/v2/parked/purge-queue").json()["removed"] == self.CALLERS // 2
        callers.collect(HANG, self.CALLERS // 2)
        assert len(callers.answers) == self.CALLERS // 2, f"waited {HANG:g} s for the 404 of each purged job"
        waiting = self.waiting_jobs("trial")
        assert len(waiting) == self.CALLERS // 2
        self.cancel("trial", waiting)
        answers = self.collect(callers)
        for n, (status, job) in answers.items():
            wanted = (200, "CANCELLED") if n % 2 == 0 else (404, None)
            assert (status, job.get("status")) == wanted, job
        self.cancel("trial", long)
        self.check_afterwards()
