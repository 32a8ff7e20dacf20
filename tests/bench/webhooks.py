"""Measures the pace of webhooks beside the pace of the jobs that owe them.

    webhooks.py [--jobs N] [--storage memory|sqlite] [--delays 0,100] [--silent HOSTS] [--rounds N]

A round submits jobs of the handler echo with a webhook to a receiver that answers after each of the delays, and prints
the pace of the jobs until the last one has ended, the pace of the webhooks from then until none is owed, and how many
connections the receiver has accepted. `--silent` adds as many hosts that accept a connection and never answer.
"""

import argparse
import json
import os
import resource
import signal
import socket
import statistics
import subprocess
import time

from servers import PROGRAMS, Jobq, await_port, free_port, until

LONGEST = 300  # seconds


class Receiver:
    def __init__(self, delay):
        self.port = free_port()
        self.process = subprocess.Popen([os.path.join(PROGRAMS, "bench_receiver"), str(self.port), str(delay)],
                                        stdout=subprocess.PIPE, text=True)
        await_port(self.port, self.process)

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        return self.process.communicate(timeout=30)[0].strip()


def silent_hosts(count):
    """Listeners without answers; each port is a host."""
    hosts = []
    for _ in range(count):
        listener = socket.socket()
        listener.bind(("127.0.0.1", 0))
        listener.listen(64)
        hosts.append(listener)
    return hosts


def job(port):
    return json.dumps({"input": {"prompt": "a photo of an astronaut riding a horse", "steps": 20, "seed": 42},
                       "webhook": f"http://127.0.0.1:{port}/hook"}).encode()


def measure(options, delay):
    receiver = Receiver(delay)
    hosts = silent_hosts(options.silent)
    settings = {"net.allowPrivate": "true", "webhook.maxOwed": 10_000_000, "endpoint.quiet.image": "plugin/echo"}
    with Jobq(options.storage, settings) as server:
        health = lambda: server.call("GET", "/v2/echo/health")
        for host in hosts:
            server.call("POST", "/v2/quiet/run", job(host.getsockname()[1]))
        began = time.monotonic()
        server.load("http", 64, server.request("POST", "/v2/echo/run", job(receiver.port)), count=options.jobs)
        until(lambda: health()["jobs"]["completed"] >= options.jobs, "all jobs end", LONGEST)
        ended = time.monotonic()
        owed = health()["webhooks"]["owed"]
        until(lambda: health()["webhooks"]["owed"] == 0, "all webhooks leave", LONGEST)
        left = time.monotonic()
    for host in hosts:
        host.close()
    jobs = options.jobs / (ended - began)
    webhooks = owed / (left - ended)
    print(f"{options.storage}, {delay} ms, {options.silent} silent hosts: {jobs:,.0f} jobs/s, "
          f"{webhooks:,.0f} webhooks/s ({owed} of {options.jobs} owed at the end of the jobs), ratio {webhooks / jobs:.2f}; "
          f"{receiver.end()}", flush=True)
    return webhooks


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--jobs", type=int, default=20_000)
    options.add_argument("--storage", choices=("memory", "sqlite"), default="sqlite")
    options.add_argument("--delays", default="0,100", help="milliseconds, separated by commas")
    options.add_argument("--silent", type=int, default=0)
    options.add_argument("--rounds", type=int, default=3)
    options = options.parse_args()
    allowed = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, allowed))
    paces = {delay: [] for delay in map(int, options.delays.split(","))}
    for _ in range(options.rounds):
        for delay, measured in paces.items():
            measured.append(measure(options, delay))
    for delay, measured in paces.items():
        print(f"{delay} ms: median {statistics.median(measured):,.0f} webhooks/s of {options.rounds} rounds")


if __name__ == "__main__":
    main()
