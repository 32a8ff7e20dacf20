"""Mixed load for an hour: does the server grow? Samples memory, threads, descriptors and files on the way.

    python3 tests/fault/soak.py [--minutes 60] [--rate 400] [--callers 24]

The server has its default settings and SQLite. The first quarter is warm-up (of a minute, the first third). From 25
minutes on a growth is a linear regression, extrapolated to an hour (memory: at most 5 %); shorter runs only compare the
second quarter with the last, with loose bounds (soak_record.py), because what an hour would bring cannot be read from a
minute. Last line: N passed, N failed.
"""

import argparse
import os
import signal
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "support"))

from jobq_server import Server, until  # noqa: E402
from process_watch import processor_seconds  # noqa: E402
from soak_record import Record, line, verdicts  # noqa: E402
from soak_traffic import Traffic  # noqa: E402

LONGEST_TTL = 60_000  # milliseconds; the database is steady once jobs expire as fast as they come
SHORTEST_TTL = 10_000  # api.md's
GLANCES = 20  # at the memory, for each row of the record


class Checks:
    def __init__(self):
        self.passed = self.failed = 0

    def check(self, good, text):
        self.passed += bool(good)
        self.failed += not good
        print(text, flush=True)


def watch(server, traffic, seconds):
    """Samples until the time is over, or the server or the traffic has failed."""
    record = Record(server)
    step = min(10.0, seconds / 30)
    print_every = max(1, int(seconds / step / 30))
    while time.monotonic() < record.start + seconds and server.running and not traffic.faults:
        due = record.start + step * (len(record.rows) + 1)
        while server.running and not traffic.faults and time.monotonic() < due:
            record.glance()
            traffic.pace.stop.wait(max(0.0, min(due - time.monotonic(), step / GLANCES)))
        if not server.running:
            break
        record.take()
        if len(record.rows) % print_every == 0:
            print(record.last_line(), flush=True)
    return record


def check_jobs(checks, server, traffic):
    """Nothing waits or runs, and each endpoint has completed and failed as many as it had to."""
    for endpoint, (completed, failed) in traffic.ended.items():
        jobs = server.quiet(endpoint)
        good = (jobs["completed"], jobs["failed"]) == (completed, failed)
        checks.check(good, f"{'ok  ' if good else 'FAIL'} {endpoint}: {jobs['completed']} completed, {jobs['failed']} "
                           f"failed; by the callers' books {completed} and {failed}")


def check_rows(checks, record, ttl):
    """Once every job has expired, nothing of any of them is left."""
    tables = ("job", "job_input", "job_output", "job_progress", "job_chunk", "job_log")
    try:
        until(lambda: record.rows_of(*tables) == 0, "all rows of all jobs are gone", ttl / 1000 + 30)
        checks.check(True, "ok   all rows of all jobs are gone")
    except AssertionError as error:
        checks.check(False, f"FAIL {error}: " + ", ".join(f"{name} {record.rows_of(name)}" for name in tables))


def soak(options, checks):
    seconds = options.minutes * 60
    ttl = int(min(LONGEST_TTL, max(SHORTEST_TTL, seconds * 1000 / 8)))
    with Server(endpoint__trial__workersMax=16) as server:
        traffic = Traffic(server, options.rate, options.callers, ttl).start()
        try:
            record = watch(server, traffic, seconds)
        finally:
            traffic.stop()
        length = record.rows[-1][0]
        print(f"{traffic.requests / length:.0f} requests/s over {length:.0f} s; the server took "
              f"{processor_seconds(server.process.pid) / length * 100:.0f} % of a processor")
        print("errands: " + ", ".join(f"{name} {count}" for name, count in sorted(traffic.done.items())))
        checks.check(not traffic.faults, "ok   every answer was right" if not traffic.faults else
                     "FAIL wrong answers:\n" + "\n".join(traffic.faults) + "\n" + server.log_tail(20))
        check_jobs(checks, server, traffic)
        for verdict in verdicts(record, warm_up=length / 4 if seconds > 60 else length / 3):
            checks.check(verdict[-1], line(*verdict))
        check_rows(checks, record, ttl)
    checks.check(True, "ok   the server ended cleanly")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--rate", type=float, default=400, help="requests a second, of all callers together")
    parser.add_argument("--callers", type=int, default=24)
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that the server and its files go, too
    checks = Checks()
    try:
        soak(options, checks)
    except Exception as error:  # whatever it is, the last line has to say it
        checks.check(False, f"FAIL {type(error).__name__}: {error}")
    print(f"{checks.passed} passed, {checks.failed} failed")
    return 1 if checks.failed else 0


if __name__ == "__main__":
    sys.exit(main())
