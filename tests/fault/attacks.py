"""Plays attacks of hostile callers and workers on a server of its own, and prints the effect of each.

    attacks.py [NAME...]      all attacks, or the named ones; JOBQ_BUILD names another built tree, to compare with

Each attack is bounded in connections, bytes and time, goes to a server on 127.0.0.1 alone, and leaves nothing behind.
README.md beside this file has the numbers. The tests of each rule have the verdicts.
"""

import concurrent.futures
import contextlib
import json
import os
import resource
import socket
import statistics
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))

from jobq_server import SHORT_DRAIN, Server  # noqa: E402
from process_watch import memory, processor_seconds  # noqa: E402

MB = 1 << 20
IMAGE = "docker.io/acme/worker:1"
LONGEST_ATTACK = 90.0  # seconds
SETTLED = 20.0  # seconds after the end of an attack, in which memory goes back to the system


class Observation:
    """Samples the memory of a server, and the time of a call of another caller, until the context ends."""

    def __init__(self, server, path="/v2/echo/health"):
        self.server, self.path = server, path
        self.start = memory(server.process.pid)
        self.most, self.times, self.faults = self.start, [], 0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def _run(self):
        while not self._over.wait(0.02):
            self.most = max(self.most, memory(self.server.process.pid))
            begun = time.monotonic()
            try:
                self.faults += self.server.request("GET", self.path).status != 200
            except OSError:
                self.faults += 1
            self.times.append(time.monotonic() - begun)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._over.set()
        self._thread.join(LONGEST_ATTACK)

    def figures(self):
        time.sleep(SETTLED)
        left = memory(self.server.process.pid) - self.start
        times = sorted(self.times) or [0.0]
        return {"grown MB": round((self.most - self.start) / MB), "left MB": round(left / MB),
                "others p50 ms": round(1e3 * statistics.median(times), 1),
                "others longest ms": round(1e3 * times[-1]), "others refused": self.faults}


def get(server, path):
    return f"GET {path} HTTP/1.1\r\nHost: jobq\r\nAuthorization: Bearer {server.key}\r\n\r\n".encode()


def deaf(server, request, source=None):
    """A connection with a request and without a read."""
    plain = socket.socket()
    plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    plain.settimeout(30)
    if source:
        plain.bind((source, 0))
    plain.connect(server.address)
    plain.sendall(request)
    return plain


@contextlib.contextmanager
def crowd(server, request, count, seconds=6.0):
    """`count` connections without a read, held for some seconds."""
    with contextlib.ExitStack() as stack:
        for number in range(count):
            wanted = request(number) if callable(request) else request
            with contextlib.suppress(OSError):
                stack.callback(deaf(server, wanted, f"127.0.0.{2 + number % 16}").close)
        yield
        time.sleep(seconds)


def large_output(server, size):
    """Submits a job with an output of `size` bytes, and returns the id."""
    return server.runsync("echo", {"a": "x" * size}, wait=120_000)["id"]


def outputs():
    """400 callers of /status of a job with 19.5 MB, without a read."""
    with Server(**SHORT_DRAIN) as server:
        request = get(server, f"/v2/echo/status/{large_output(server, 19 * MB + MB // 2)}")
        with Observation(server, "/v2/trial/health") as seen, crowd(server, request, 400):
            pass
        return seen.figures()


def remote_server(**more):
    return Server(**{"endpoint.remote.image": IMAGE, "endpoint.other.image": IMAGE, **SHORT_DRAIN, **more})


def worker_get(server, path):
    return get(server, f"/v2/remote/{path}")


def inputs():
    """4 calls of a worker for 20 jobs each, all with inputs of 19 MB, without a read."""
    with remote_server() as server:
        for _ in range(80):
            server.request("POST", "/v2/remote/runsync?wait=1000", {"input": {"a": "x" * (19 * MB)}})
        with Observation(server) as seen:
            take = lambda number: worker_get(server, f"job-take-batch/w{number}?batch_size=20&job_in_progress=0")
            with crowd(server, take, 4, 15.0):
                pass
        return seen.figures()


def places():
    """3,000 names of workers, with a call for 1,000 jobs each."""
    with remote_server() as server:
        before = processor_seconds(server.process.pid)
        with Observation(server, "/v2/echo/health") as seen:
            take = lambda number: worker_get(server, f"job-take-batch/name{number}?batch_size=1000&job_in_progress=0")
            with crowd(server, take, 3000, 10.0):
                pass
        spent = processor_seconds(server.process.pid) - before
        return {**seen.figures(), "processor s": round(spent, 1)}


