"""Compares the processor time that a server takes for a call, and the rate, in two trees, for example before and after
a change.

    two_trees.py BEFORE AFTER [--rounds N] [--storage memory|sqlite]    without --storage: one after the other

Both folders are checkouts with a built server and built bench programs (tests/bench/run.sh --quick builds them). A
server of each tree runs all the time, and each round loads one server behind the other, because the pace of the
machine may change within seconds: two equal trees differ by 2 % then, and by 10 % if each round starts its servers.
`finished` is the time from the first /run to the end of the last job. The last lines judge the rates: the geometric mean
of all rows, and the rows whose ratios lie wholly under 0.97 between their quartiles. Such a row is measured again with
21 rounds before it counts.
"""

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import time

CALLS = (("/runsync", 1, "/v2/echo/runsync"), ("/runsync", 32, "/v2/echo/runsync"), ("/run", 64, "/v2/parked/run"),
         ("/runsync of 10 ms", 32, "/v2/brief/runsync"),
         ("20 MB echoed", 1, "/v2/echo/runsync"))
STORAGES = ("memory", "sqlite")
# An endpoint whose handler runs for 10 ms.
BRIEF = {"endpoint.brief.image": "plugin/trial", "endpoint.brief.workersMin": 32, "endpoint.brief.workersMax": 32}
LARGE = 20 << 20  # bytes of the body of a row `20 MB`
LEAST_MEAN, LEAST_ROW = 0.98, 0.97  # ratios of rates
FINISHED = 5_000  # jobs
SECONDS = 0.4  # of load for each measurement
LONGEST_FINISH = 120.0  # seconds: bounds a hang
WARM_UP = 1.5  # seconds, in which SQLite's log gets its size


def processor_time(process):
    """Returns the processor time of a process in microseconds, also of ended threads."""
    return time.clock_gettime_ns(process_clock(process)) / 1e3


def process_clock(process):
    """Returns the clock of a process for its processor time: clock_getcpuclockid() of the C library."""
    return (~process << 3) | 2


class Tree:
    """A server of a tree, in a process of its own with the modules of the tree."""

    def __init__(self, folder, storage):
        self.process = subprocess.Popen([sys.executable, __file__, folder, folder, "--storage", storage, "--serve"],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def measure(self, call, seconds):
        """Returns the microseconds of a call and the rate; None as `call` means `finished`."""
        self.process.stdin.write(json.dumps([call, seconds]) + "\n")
        self.process.stdin.flush()
        # A hanging server ends its process with an error after servers.LONGEST_LOAD.
        answer = self.process.stdout.readline()
        if not answer:
            raise RuntimeError("the server's process has ended: its words are above")
        return json.loads(answer)

    def end(self):
        self.process.stdin.close()
        self.process.wait(LONGEST_FINISH)


def serve(folder, storage):
    """Starts the server of the tree, and measures the call of each line of the standard input."""
    sys.path.insert(0, os.path.join(folder, "tests/bench"))
    import bench
    import servers
    with servers.Jobq(storage, BRIEF) as server:
        for line in sys.stdin:
            call, seconds = json.loads(line)
            before = processor_time(server.process.pid)
            start = time.monotonic()
            if call is None:
                done = server.call("GET", "/v2/echo/health")["jobs"]["completed"] + FINISHED
                server.load("http", 64, server.request("POST", "/v2/echo/run", bench.JOB), count=FINISHED)
                servers.until(lambda: server.call("GET", "/v2/echo/health")["jobs"]["completed"] >= done,
                              f"{FINISHED} jobs are completed", LONGEST_FINISH)
                calls, rate = FINISHED, FINISHED / (time.monotonic() - start)
            else:
                load = server.load("http", call[1], server.request("POST", call[2], body(call, bench.JOB)), seconds)
                calls, rate = load["answers"], load["rate"]
            print(json.dumps([(processor_time(server.process.pid) - before) / calls, rate]), flush=True)


def body(call, job):
    """Returns the body of a call: the job, or one of 20 MB."""
    if "10 ms" in call[0]:
        return b'{"input":{"sleepMs":10}}'
    frame = b'{"input":{"a":"%s"}}'
    return frame % (b"x" * (LARGE - len(frame % b""))) if call[0].startswith("20 MB") else job


def print_summary(rates):
    """Prints the mean of all rows and the slower rows. `rates` has the quartiles of the ratios of each row."""
    mean = math.exp(statistics.fmean(math.log(middle) for _, middle, _ in rates.values()))
    print(f"geometric mean of the {len(rates)} ratios of rates: {mean:.3f}, at least {LEAST_MEAN} is wanted")
    suspects = [row for row, (_, _, high) in rates.items() if high < LEAST_ROW]
    print(f"rows with both quartiles under {LEAST_ROW}: {', '.join(suspects) or 'none'}")


def compare(options, storage):
    """Measures the rows of a storage, and returns the quartiles of their ratios of rates."""
    trees = [Tree(os.path.abspath(folder), storage) for folder in (options.before, options.after)]
    rates = {}
    print(f"{storage}, processor time of a call and rate, medians of {options.rounds} rounds, and quartiles of "
          "the ratios")
    for call in (*CALLS, None):
        found = [[], []]
        for tree in trees:
            tree.measure(call, WARM_UP)
        for number in range(options.rounds):
            for at in (0, 1) if number % 2 == 0 else (1, 0):
                found[at].append(trees[at].measure(call, SECONDS))
        row = f"{call[0]}, {call[1]} callers" if call else "finished, 64 callers"
        line = f"  {row:24s}"
        for part, unit in enumerate(("us", "/s")):
            before, after = ([each[part] for each in tree] for tree in found)
            low, middle, high = statistics.quantiles([new / old for old, new in zip(before, after)], n=4)
            line += f" {statistics.median(before):9.1f} {unit}, then {statistics.median(after):9.1f} {unit}:"
            line += f" {middle:.3f} ({low:.3f} to {high:.3f});"
        rates[f"{row} on {storage}"] = (low, middle, high)  # the loop ends with the rate
        print(line.rstrip(";"), flush=True)
    for tree in trees:
        tree.end()
    return rates


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before")
    parser.add_argument("after")
    parser.add_argument("--rounds", type=int, default=16)
    parser.add_argument("--storage", choices=STORAGES)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.rounds < 2:
        parser.error("--rounds: at least 2, because quartiles need two rounds")
    if options.serve:
        serve(options.before, options.storage)
    else:
        rates = {}
        for storage in [options.storage] if options.storage else STORAGES:
            rates |= compare(options, storage)
        print_summary(rates)


if __name__ == "__main__":
    main()
