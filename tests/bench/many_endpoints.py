"""A server with many endpoints beside one with ten: the pace of traffic over all of them, the time of the start, the time
to make a key and an endpoint, and the time of a list and of a page.

    many_endpoints.py [--storage sqlite] [--endpoints 10000] [--rounds N] [--check]

Each endpoint has had ten calls before a measurement: its worker is there, and its runs are known to be brief. The two
servers take turns.
"""

import argparse
import json
import statistics
import sys
import time

from servers import JOB, Jobq

FEW = 10
CONNECTIONS = 16
SECONDS = 3.0
TURNS = 10
MADE = 200
LEAST_PACE = 0.5      # of the pace with ten endpoints
LONGEST_START = 1.0   # seconds beyond those of the server with ten endpoints
LONGEST_MAKING = 2.0  # milliseconds


def settings(count):
    lines = {}
    for number in range(count):
        lines[f"endpoint.e{number:05}.image"] = "plugin/echo"
        lines[f"endpoint.e{number:05}.workersMax"] = 3
        lines[f"endpoint.e{number:05}.idleTimeout"] = "3600s"
    return lines


class Server(Jobq):
    """The measured server with its own endpoints."""

    workers = 0

    def __init__(self, storage, count):
        super().__init__(storage, settings(count))
        self.count = count

    def launch(self, *arguments):
        begin = time.monotonic()
        super().launch(*arguments)
        self.start_time = time.monotonic() - begin
        return self

    def pace(self, call, seconds=SECONDS, count=0):
        request = self.request("POST", f"/v2/e00000/{call}", JOB)
        return self.load("http", CONNECTIONS, request, seconds=seconds, count=count, numbers=self.count)

    def warm(self):
        self.pace("runsync", count=TURNS * self.count)

    def milliseconds(self, call):
        times = []
        for number in range(MADE):
            begin = time.monotonic()
            call(number)
            times.append(1_000 * (time.monotonic() - begin))
        return statistics.median(times)

    def making(self):
        """Returns the milliseconds to make a key, a template and an endpoint."""
        def post(path, **body):
            return self.call("POST", path, json.dumps(body).encode())
        template = post("/v1/templates", name="all", imageName="plugin/echo")["id"]
        return {
            "key": self.milliseconds(lambda number: post("/v1/keys", name=f"key {number}", scopes=["client"])),
            "template": self.milliseconds(lambda number: post("/v1/templates", name=f"t{number}",
                                                              imageName="plugin/echo")),
            "endpoint": self.milliseconds(lambda number: post("/v1/endpoints", templateId=template, workersMax=0)),
        }

    def listing(self, path):
        begin = time.monotonic()
        found = len(self.call("GET", path))
        return found, 1_000 * (time.monotonic() - begin)


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--storage", default="sqlite")
    options.add_argument("--endpoints", type=int, default=10_000)
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--check", action="store_true", help="end with 1 if a goal is missed")
    options = options.parse_args()
    missed = []

    def judge_goal(what, figure, is_good):
        print(f"{what}: {figure}" + ("" if is_good else "  MISSED"), flush=True)
        if not is_good:
            missed.append(what)

    with Server(options.storage, FEW) as few, Server(options.storage, options.endpoints) as many:
        judge_goal("start, seconds", f"{few.start_time:.2f} and {many.start_time:.2f}",
              many.start_time - few.start_time <= LONGEST_START)
        for server in (few, many):
            server.warm()
        for call in ("runsync", "run"):
            rounds = []
            for number in range(options.rounds):
                order = (few, many) if number % 2 == 0 else (many, few)
                rounds.append({server.count: server.pace(call) for server in order})
            ratio = statistics.median(one[many.count]["rate"] / one[few.count]["rate"] for one in rounds)
            rates = {count: statistics.median(one[count]["rate"] for one in rounds) for count in (FEW, many.count)}
            p99 = {count: statistics.median(one[count]["p99"] for one in rounds) / 1_000 for count in rates}
            judge_goal(f"/{call}, pace of {many.count} endpoints / pace of {FEW}",
                  f"{ratio:.2f} ({rates[many.count]:.0f} and {rates[FEW]:.0f} a second, p99 {p99[many.count]:.1f} and "
                  f"{p99[FEW]:.1f} ms)", ratio >= LEAST_PACE)
        making = {server.count: server.making() for server in (few, many)}
        for kind, took in making[many.count].items():
            judge_goal(f"making one {kind}, milliseconds", f"{took:.2f} ({making[FEW][kind]:.2f} beside ten endpoints)",
                  took <= LONGEST_MAKING)
        for path in ("/v1/endpoints", "/v1/endpoints?limit=100"):
            found, took = many.listing(path)
            print(f"{path}: {found} endpoints in {took:.0f} ms")
    return 1 if options.check and missed else 0


if __name__ == "__main__":
    sys.exit(main())
