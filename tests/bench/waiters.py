"""Measures a server beside many callers that wait in /runsync, each with a connection and a job of its own.

    waiters.py [--callers N] [--storage memory|sqlite] [--workers N]

Prints the threads and the resident memory of the server, the latency of /run beside the callers, and the time from the
start of the first worker to the last answer. The number of callers is bounded by the descriptors that the system allows
to a process.
"""

import argparse
import json
import resource
import select
import socket
import time

from servers import Jobq, until

SPARE = 500  # descriptors of the server and of this program for other purposes
ADDRESSES = 8  # loopback addresses of the callers: each has 28,000 ports
LONGEST_WAIT = 300  # seconds
BESIDE = 3.0  # seconds of /run beside the callers
JOB = b'{"input":{"n":1}}'


def process_numbers(server):
    """Returns the threads and the resident bytes of the server."""
    with open(f"/proc/{server.process.pid}/status", encoding="ascii") as file:
        status = dict(line.split(":", 1) for line in file)
    return int(status["Threads"]), int(status["VmRSS"].split()[0]) << 10


def callers_of(options):
    allowed = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, allowed))
    if allowed - SPARE < options.callers:
        print(f"this system allows {allowed} descriptors: {allowed - SPARE} callers instead of {options.callers}")
    return min(options.callers, allowed - SPARE)


def connect(server, number):
    plain = socket.socket()
    plain.bind((f"127.0.0.{2 + number % ADDRESSES}", 0))
    plain.connect(("127.0.0.1", server.port))
    return plain


def listen(callers):
    """Returns an epoll object that reports each connection once, and the connections by descriptor."""
    poller = select.epoll()
    for plain in callers:
        poller.register(plain, select.EPOLLIN | select.EPOLLET)
    return poller, {plain.fileno(): plain for plain in callers}


def await_answers(poller, callers):
    """Returns the number of answers with a completed job; each connection is read until its first answer."""
    completed = 0
    end = time.monotonic() + LONGEST_WAIT
    while callers and time.monotonic() < end:
        for descriptor, _ in poller.poll(1.0, 4096):
            caller = callers.pop(descriptor, None)
            if caller is None:
                continue  # the server closed a connection that was answered
            try:
                answer = caller.recv(65536)
            except ConnectionError:
                continue
            completed += answer.startswith(b"HTTP/1.1 200 ") and b'"COMPLETED"' in answer
    return completed


def measure(options):
    count = callers_of(options)
    # On a slow machine the last caller is heard later than an idle connection would be closed.
    with Jobq(options.storage, {"server.connectionsPerAddress": 0, "server.keepAlive": "1h", "endpoint.echo.workersMin": 4,
                                "endpoint.echo.workersMax": 4}) as server:
        template = server.call("POST", "/v1/templates", b'{"name":"waiters","imageName":"plugin/echo"}')["id"]
        endpoint = json.dumps({"name": "waiters", "templateId": template, "workersMax": 0, "scalerType": "REQUEST_COUNT",
                               "scalerValue": 1}).encode()
        name = server.call("POST", "/v1/endpoints", endpoint)["id"]
        run = server.request("POST", "/v2/parked/run", JOB)
        alone = server.load("http", 1, run, BESIDE)
        threads, resident = process_numbers(server)
        request = server.request("POST", f"/v2/{name}/runsync?wait=300000", JOB)
        callers = [connect(server, number) for number in range(count)]
        began = time.monotonic()
        for plain in callers:
            plain.sendall(request)
        try:
            until(lambda: server.call("GET", f"/v2/{name}/health")["jobs"]["inQueue"] == count, "all callers wait", LONGEST_WAIT)
        except RuntimeError:
            print(server.call("GET", f"/v2/{name}/health"), process_numbers(server), server.log()[-2000:])
            raise
        waits = time.monotonic() - began
        threads_beside, resident_beside = process_numbers(server)
        beside = server.load("http", 1, run, BESIDE)
        threads_run = process_numbers(server)[0]
        poller, waiting = listen(callers)
        released = time.monotonic()
        server.call("PATCH", f"/v1/endpoints/{name}", json.dumps({"workersMax": options.workers}).encode())
        completed = await_answers(poller, waiting)
        took = time.monotonic() - released
        print(f"{options.storage}: {count} callers wait after {waits:.1f} s on {threads_run} threads ({threads_beside} when "
              f"the last has come, {threads} without them), {(resident_beside - resident) / count / 1024:.1f} KB each; "
              f"p99 of /run {beside['p99'] / 1000:.2f} ms ({alone['p99'] / 1000:.2f} ms alone); "
              f"{completed} completed {took:.1f} s after their release")


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--callers", type=int, default=100_000)
    options.add_argument("--storage", choices=("memory", "sqlite"), default="memory")
    options.add_argument("--workers", type=int, default=8, help="that run the jobs of the callers in the end")
    measure(options.parse_args())


if __name__ == "__main__":
    main()
