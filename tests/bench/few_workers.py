"""The finished jobs of a few workers on SQLite, beside the syncs of the disk: a worker whose report waited for a sync
would finish fewer jobs a second than the disk makes syncs.

    few_workers.py [--rounds N] [--workers 1 3 8]

64 connections send /run; the time goes from the first /run to the end of the last job.
"""

import argparse
import os
import statistics
import tempfile
import time

from servers import BUILD, JOB, Jobq, until

JOBS = 20_000
WARM_UP = 5_000  # jobs, in which SQLite's log gets some size
CONNECTIONS = 64
SYNCS = 1_000
PAGE = 4096


def syncs_a_second():
    """Returns the syncs a second of pages in the middle of a file on the disk of the measured storage."""
    os.makedirs(os.path.join(BUILD, "bench-data"), exist_ok=True)
    with tempfile.TemporaryFile(dir=os.path.join(BUILD, "bench-data")) as file:
        os.pwrite(file.fileno(), b"x" * PAGE * SYNCS, 0)
        os.fsync(file.fileno())
        start = time.monotonic()
        for number in range(SYNCS):
            os.pwrite(file.fileno(), b"y" * PAGE, number * PAGE)
            os.fdatasync(file.fileno())
        return SYNCS / (time.monotonic() - start)


def finished_a_second(workers):
    settings = {"endpoint.echo.workersMin": workers, "endpoint.echo.workersMax": workers}
    with Jobq("sqlite", settings) as server:
        request = server.request("POST", "/v2/echo/run", JOB)

        def finish(count, ended):
            server.load("http", CONNECTIONS, request, count=count)
            until(lambda: server.call("GET", "/v2/echo/health")["jobs"]["completed"] == ended, f"{ended} jobs are completed")

        finish(WARM_UP, WARM_UP)
        start = time.monotonic()
        finish(JOBS, WARM_UP + JOBS)
        return JOBS / (time.monotonic() - start)


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--workers", type=int, nargs="+", default=[1, 3, 8])
    options = options.parse_args()
    rates = {workers: [] for workers in options.workers}
    syncs = []
    for _ in range(options.rounds):
        syncs.append(syncs_a_second())
        for workers, found in rates.items():
            found.append(finished_a_second(workers))
    print(f"medians of {options.rounds} rounds: {statistics.median(syncs):.0f} syncs a second")
    for workers, found in rates.items():
        ratio = statistics.median(rate / sync for rate, sync in zip(found, syncs))
        print(f"{workers} workers: {statistics.median(found):.0f} finished jobs a second, {ratio:.2f} of the syncs")


if __name__ == "__main__":
    main()
