"""Goals of size on SQLite: the time of a small /run beside middling bodies, a purge and an expiry; claims with 1,000
priorities beside one; a chain of five filters on 100 KB beside none.

    size_goals.py [--rounds N] [--jobs N] [--only bodies purge expiry priorities filters] [--check]

The small caller sends 50 /run a second. `--jobs` is the number of jobs to purge and to expire.
"""

import argparse
import json
import os
import statistics
import sys
import time

from beside_large import place, small_calls_beside
from machine import OtherWork
from servers import Jobq, until

CALLERS = 45
SECONDS = 6.0
TTL = 60_000  # ms
RANKED = 40_000
FILTERS = 5
FILTER = "return function(job)\n  job.input.last = 1\n  return {input = job.input}\nend\n"
LONGEST = 300  # seconds: bounds a hang


def job(**members):
    return json.dumps({"input": {"n": 1}, **members}).encode()


def fill(server, count, body, numbers=None):
    server.load("http", 64, server.request("POST", "/v2/parked/run", body), count=count, numbers=numbers)


def p99_beside(server, act):
    calls, _ = small_calls_beside(server, act)
    return 1_000 * place(calls, 0.99)


def beside_bodies(_):
    """Yields p99 in ms beside bodies of each size."""
    for kilobytes in (10, 100):
        with Jobq("sqlite") as server:
            request = server.request("POST", "/v2/echo/runsync", b'{"input":{"x":"' + b"x" * (kilobytes << 10) + b'"}}')
            yield f"p99 beside {CALLERS} callers with {kilobytes} KB, ms", p99_beside(
                server, lambda: server.load("http", CALLERS, request, seconds=SECONDS)), 20


def beside_purge(options):
    with Jobq("sqlite", {"endpoint.full.image": "plugin/echo", "endpoint.full.workersMax": 0}) as server:
        server.load("http", 64, server.request("POST", "/v2/full/run", job()), count=options.jobs)
        yield "p99 beside a purge, ms", p99_beside(server, lambda: server.call("POST", "/v2/full/purge-queue")), 50


def beside_expiry(options):
    with Jobq("sqlite", {"endpoint.full.image": "plugin/echo", "endpoint.full.workersMax": 0}) as server:
        server.load("http", 64, server.request("POST", "/v2/full/run", job(policy={"ttl": TTL})), count=options.jobs)
        yield "p99 beside an expiry, ms", p99_beside(server, lambda: until(
            lambda: time.sleep(0.5) or server.call("GET", "/v2/full/requests?limit=1")["total"] == 0,
            "all jobs have expired", LONGEST)), 50


def claims_a_second(server, priorities):
    """Fills the queue, restarts the server with workers, and returns the finished jobs a second."""
    # The generator replaces the zeros: priorities from 100000 on.
    fill(server, RANKED, b'{"input":{"n":1},"policy":{"priority":100000}}', priorities)
    server.stop()
    server.launch("--set", f"endpoint.parked.workersMax={Jobq.workers}",
                  "--set", f"endpoint.parked.workersMin={Jobq.workers}")
    start = time.monotonic()
    until(lambda: server.call("GET", "/v2/parked/health")["jobs"]["inQueue"] == 0, "the queue is empty", LONGEST)
    return RANKED / (time.monotonic() - start)


def with_priorities(_):
    with Jobq("sqlite") as many, Jobq("sqlite") as one:
        yield "claims with 1,000 priorities / with one", claims_a_second(many, 1_000) / claims_a_second(one, 1), -0.8


def with_filters(_):
    names = [f"f{number}" for number in range(FILTERS)]
    settings = {"scripts.path": "scripts", "endpoint.judged.image": "plugin/echo", "endpoint.judged.workersMax": 0,
                "endpoint.judged.filters": ", ".join(names)}
    server = Jobq("memory", settings)
    os.makedirs(os.path.join(server.folder, "scripts", "filters"))
    for name in names:
        server.file(os.path.join("scripts", "filters", name + ".lua"), FILTER.encode())
    with server:
        body = json.dumps({"input": {"rows": [{"id": row, "name": f"row {row}", "tags": ["a", "b"], "score": row / 7}
                                              for row in range(1_500)]}}).encode()

        def rate(endpoint):
            answer = server.load("http", 8, server.request("POST", f"/v2/{endpoint}/run", body), seconds=2.0)
            server.call("POST", f"/v2/{endpoint}/purge-queue")
            return answer["rate"]

        rate("judged")
        yield f"/run with {len(body) >> 10} KB through {FILTERS} filters / without", rate("judged") / rate("parked"), -0.4


GOALS = {"bodies": beside_bodies, "purge": beside_purge, "expiry": beside_expiry, "priorities": with_priorities,
         "filters": with_filters}


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--jobs", type=int, default=1_000_000)
    options.add_argument("--only", nargs="+", choices=list(GOALS), default=list(GOALS))
    options.add_argument("--check", action="store_true")
    options = options.parse_args()
    missed = False
    for goal in options.only:
        other = OtherWork()
        figures = {}
        for _ in range(options.rounds):
            for what, figure, bound in GOALS[goal](options):
                figures.setdefault((what, bound), []).append(figure)
        for (what, bound), each in figures.items():
            median = statistics.median(each)
            good = median <= bound if bound > 0 else median >= -bound
            missed = missed or not good
            print(f"{what}: {median:.2f} ({', '.join(f'{one:.2f}' for one in each)}), goal "
                  f"{'at most' if bound > 0 else 'at least'} {abs(bound)}: {'met' if good else 'MISSED'}; "
                  f"other work took {other.share():.0%}", flush=True)
    return 1 if options.check and missed else 0


if __name__ == "__main__":
    sys.exit(main())
