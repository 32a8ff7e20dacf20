"""A long queue on the durable storage: restart, memory, and what it costs to claim jobs from it.

    build/venv/bin/pytest -s tests/fault/test_backlog.py                              (half a minute)
    JOBQ_BACKLOG_JOBS=1000000 build/venv/bin/pytest -s tests/fault/test_backlog.py    (two to four minutes)

Beside the server with the backlog stands one without: in turns each is started with workers, works off as many jobs,
and is stopped, so that other work of the machine meets both. JOBQ_BACKLOG_ROUNDS is the number of turns.
"""

import os
import statistics
import time

import pytest
from bench_load import submit_many
from jobq_server import Server, until
from pace import HANG, judge_pace
from process_watch import file_size, memory, processor_seconds

JOBS = int(os.environ.get("JOBQ_BACKLOG_JOBS", "200000"))
MB = 1 << 20
LONGEST_START = 10.0  # seconds, with a million jobs
MOST_START_COST = 0.1  # of the processor time in which the same server accepted the queued jobs
MOST_BYTES_A_JOB = 600
LEAST_RATIO = 0.8  # of the pace without a backlog
MOST_COST = 2.0  # of the processor time without a backlog; on a quiet machine 1 / LEAST_RATIO


class Backlog(Server):
    """A server whose endpoint `line` has workers only while it is told to work."""

    WORKERS = 128
    CALLERS = 500  # jobs of all callers share a commit: 64 callers on a disk with 10 ms a commit would take minutes
    WARM_UP, MEASURED = 4000, 12000
    INPUT = {"prompt": "a photo of an astronaut riding a horse", "steps": 20, "seed": 42}

    def __init__(self):
        super().__init__(log__level="warning", endpoint__line__image="plugin/echo", endpoint__line__workersMax=0)
        self.rates = []  # of each round: jobs finished a second
        self.costs = []  # and the server's processor time for each, in microseconds

    def fill(self, jobs):
        """Returns how many jobs a second were accepted, and the server's processor time for all, in seconds."""
        before = processor_seconds(self.process.pid)
        rate = submit_many(self, "line", self.INPUT, jobs, self.CALLERS, BacklogTest.LONGEST_TEST)
        return rate, processor_seconds(self.process.pid) - before

    def start_with(self, workers):
        """Starts, and returns the seconds until it is ready: real ones, and those of the processor."""
        self.settings["endpoint.line.workersMin"] = self.settings["endpoint.line.workersMax"] = str(workers)
        self.write_file()
        start = time.monotonic()
        self.start()
        return time.monotonic() - start, processor_seconds(self.process.pid)

    def work(self):
        """Has workers until WARM_UP + MEASURED jobs are done; notes pace and cost of the last MEASURED."""
        self.stop()
        before = None
        marks = []
        self.start_with(self.WORKERS)

        def completed():
            nonlocal before
            jobs = self.health("line")["jobs"]["completed"]
            before = jobs if before is None else before
            marks.append((time.monotonic(), jobs - before, processor_seconds(self.process.pid)))
            return jobs - before >= self.WARM_UP + self.MEASURED
        until(completed, "the round's jobs are done", 4 * HANG)
        first = next(mark for mark in marks if mark[1] >= self.WARM_UP)
        seconds, jobs, processor = (last - begin for last, begin in zip(marks[-1], first))
        self.rates.append(jobs / seconds)
        self.costs.append(processor / jobs * 1e6)
        self.stop()
        self.start_with(0)

    def resident(self):
        return memory(self.process.pid)

    def disk(self):
        file = os.path.join(self.data, "jobq.db")
        return file_size(file) + file_size(file + "-wal")


@pytest.mark.timeout(1800)
class BacklogTest:
    ROUNDS = int(os.environ.get("JOBQ_BACKLOG_ROUNDS", "3"))
    LONGEST_TEST = 900  # seconds: a slow disk takes minutes for a million jobs

    def test_a_million_jobs_in_the_queue(self, at_end):
        """tests/fault/README.md: restart to ready, memory of a queued job, and claims at a cost independent of the
        depth."""
        deep, short = at_end.enter_context(Backlog()), at_end.enter_context(Backlog())
        rate, fill_cost = deep.fill(JOBS)
        deep.kill()
        after_kill, kill_cost = deep.start_with(0)
        deep.stop()
        after_stop, stop_cost = deep.start_with(0)
        short.stop()
        short.start_with(0)
        assert deep.health("line")["jobs"]["inQueue"] == JOBS
        a_job = (deep.resident() - short.resident()) / JOBS
        print(f"{JOBS} jobs queued at {rate:.0f} a second, {deep.disk() // MB} MB on disk; "
              f"ready {after_kill:.2f} s after a kill ({kill_cost:.2f} s of processor time), {after_stop:.2f} s after "
              f"a stop ({stop_cost:.2f} s), accepted in {fill_cost:.2f} s of processor time; "
              f"{a_job:.0f} bytes resident a job", flush=True)
        self.compare(deep, short)
        judge_pace(f"a start with {JOBS} queued jobs", max(after_kill, after_stop), LONGEST_START)
        assert max(kill_cost, stop_cost) <= MOST_START_COST * fill_cost, "processor time of a start"
        assert a_job <= MOST_BYTES_A_JOB

    def compare(self, deep, short):
        for _ in range(self.ROUNDS):
            short.fill(Backlog.WARM_UP + Backlog.MEASURED + 2000)
            short.work()
            deep.work()
        # Round by round: other work of the machine slows two neighbours alike.
        ratio = statistics.median(d / s for d, s in zip(deep.rates, short.rates))
        cost = statistics.median(d / s for d, s in zip(deep.costs, short.costs))
        for what, server in (("with", deep), ("without", short)):
            print(f"{what} the backlog: finished a second {[round(rate) for rate in server.rates]}, "
                  f"processor time a job {[round(cost) for cost in server.costs]} us")
        judge_pace("claims, of the pace without a backlog", ratio, LEAST_RATIO, unit="", least=True)
        judge_pace("processor time of a job, of that without a backlog", cost, 1 / LEAST_RATIO, unit="")
        assert cost <= MOST_COST, "processor time of a job, of that without a backlog"
