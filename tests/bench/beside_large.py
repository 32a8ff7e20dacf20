"""The time of a small /run while large bodies are written: a caller sends 50 small /run a second, alone and beside 45
simultaneous callers of /runsync with 19 MB each; the jobs return the 19 MB. SQLite, on the disk of the build folder.

    beside_large.py [--rounds N] [--callers N] [--megabytes N] [--check]    --check: exit code 1 when a goal is missed

Goal: p99 beside the large bodies at most 300 ms, as the median of the rounds.
"""

import argparse
import multiprocessing
import socket
import statistics
import sys
import threading
import time

from machine import OtherWork
from servers import Jobq

MB = 1 << 20
PAUSE = 0.02  # seconds between two small calls
ALONE = 10.0  # seconds of the control
DEADLINE = 300  # seconds: bounds a hang
GOAL = 0.3  # seconds


def read_answer(connection):
    """Reads an answer, and returns the first kilobyte of the body. The status has to be 200."""
    text = b""
    while b"\r\n\r\n" not in text:
        text += read_some(connection)
    head, _, body = text.partition(b"\r\n\r\n")
    if not head.startswith(b"HTTP/1.1 200 "):
        raise RuntimeError(f"no 200: {text[:500]!r}")
    lengths = [line.split(b":")[1] for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")]
    left = int(lengths[0]) - len(body)
    buffer = bytearray(MB)
    while left > 0:
        count = connection.recv_into(buffer, min(left, MB))
        if count == 0:
            raise RuntimeError(f"cut off with {left} bytes to come")
        left -= count
    return body[:1024]


def read_some(connection):
    part = connection.recv(65536)
    if not part:
        raise RuntimeError("the server has closed the connection")
    return part


def call_small(server, ended, pipe):
    """Runs in a separate process, because the large callers would take processor time here. Sends
    "connected", and at the end (start, seconds) of each call."""
    request = server.request("POST", "/v2/parked/run", b'{"input":{"n":1}}')
    calls = []
    with socket.create_connection(("127.0.0.1", server.port), timeout=DEADLINE) as connection:
        pipe.send("connected")
        while not ended.is_set():
            start = time.monotonic()
            connection.sendall(request)
            read_answer(connection)
            calls.append((start, time.monotonic() - start))
            time.sleep(max(0.0, start + PAUSE - time.monotonic()))
    pipe.send(calls)


class LargeCallers:
    """Simultaneous calls of /runsync; each call sends the body at once and reads all of the answer."""

    def __init__(self, server, callers, megabytes):
        self.server = server
        body = b'{"input":{"x":"' + b"x" * (megabytes * MB) + b'"}}'
        self.request = memoryview(server.request("POST", "/v2/echo/runsync?wait=300000", body))
        self.together = threading.Barrier(callers)
        self.faults = []
        self.threads = [threading.Thread(target=self._call, daemon=True) for _ in range(callers)]

    def _call(self):
        try:
            with socket.create_connection(("127.0.0.1", self.server.port), timeout=DEADLINE) as connection:
                self.together.wait(DEADLINE)
                connection.sendall(self.request)
                if b'"status":"COMPLETED"' not in read_answer(connection):
                    self.faults.append("a job is not COMPLETED")
        except (OSError, RuntimeError) as error:
            self.faults.append(str(error))

    def run(self):
        for thread in self.threads:
            thread.start()
        for thread in self.threads:
            thread.join(DEADLINE)
        if self.faults or any(thread.is_alive() for thread in self.threads):
            raise RuntimeError(f"large callers: {self.faults[:3] or 'no answer'}\n{self.server.log()}")


def small_calls_beside(server, act):
    """Seconds of the small calls begun while `act` ran, in order of length; and the seconds of `act`."""
    here, there = multiprocessing.Pipe(duplex=False)
    ended = multiprocessing.Event()
    process = multiprocessing.Process(target=call_small, args=(server, ended, there), daemon=True)
    process.start()
    if not here.poll(DEADLINE) or here.recv() != "connected":
        raise RuntimeError("the small caller has no connection")
    start = time.monotonic()
    try:
        act()
    finally:
        end = time.monotonic()
        ended.set()
    if not here.poll(DEADLINE):
        raise RuntimeError("the small caller has no answer")
    calls = here.recv()
    process.join(DEADLINE)
    return sorted(seconds for began, seconds in calls if start <= began < end), end - start


def place(times, part):
    return times[min(len(times) - 1, int(part * len(times)))]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--callers", type=int, default=45)
    parser.add_argument("--megabytes", type=int, default=19)
    parser.add_argument("--log", default="64MB", help="storage.sqlite.log: 4GB is a run without checkpoints")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    results = []
    other = OtherWork()
    for _ in range(options.rounds):
        with Jobq("sqlite", {"server.bodyMemory": "4GB", "storage.sqlite.log": options.log}) as server:
            alone, _ = small_calls_beside(server, lambda: time.sleep(ALONE))
            crowd = LargeCallers(server, options.callers, options.megabytes)
            beside, seconds = small_calls_beside(server, crowd.run)
        results.append((place(beside, 0.99), place(alone, 0.99)))
        for name, times in (("alone", alone), (f"beside {options.callers} x {options.megabytes} MB", beside)):
            print(f"  {name:18} {len(times):5} calls  p50 {place(times, 0.5) * 1000:8.1f} ms  "
                  f"p99 {place(times, 0.99) * 1000:8.1f} ms  longest {times[-1] * 1000:8.1f} ms")
        ratio = results[-1][0] / results[-1][1]
        print(f"  {'':18} the large ones took {seconds:.1f} s; p99 is {ratio:.1f} times its control", flush=True)
    p99, best = statistics.median(beside for beside, _ in results), min(beside for beside, _ in results)
    print(f"p99 of a small /run beside the large ones: median {p99 * 1000:.0f} ms, best {best * 1000:.0f} ms, "
          f"goal {GOAL * 1000:.0f} ms; other work took {other.share():.0%}")
    return 1 if options.check and p99 > GOAL else 0


if __name__ == "__main__":
    sys.exit(main())
