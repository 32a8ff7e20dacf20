"""The time of a small /run at one endpoint while other callers hold memory: 16 callers send small /run, each as soon
as it has its answer, alone and beside each attack of tests/fault/test_memory_attacks.py, which begins once a second.
SQLite, on the disk of the build folder.

    beside_attack.py [--rounds N] [--seconds N] [--check]    --check: exit code 1 when a goal is missed

Goal: p99 beside each attack at most twice the p99 alone, as the median of the pairs.
"""

import argparse
import contextlib
import json
import socket
import statistics
import sys
import threading
import time

from beside_large import DEADLINE, MB, read_answer
from machine import OtherWork
from servers import Jobq

GOAL = 2.0
CALLERS = 16
SETTINGS = {f"endpoint.{name}.image": "docker.io/acme/worker:1" for name in ("fed", "crowded")}


class Attacker:
    def __init__(self, server):
        self.server = server
        self.large = self.submit("echo", "runsync", 19)
        for _ in range(30):
            self.submit("fed", "run", 9)

    def submit(self, endpoint, call, megabytes):
        body = b'{"input":{"x":"' + b"x" * (megabytes * MB) + b'"}}'
        with socket.create_connection(("127.0.0.1", self.server.port)) as plain:
            plain.sendall(self.server.request("POST", f"/v2/{endpoint}/{call}", body))
            return read_answer(plain).split(b'"id":"')[1].split(b'"')[0].decode()

    def ask(self, crowd, path):
        plain = crowd.enter_context(socket.socket())
        plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        plain.connect(("127.0.0.1", self.server.port))
        plain.sendall(self.server.request("GET", path, b""))
        return plain

    def outputs(self, crowd):
        for plain in [self.ask(crowd, f"/v2/echo/status/{self.large}") for _ in range(100)]:
            plain.recv(12)

    def inputs(self, crowd):
        for n in range(4):
            self.ask(crowd, f"/v2/fed/job-take-batch/w{n}?batch_size=100&job_in_progress=0")

    def places(self, crowd):
        for n in range(300):
            self.ask(crowd, f"/v2/crowded/job-take-batch/w{n}?batch_size=1000&job_in_progress=0")

    def texts(self, crowd):
        for _ in range(300):
            self.ask(crowd, "/openapi.json")


def hold(attack, seconds):
    """Begins the attack again and again, with a pause in which its connections stay."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        with contextlib.ExitStack() as crowd:
            attack(crowd)
            time.sleep(min(1.0, max(0.0, end - time.monotonic())))


def p99(server, seconds):
    """Returns p99 of the small callers in ms."""
    request = server.request("POST", "/v2/parked/run", b'{"input":{"n":1}}')
    return server.load("http", CALLERS, request, seconds=seconds)["p99"] / 1000


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    other = OtherWork()
    ratios = {}
    for _ in range(options.rounds):
        with Jobq("sqlite", SETTINGS) as server:
            attacker = Attacker(server)
            p99(server, options.seconds)  # warm
            for name in ("outputs", "inputs", "places", "texts"):
                alone = p99(server, options.seconds)
                holder = threading.Thread(target=hold, args=(getattr(attacker, name), options.seconds))
                holder.start()
                beside = p99(server, options.seconds)
                holder.join(DEADLINE)
                ratios.setdefault(name, []).append(beside / alone)
                print(f"  {name:8} p99 alone {alone:6.2f} ms, beside {beside:6.2f} ms", flush=True)
    medians = {name: round(statistics.median(each), 2) for name, each in ratios.items()}
    print(f"p99 beside the attack, times the p99 alone, median of {options.rounds}: {json.dumps(medians)}; "
          f"goal {GOAL:g}; other work took {other.share():.0%}")
    return 1 if options.check and max(medians.values()) > GOAL else 0


if __name__ == "__main__":
    sys.exit(main())
