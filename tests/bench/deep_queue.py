"""A server with a long queue: restart, memory, and the pace of claims beside that of a server with a short queue.

    deep_queue.py [--jobs N] [--rounds N]      the same as bench.py --million, without the other rows
"""

import argparse
import contextlib
import statistics
import time

from machine import OtherWork
from servers import JOB, Jobq, until

WARM_UP, MEASURED, SPARE = 4000, 40000, 2000  # jobs of a turn; the spare ones stay queued
LONGEST_TURN = 600.0  # seconds: bounds a hang
RUNSYNC_SECONDS = 2.0


def fill(server, jobs):
    server.load("http", 64, server.request("POST", "/v2/parked/run", JOB), count=jobs)


def finished_rate(server):
    """Restarts the server with workers at the queue, and returns the finished jobs a second behind the first WARM_UP jobs.
    Afterwards the server has no workers there."""
    marks = []  # (moment, finished jobs)

    def is_over():
        marks.append((time.monotonic(), server.call("GET", "/v2/parked/health")["jobs"]["completed"]))
        return marks[-1][1] - marks[0][1] >= WARM_UP + MEASURED

    server.stop()
    server.launch("--set", f"endpoint.parked.workersMax={Jobq.workers}",
                  "--set", f"endpoint.parked.workersMin={Jobq.workers}")
    until(is_over, "the jobs of the turn are finished", LONGEST_TURN)
    first = next(mark for mark in marks if mark[1] - marks[0][1] >= WARM_UP)
    server.stop()
    server.launch()
    return (marks[-1][1] - first[1]) / (marks[-1][0] - first[0])


def compare(deep, short, rounds):
    """Returns the finished jobs a second of both servers, round by round. The servers work in turns, in alternating order.
    Before each round both receive the jobs of a turn, so the long queue stays long."""
    rates = {deep: [], short: []}
    for number in range(rounds):
        for server in (short, deep):
            fill(server, WARM_UP + MEASURED + SPARE)
        for server in (short, deep) if number % 2 == 0 else (deep, short):
            rates[server].append(finished_rate(server))
        print(f"  finished jobs a second: {rates[deep][-1]:.0f} with the long queue, {rates[short][-1]:.0f} with the short "
              "one", flush=True)
    return rates[deep], rates[short]


def measure(jobs, rounds):
    """Returns the figures of a queue of `jobs` jobs; `pace` is the median of the rounds' ratios."""
    with contextlib.ExitStack() as stack:
        deep = stack.enter_context(Jobq("sqlite"))
        empty = deep.memory()
        fill(deep, jobs)
        grown = deep.memory() - empty
        deep.stop()
        start = time.monotonic()
        deep.launch()
        ready = time.monotonic() - start
        runsync = deep.load("http", 16, deep.request("POST", "/v2/echo/runsync", JOB), RUNSYNC_SECONDS)["rate"]
        restarted = deep.memory() - empty
        short = stack.enter_context(Jobq("sqlite"))
        deep_rates, short_rates = compare(deep, short, rounds)
    return {"jobs": jobs, "ready": ready, "bytes": max(grown, restarted) / jobs, "runsync": runsync,
            "deep": statistics.median(deep_rates), "short": statistics.median(short_rates),
            "pace": statistics.median(d / s for d, s in zip(deep_rates, short_rates))}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    other = OtherWork()
    measured = measure(options.jobs, options.rounds)
    print(", ".join(f"{name} {value:.2f}" for name, value in measured.items()) + f"; other work took {other.share():.0%}")


if __name__ == "__main__":
    main()
