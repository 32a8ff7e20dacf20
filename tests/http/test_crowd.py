"""Thousands of idle and slow clients at once, and a new client with undisturbed service."""

import json
import os
import resource
import socket
import subprocess
import sys
import time

import pytest

from http_case import HttpTest
from jobq_server import ROOT, until
from pace import HANG, judge_pace

CROWD = os.path.join(ROOT, "tests", "support", "crowd.py")
IDLE, HEADS, BODIES = 5000, 2000, 500
MOST_THREADS = 64  # of the process
SANITIZED = "asan" in os.environ.get("JOBQ_BUILD", "") or "tsan" in os.environ.get("JOBQ_BUILD", "")


def at(times, percentile):
    return sorted(times)[len(times) * percentile // 100]


class CrowdTest(HttpTest):
    def test_a_newcomer_does_not_notice_the_crowd(self, own_server):
        """Beside 7,500 connections every new caller is answered. Where paces are judged, the callers' p99 and median
        are at most 10 ms, or ten times those at a server without a crowd."""
        needed = IDLE + HEADS + BODIES + 500
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        if hard < needed:
            pytest.skip(f"this machine allows {hard} descriptors, the crowd needs {needed}")
        # With 48 threads 500 slow bodies would stop the server if each held a thread.
        server, empty_server = (own_server(storage="memory", server__threads="48") for _ in range(2))
        crowd = subprocess.Popen([sys.executable, CROWD, *map(str, server.address),
                                  server.key, str(IDLE), str(HEADS), str(BODIES)], stdin=subprocess.PIPE,
                                 stdout=subprocess.PIPE, text=True)
        self.at_end.callback(crowd.wait, HANG)
        self.at_end.callback(crowd.kill)
        assert crowd.stdout.readline() == "ready\n"
        times, twins = [], []
        for n in range(600):
            times.append(self.call(server, n))
            twins.append(self.call(empty_server, n))
        print(f"beside {IDLE} idle, {HEADS} slow heads, {BODIES} slow bodies: a new caller waits "
              f"{at(times, 50) * 1000:.2f} ms (p50), {at(times, 99) * 1000:.2f} ms (p99), without them "
              f"{at(twins, 50) * 1000:.2f} and {at(twins, 99) * 1000:.2f} ms; the server has {self.threads(server)} "
              f"threads, {server.rss() >> 20} MB")
        if not SANITIZED:
            judge_pace("median of a new caller beside 7,500 others", at(times, 50), max(0.010, 10 * at(twins, 50)))
            judge_pace("p99 of a new caller beside 7,500 others", at(times, 99), max(0.010, 10 * at(twins, 99)))
        assert crowd.stdout.readline() == "closed\n"
        crowd.stdin.write("\n")
        crowd.stdin.flush()
        end = json.loads(crowd.stdout.readline())
        print(end)
        assert end["alive"] == IDLE, "idle connections stay, and still work"
        assert end["head"]["closed"] == HEADS
        assert end["body"]["closed"] == BODIES
        assert end["head"]["first"] > 9.5
        assert end["body"]["first"] > 19.5
        judge_pace("the last slow head is closed", end["head"]["last"], 15)
        judge_pace("the last slow body is closed", end["body"]["last"], 26)

    def test_a_burst_leaves_few_threads(self, own_server):
        """core/http/transport/http_thread_pool.h: the threads of a busy moment end after a second without work."""
        server = own_server(storage="memory")
        request = f"POST /v2/parked/runsync?wait=1000 HTTP/1.1\r\nHost: jobq\r\nAuthorization: {server.key}\r\n" \
                  "Content-Length: 12\r\n\r\n{\"input\":{}}"
        burst = [self.at_end.enter_context(socket.create_connection(server.address)) for _ in range(2000)]
        for plain in burst:
            plain.settimeout(HANG)
            plain.sendall(request.encode())
        for plain in burst:
            assert plain.recv(4096).startswith(b"HTTP/1.1 200 ")
        print(f"{self.threads(server)} threads behind the last answer")
        until(lambda: self.threads(server) <= MOST_THREADS, "the threads of the burst have ended", HANG)

    @staticmethod
    def call(server, n):
        start = time.monotonic()
        if n % 2:
            assert server.request("GET", "/healthz", key=None).status == 200
        else:
            server.run("parked", {})
        return time.monotonic() - start

    @staticmethod
    def threads(server):
        return len(os.listdir(f"/proc/{server.process.pid}/task"))
