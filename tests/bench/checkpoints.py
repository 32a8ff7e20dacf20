"""The cost of a checkpoint of SQLite's log for the callers: 64 connections send /run without a pause, in turns to a server
with the usual size of the log and to a server with a log that never fills (4 GB).

    checkpoints.py [--rounds N] [--seconds S] [--connections N]

Prints the rate, p50, p99 and the longest time of a call, and the size of the log at the end.
"""

import argparse
import os
import statistics

from machine import OtherWork
from servers import Jobq

JOB = b'{"input":{"n":1}}'
NAMES = {"64MB": "with checkpoints", "4GB": "without"}


def measure(size, options):
    with Jobq("sqlite", {"storage.sqlite.log": size}) as server:
        run = server.request("POST", "/v2/parked/run", JOB)
        result = server.load("http", options.connections, run, options.seconds)
        result["log"] = os.path.getsize(os.path.join(server.data, "jobq.db-wal")) >> 20
        return result


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--seconds", type=float, default=8)
    options.add_argument("--connections", type=int, default=64)
    options = options.parse_args()
    results = {size: [] for size in NAMES}
    other = OtherWork()
    for _ in range(options.rounds):
        for size, measured in results.items():
            measured.append(measure(size, options))
    for size, measured in results.items():
        said = ", ".join(f"{name} {statistics.median(each[name] for each in measured):,.0f}"
                         for name in ("rate", "p50", "p99", "longest", "log"))
        print(f"{NAMES[size]}: {said} (µs, MB of log)")
    print(f"other work took {other.share():.0%}")


if __name__ == "__main__":
    main()