def chunks():
    """A worker with a report of 20 MB below the next chunk, cut into chunks of a byte."""
    with remote_server() as server:
        job = server.run("remote", {})
        assert server.request("GET", "/v2/remote/job-take/w1?job_in_progress=0").status == 200
        report = f"/v2/remote/job-stream/w1/{job}?first="
        for number in range(3):
            server.request("POST", report + str(number), {"output": "a"})
        metrics = '{"a":"' + "m" * (MB - 64 - len('{"a":""}') - 1) + '"}'
        body = '{"output":"' + "x" * (20 * MB) + '","metrics":' + metrics + "}"
        longest = 0.0
        with Observation(server) as seen, concurrent.futures.ThreadPoolExecutor() as pool:
            call = pool.submit(server.request, "POST", report + "1", body)
            while not call.done():
                begun = time.monotonic()
                server.run("parked", {})
                longest = max(longest, time.monotonic() - begun)
            status = call.exception() or call.result().status
        stored = sum(os.path.getsize(os.path.join(folder, name)) for folder, _, names in os.walk(server.data)
                     for name in names)
        return {**seen.figures(), "longest write ms": round(1e3 * longest), "stored MB": round(stored / MB),
                "answer": str(status)}


def descriptors():
    """400 waiting callers from 16 addresses at a server with 256 descriptors, beside jobs with inputs in files."""
    server = Server(start=False, **{"endpoint.remote.image": IMAGE, **SHORT_DRAIN})
    wrapped = os.path.join(server.folder, "jobqd")
    with open(wrapped, "w", encoding="utf-8") as file:
        file.write(f'#!/bin/sh\nulimit -n 256\nexec {server.program} "$@"\n')
    os.chmod(wrapped, 0o755)
    server.program = wrapped
    server.start()
    with server:
        connection = server.connect()
        large = {"input": {"a": "x" * (2 * MB)}}
        jobs = [server.request("POST", "/v2/remote/run", large, connection=connection).json()["id"] for _ in range(10)]
        parked = server.run("parked", {})
        with crowd(server, get(server, f"/v2/parked/status-sync/{parked}?wait=60000"), 400, 0.0):
            end = time.monotonic() + 40
            while time.monotonic() < end:
                path = "/v2/remote/job-take-batch/w1?batch_size=10&job_in_progress=1"
                taken = server.request("GET", path, connection=connection)
                if taken.status == 200 and taken.body:
                    break
        states = {}
        for job in jobs:
            state = server.status("remote", job)["status"]
            states[state] = states.get(state, 0) + 1
        return {"jobs": len(jobs), **states}


def repeated_key():
    """Two callers of /openai with the same Idempotency-Key; the first caller leaves."""
    with tempfile.TemporaryDirectory() as scripts:
        os.makedirs(os.path.join(scripts, "handlers"))
        with open(os.path.join(scripts, "handlers", "slow.lua"), "w", encoding="utf-8") as file:
            file.write("return function()\n  local till = os.clock() + 2\n  while os.clock() < till do end\n"
                       "  return { done = true }\nend\n")
        with Server(**{"scripts.path": scripts, "endpoint.slow.image": "lua/slow", **SHORT_DRAIN}) as server:
            body = json.dumps({"model": "m", "messages": []}).encode()
            head = ("POST /v2/slow/openai/v1/chat/completions HTTP/1.1\r\nHost: jobq\r\n"
                    f"Authorization: Bearer {server.key}\r\nIdempotency-Key: one\r\nContent-Type: application/json\r\n"
                    f"Content-Length: {len(body)}\r\n\r\n").encode()
            first = server.plug()
            first.sendall(head + body)
            time.sleep(0.5)
            with concurrent.futures.ThreadPoolExecutor() as pool:
                second = pool.submit(server.raw, head + body)
                time.sleep(0.5)
                first.close()
                answer = second.result(60)
            again = server.raw(head + body)
        return {"second caller": answer[9:12].decode(), "repetition": again[9:12].decode()}


ATTACKS = (outputs, inputs, places, chunks, descriptors, repeated_key)


def main():
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(most, 20_000), most))
    names = sys.argv[1:] or [attack.__name__ for attack in ATTACKS]
    unknown = set(names) - {attack.__name__ for attack in ATTACKS}
    if unknown:
        sys.exit(f"{', '.join(sorted(unknown))}: no such attack; there are {', '.join(a.__name__ for a in ATTACKS)}")
    for attack in ATTACKS:
        if attack.__name__ in names:
            found = attack()
            lines = "".join(f"    {key}: {value}\n" for key, value in found.items())
            print(f"{attack.__name__:13s} {attack.__doc__}\n{lines}", flush=True)


if __name__ == "__main__":
    main()
