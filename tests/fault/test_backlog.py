"""A million jobs in line on the durable storage: restart, memory, and the pace at which they are claimed.

    python3 tests/support/run_tests.py tests/fault/test_backlog.py        (two to four minutes)

JOBQ_BACKLOG_JOBS is their number. Beside the server with the backlog stands one without: in turns each is started with
workers, works off as many jobs, and is stopped, so that whatever else the machine does meets both.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "support"))

from jobq_server import BUILD, HttpTest, Server, until  # noqa: E402
from process_watch import file_size, memory, processor_seconds  # noqa: E402

JOBS = int(os.environ.get("JOBQ_BACKLOG_JOBS", "1000000"))
LOAD = os.path.join(BUILD, "tests", "bench_load")
BODY = b'{"input":{"prompt":"a photo of an astronaut riding a horse","steps":20,"seed":42}}'
MB = 1 << 20
LONGEST_START = 10.0  # seconds
MOST_BYTES_A_JOB = 600
LEAST_RATIO = 0.8


class Backlog(Server):
    """A server whose endpoint `line` has workers only while it is told to work."""

    WORKERS = 128
    CALLERS = 500
    WARM_UP, MEASURED = 4000, 20000

    def __init__(self):
        super().__init__(log__level="warning", endpoint__line__image="plugin/echo", endpoint__line__workersMax=0)
        self.rates = []  # of each round: jobs finished a second
        self.costs = []  # and the server's processor time for each, in microseconds

    def fill(self, jobs):
        """Puts jobs in line; returns how many a second. As many share a commit as there are connections: where a disk
        needs ten milliseconds for one, 64 of them would take minutes."""
        request = (f"POST /v2/line/run HTTP/1.1\r\nHost: jobq\r\nAuthorization: Bearer {self.key}\r\n"
                   f"Content-Type: application/json\r\nContent-Length: {len(BODY)}\r\n\r\n").encode() + BODY
        with tempfile.NamedTemporaryFile() as file:
            file.write(request)
            file.flush()
            done = subprocess.run([LOAD, "http", str(self.address[1]), str(self.CALLERS), "0", str(jobs), file.name],
                                  capture_output=True, text=True, check=False, timeout=BacklogTest.LONGEST_TEST)
        if done.returncode != 0:
            raise AssertionError(done.stderr)
        return json.loads(done.stdout)["rate"]

    def start_with(self, workers):
        """Starts, and returns the seconds until it is ready."""
        self.settings["endpoint.line.workersMin"] = self.settings["endpoint.line.workersMax"] = str(workers)
        self.write_file()
        start = time.monotonic()
        self.start()
        return time.monotonic() - start

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
        until(completed, "the round's jobs are done", 60)
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


class BacklogTest(HttpTest):
    ROUNDS = int(os.environ.get("JOBQ_BACKLOG_ROUNDS", "11"))
    LONGEST_TEST = 900  # seconds: a slow disk takes minutes for a million jobs

    def test_a_million_jobs_in_line(self):
        """design.md, Speed: restart to ready, memory a queued job, and claims whose cost does not grow with depth."""
        deep, short = self.enterContext(Backlog()), self.enterContext(Backlog())
        rate = deep.fill(JOBS)
        deep.kill()
        after_kill = deep.start_with(0)
        deep.stop()
        after_stop = deep.start_with(0)
        short.stop()
        short.start_with(0)
        self.assertEqual(deep.health("line")["jobs"]["inQueue"], JOBS)
        a_job = (deep.resident() - short.resident()) / JOBS
        print(f"{JOBS} jobs put in line at {rate:.0f} a second, {deep.disk() // MB} MB on disk; "
              f"ready {after_kill:.2f} s after a kill, {after_stop:.2f} s after a stop; "
              f"{a_job:.0f} bytes resident a job", flush=True)
        self.compare(deep, short)
        self.assertLessEqual(max(after_kill, after_stop), LONGEST_START)
        self.assertLessEqual(a_job, MOST_BYTES_A_JOB)

    def compare(self, deep, short):
        for _ in range(self.ROUNDS):
            short.fill(Backlog.WARM_UP + Backlog.MEASURED + 2000)
            short.work()
            deep.work()
        # Round by round: what else the machine does slows two neighbours alike.
        ratio = statistics.median(d / s for d, s in zip(deep.rates, short.rates))
        cost = statistics.median(d / s for d, s in zip(deep.costs, short.costs))
        for what, server in (("with", deep), ("without", short)):
            print(f"{what} the backlog: finished a second {[round(rate) for rate in server.rates]}, "
                  f"processor time a job {[round(cost) for cost in server.costs]} us")
        print(f"of the pace without it: {ratio:.2f}; of the cost: {cost:.2f}")
        self.assertGreaterEqual(ratio, LEAST_RATIO)
        self.assertLessEqual(cost, 1 / LEAST_RATIO)


if __name__ == "__main__":
    unittest.main()
