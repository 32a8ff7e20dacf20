"""Mixed load for an hour: does the server grow? Samples memory, threads, descriptors and files on the way.

    build/venv/bin/pytest -s tests/fault/soak.py                            (half a minute)
    JOBQ_SOAK_MINUTES=60 build/venv/bin/pytest -s tests/fault/soak.py

JOBQ_SOAK_RATE requests a second come from JOBQ_SOAK_CALLERS callers. The server has its default settings and SQLite.
The first quarter is warm-up (of a minute, the first third). From 25 minutes on a growth is a linear regression,
extrapolated to an hour (memory: at most 5 %); shorter runs only compare the second quarter with the last, with loose
bounds (soak_record.py), because a minute does not show what an hour would bring.
"""

import os
import time

import pytest
from jobq_server import Server, until
from pace import HANG
from process_watch import processor_seconds
from soak_record import Record, line, verdicts
from soak_traffic import Traffic

SECONDS = 60 * float(os.environ.get("JOBQ_SOAK_MINUTES", "0.5"))
RATE = float(os.environ.get("JOBQ_SOAK_RATE", "400"))  # requests a second, of all callers together
CALLERS = int(os.environ.get("JOBQ_SOAK_CALLERS", "24"))
LONGEST_TTL = 60_000  # milliseconds; the database is steady once jobs expire as fast as they come
SHORTEST_TTL = 10_000  # core/http/API.md, "Policy": the least ttl
GLANCES = 20  # at the memory, for each row of the record
TABLES = ("job", "job_input", "job_output", "job_progress", "job_chunk", "job_log")


@pytest.mark.timeout(SECONDS + 600)
class SoakTest:
    def test_the_server_does_not_grow(self):
        """Every answer is right, every job ends as it must, nothing grows, and in the end no row of any job is left."""
        ttl = int(min(LONGEST_TTL, max(SHORTEST_TTL, SECONDS * 1000 / 8)))
        with Server(endpoint__trial__workersMax=16) as server:
            traffic = Traffic(server, RATE, CALLERS, ttl).start()
            try:
                record = self.watch(server, traffic)
            finally:
                traffic.stop()
            length = record.rows[-1][0]
            print(f"{traffic.requests / length:.0f} requests/s over {length:.0f} s; the server took "
                  f"{processor_seconds(server.process.pid) / length * 100:.0f} % of a processor")
            print("calls: " + ", ".join(f"{name} {count}" for name, count in sorted(traffic.done.items())))
            assert not traffic.faults, "wrong answers:\n" + "\n".join(traffic.faults)
            self.check_jobs(server, traffic)
            judged = verdicts(record, warm_up=length / 4 if SECONDS > 60 else length / 3)
            table = "\n".join(line(*verdict) for verdict in judged)
            print(table)
            assert all(verdict[-1] for verdict in judged), table
            until(lambda: record.rows_of(*TABLES) == 0, "all rows of all jobs are gone", ttl / 1000 + HANG)

    @staticmethod
    def watch(server, traffic):
        """Samples until the time is over, or the server or the traffic has failed."""
        record = Record(server, traffic)
        step = min(10.0, SECONDS / 30)
        print_every = max(1, int(SECONDS / step / 30))
        while time.monotonic() < record.start + SECONDS and server.running and not traffic.faults:
            due = record.start + step * (len(record.rows) + 1)
            while server.running and not traffic.faults and time.monotonic() < due:
                record.glance()
                traffic.rate.stop.wait(max(0.0, min(due - time.monotonic(), step / GLANCES)))
            if not server.running:
                break
            record.add_row()
            if len(record.rows) % print_every == 0:
                print(record.last_line(), flush=True)
        assert server.running, "jobqd ended by itself"
        return record

    @staticmethod
    def check_jobs(server, traffic):
        """No job waits or runs, and each endpoint has the expected numbers of completed and failed jobs."""
        for endpoint, (completed, failed) in traffic.ended.items():
            jobs = server.quiet(endpoint)
            assert (jobs["completed"], jobs["failed"]) == (completed, failed), f"{endpoint}, by the callers' books"
