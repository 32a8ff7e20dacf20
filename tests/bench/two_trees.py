"""Compares the processor time that a server takes for a call, and the rate, in two trees, for example before and after
a change.

    two_trees.py BEFORE AFTER [--rounds N] [--storage memory|sqlite]

Both folders are checkouts with a built server and built bench programs (tests/bench/run.sh --quick builds them). The
rounds of the trees alternate. The processor time of a call varies less than the rate, which the disk and other work
on the machine change, too. `finished` is the time from the first /run to the end of the last job.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time

CALLS = (("/runsync", 1, "/v2/echo/runsync"), ("/runsync", 32, "/v2/echo/runsync"), ("/run", 64, "/v2/parked/run"))
FINISHED = 20_000  # jobs
SECONDS = 1.0  # of load for each measurement
WARM_UP = 0.3  # seconds
LONGEST_ROUND = 120.0  # seconds: bounds a hang


def processor_time(process):
    """Returns the processor time of all living threads of a process in microseconds."""
    folder = f"/proc/{process}/task"
    times = 0
    for thread in os.listdir(folder):
        with open(f"{folder}/{thread}/schedstat", encoding="ascii") as file:
            times += int(file.read().split()[0])
    return times / 1e3


def measure(tree, storage):
    """Returns the microseconds and the rate of each kind of call. Runs in a process of its own, with the modules of the
    tree."""
    sys.path.insert(0, os.path.join(tree, "tests/bench"))
    import bench
    import servers
    found = {}
    with servers.Jobq(storage) as server:
        for name, connections, path in CALLS:
            request = server.request("POST", path, bench.JOB)
            server.load("http", connections, request, WARM_UP)
            before = processor_time(server.process.pid)
            load = server.load("http", connections, request, SECONDS)
            took = processor_time(server.process.pid) - before
            found[f"{name}, {connections} callers"] = (took / load["answers"], load["rate"])
    with servers.Jobq(storage) as server:
        before = processor_time(server.process.pid)
        start = time.monotonic()
        bench.finish_jobs(server, "/v2/echo/run", 64, FINISHED)
        rate = FINISHED / (time.monotonic() - start)
        found["finished, 64 callers"] = ((processor_time(server.process.pid) - before) / FINISHED, rate)
    return found


def compare(options):
    trees = [os.path.abspath(options.before), os.path.abspath(options.after)]
    found = {tree: [] for tree in trees}
    for number in range(options.rounds):
        for tree in trees if number % 2 == 0 else reversed(trees):
            done = subprocess.run([sys.executable, __file__, tree, tree, "--storage", options.storage, "--measure"],
                                  stdout=subprocess.PIPE, text=True, check=True, timeout=LONGEST_ROUND)
            found[tree].append(json.loads(done.stdout.splitlines()[-1]))
    print(f"{options.storage}, processor time of a call and rate, medians of {options.rounds} rounds")
    for call in found[trees[0]][0]:
        line = f"  {call:22s}"
        for at, unit in enumerate(("us", "/s")):
            before, after = ([measured[call][at] for measured in found[tree]] for tree in trees)
            ratio = statistics.median(new / old for old, new in zip(before, after))
            line += f" {statistics.median(before):9.1f} {unit}, then {statistics.median(after):9.1f} {unit}: {ratio:.3f};"
        print(line.rstrip(";"))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before")
    parser.add_argument("after")
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--storage", choices=("memory", "sqlite"), default="sqlite")
    parser.add_argument("--measure", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        print(json.dumps(measure(options.before, options.storage)))
    else:
        compare(options)


if __name__ == "__main__":
    main()
